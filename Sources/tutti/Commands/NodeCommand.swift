import ArgumentParser
import Logging
import TuttiRoom

/// `tutti node`: a room that leads or follows, as the house needs.
struct NodeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "node",
        abstract: "Be a room of the house: follow whoever leads, or lead where nobody does.",
        discussion: """
            Finds its household and its group with Avahi. Where there is none it founds one, and begins \
            a group that other nodes join; music comes with tutti add, from any member. When the node \
            that leads is lost, another one goes on, and nothing is heard of it. Waits for its sound \
            card if that is not there. Ends with Ctrl-C. This is what the service runs.

            Examples:
              tutti node
              tutti node --name bedroom --output alsa:hw:1,0
              tutti node --name desk --also shelf=alsa:hw:2,0
              tutti add Music/Album && tutti play
            """)

    @OptionGroup(title: "Leader") var leader: LeaderOptions
    @OptionGroup(title: "Room") var room: RoomOptions
    @OptionGroup(title: "Settings") var common: CommonOptions

    func run() async throws {
        let settings = try await Settings.announced(
            flags: leader.flags + room.flags + common.flags, file: common.config)
        guard settings.avahi || settings.leader != nil else {
            throw ValidationError(
                "Nodes find each other with Avahi: leave --no-avahi out, or use tutti lead and "
                    + "tutti follow --leader HOST:PORT")
        }
        let logger = makeLogger(level: settings.logLevel)
        try await untilInterrupted(
            alsoWhenParentEnds: room.dieWithParent, millisecondsToEnd: millisecondsToEndNode
        ) {
            try await runningNode { ready in
                try await run(settings, logger, ready)
            }
        }
    }

    /// Its further rooms begin when the first one is there: by then the machine belongs to a household.
    /// They only follow: when the machine is lost they are, too.
    private func run(
        _ settings: Settings, _ logger: Logger, _ ready: @escaping @Sendable () -> Void
    ) async throws {
        let beginnings = settings.furtherRooms.map { ($0, AsyncStream.makeStream(of: Void.self)) }
        var first = settings.nodeConfiguration(logger: logger, overwritesFiles: room.force)
        first.whenReady = {
            ready()
            for (_, beginning) in beginnings { beginning.continuation.finish() }
        }
        let force = room.force
        try await withThrowingTaskGroup { group in
            group.addTask { [first] in
                try await FollowerNode(
                    first, leader: settings.leader, leaderName: settings.group,
                    leadsWhenAlone: true
                ).run()
            }
            for (further, beginning) in beginnings {
                group.addTask {
                    for await _ in beginning.stream {}
                    try Task.checkCancellation()
                    try await follow(further, settings, logger, overwritesFiles: force)
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}

private func follow(
    _ further: FurtherRoom, _ settings: Settings, _ logger: Logger, overwritesFiles: Bool
) async throws {
    var configuration = settings.nodeConfiguration(
        logger: logger, overwritesFiles: overwritesFiles)
    configuration.name = further.name
    configuration.output = further.output
    // The first room has the port of the settings.
    configuration.port = 0
    configuration.succeeds = false
    configuration.latencyOffset = nil
    try await FollowerNode(
        configuration, leader: settings.leader, leaderName: settings.group
    ).run()
}
