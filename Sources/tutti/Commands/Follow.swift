import ArgumentParser
import TuttiDeviceOutput
import TuttiRoom

/// `tutti follow`: a room without music of its own.
struct Follow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Follow a leader: play what it plays, at the same instant.",
        discussion: """
            Finds the leader with Avahi, or takes --leader. Waits for a leader that is not there \
            yet, and again when it goes away; so it does for its sound card. Ends with Ctrl-C.

            Examples:
              tutti follow
              tutti follow --name bedroom --output alsa:hw:1,0
              tutti follow --leader 192.168.1.20:7430 --no-avahi
            """)

    @OptionGroup(title: "Leader") var leader: LeaderOptions
    @OptionGroup(title: "Room") var room: RoomOptions
    @OptionGroup(title: "Settings") var common: CommonOptions

    func run() async throws {
        let settings = try await Settings.announced(
            flags: leader.flags + room.flags + common.flags, file: common.config)
        if settings.leader == nil && !settings.avahi {
            throw ValidationError(
                "Without Avahi the leader must be given: --leader HOST:PORT")
        }
        guard settings.output != .none else {
            throw ValidationError(
                "A follower needs an output to play on, not none: --output alsa, virtual or file:PATH"
            )
        }
        let logger = makeLogger(level: settings.logLevel)
        try await untilInterrupted(
            alsoWhenParentEnds: room.dieWithParent, millisecondsToEnd: millisecondsToEndNode
        ) {
            try await runningNode { ready in
                var configuration = settings.nodeConfiguration(
                    logger: logger, overwritesFiles: room.force)
                configuration.whenReady = ready
                try await FollowerNode(
                    configuration, leader: settings.leader,
                    leaderName: settings.group
                ).run()
            }
        }
    }
}
