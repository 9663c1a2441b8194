import ArgumentParser
import GroupControl
import Room

/// Options of a command that talks to a leader.
struct ControlOptions: ParsableArguments {
    @OptionGroup var leader: LeaderOptions
    @OptionGroup var common: CommonOptions

    /// The leader that is meant, connected.
    func connect() async throws -> GroupClient {
        let settings = try await Settings.load(
            flags: leader.flags + common.flags, file: common.config)
        return try await GroupClient.connect(
            to: try await Self.address(settings), timeout: .seconds(3))
    }

    /// Sends one command and waits for the leader's answer.
    func perform(_ command: GroupCommand) async throws {
        try await untilInterrupted {
            try await connect().perform(command)
        }
    }

    /// Long enough for Avahi's answers from a busy wifi, short enough to wait for at a prompt.
    static let patience: [Duration] = [.milliseconds(400), .milliseconds(1_600)]

    static func address(_ settings: Settings) async throws -> HostPort {
        if let leader = settings.leader { return leader }
        guard settings.avahi else {
            throw ValidationError("Without Avahi the leader must be given: --leader HOST:PORT")
        }
        for duration in patience {
            let leaders = try await Discovery.leaders(for: duration)
            if let choice = try choose(leaders, group: settings.group) { return choice.address }
        }
        throw RoomError(
            .noLeader,
            settings.group.map {
                "no leader named \"\($0)\" answers on this network: see tutti rooms, or give --leader HOST:PORT"
            }
                ?? "no leader answers on this network: start one with tutti lead FILE, or give --leader HOST:PORT"
        )
    }

    /// The leader to talk to; `nil` while there is none.
    ///
    /// - Throws: when there are several and nothing says which.
    static func choose(
        _ leaders: [DiscoveredRoom], group: String?
    ) throws(CommandError) -> DiscoveredRoom? {
        let leaders = leaders.filter {
            group == nil || $0.name.foldedName == group?.foldedName
        }
        guard leaders.count > 1 else { return leaders.first }
        if let group {
            let addresses = leaders.map { "\($0.address)" }.joined(separator: ", ")
            throw CommandError(
                "\(leaders.count) leaders are named \"\(group)\": \(addresses); choose one with --leader HOST:PORT"
            )
        }
        let names = leaders.map { "\"\($0.name)\" (\($0.address))" }.joined(separator: ", ")
        throw CommandError(
            "\(leaders.count) leaders answer: \(names); choose one with --group ROOM or --leader HOST:PORT"
        )
    }
}

/// A room as a person writes it, on the command line.
func roomArgument(_ text: String) throws(ValidationError) -> RoomID {
    do {
        return try RoomID(text)
    } catch {
        throw ValidationError("\(error)")
    }
}

/// Where negative numbers are taken as words, so are options that there are not.
func refuseOptions(in words: [String]) throws(ValidationError) {
    if let option = words.first(where: { $0.hasPrefix("--") && $0.count > 2 }) {
        throw ValidationError("there is no option \"\(option)\" here")
    }
}
