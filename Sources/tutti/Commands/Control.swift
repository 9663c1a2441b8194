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
            let client = try await connect()
            do {
                try await client.perform(command)
            } catch {
                throw error
            }
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

/// `tutti play`.
struct Play: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Play, or go on after a pause.", discussion: "Example:\n  tutti play")
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.play) }
}

/// `tutti pause`.
struct Pause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pause all rooms at one instant.", discussion: "Example:\n  tutti pause")
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.pause) }
}

/// `tutti next`.
struct Next: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to the next asset.", discussion: "Example:\n  tutti next")
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.next) }
}

/// `tutti stop`.
struct Stop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stop playing; the rooms stay in the group.",
        discussion: "Example:\n  tutti stop")
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.stop) }
}

/// `tutti seek`.
struct Seek: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to a time of the current asset, in all rooms at one instant.",
        discussion: """
            Examples:
              tutti seek 1:23.5
              tutti seek 83.5
              tutti seek 1:02:03

            A time behind the end, or in the last second, is a second before the end.
            """)

    @Argument(help: "Seconds, M:SS or H:MM:SS, with a fraction if you like.")
    var time: PositionArgument

    @OptionGroup var options: ControlOptions

    func run() async throws { try await options.perform(.seek(seconds: time.seconds)) }
}

/// `tutti volume`.
struct Volume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Set the volume of one room or of all.",
        discussion: """
            Examples:
              tutti volume 40
              tutti volume bedroom 25
            """)

    @Argument(
        help: ArgumentHelp(
            "The room, if only one is meant, and 0 to 100.", valueName: "room|0…100"))
    var words: [String]

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    func parsed() throws -> (room: RoomID?, percent: Int) {
        guard let last = words.last, let percent = Int(last), (0...100).contains(percent),
            words.count <= 2
        else {
            throw ValidationError(
                "\"\(words.joined(separator: " "))\" is no volume: write tutti volume [ROOM] 0…100")
        }
        return (words.count == 2 ? try roomID(words[0]) : nil, percent)
    }

    func run() async throws {
        let (room, percent) = try parsed()
        try await options.perform(.volume(room: room, percent: percent))
    }
}

/// `tutti mute`.
struct Mute: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Mute one room or all.",
        discussion: """
            Examples:
              tutti mute
              tutti mute bedroom
              tutti mute bedroom --off
            """)

    @Argument(help: "The room, if only one is meant.")
    var room: String?

    @Flag(help: "Let it sound again.")
    var off = false

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try room.map(roomID) }

    func run() async throws {
        try await options.perform(.mute(room: try room.map(roomID), muted: !off))
    }
}

/// `tutti offset`.
struct Offset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say how much later the sound leaves what hangs on a room's output.",
        usage: """
            tutti offset <room> <µs[±µs]> [--leader <host:port>] [--group <room>] \
            [--config <path>] [--verbose] [--log-level <level>]
            """,
        discussion: """
            An amplifier, a DSP or a wireless loudspeaker delays; the room plays earlier by this \
            much, from now on, and remembers it for this output as --output names it. Positive: \
            the room is heard too late. Microseconds, at most half a second. Who has measured it \
            says how well (1500±50, or 1500+-50): then what tutti status --sync promises is about \
            the loudspeaker, and includes that. A room whose settings give latency-offset-us keeps \
            to them.

            While it plays, a change of up to 200 µs is unheard and a larger one a cross-fade of \
            15 ms, both without a click. One that makes the room play later by more than it keeps \
            of what it has played (0.34 s at 48 kHz, half of that at 96) is also a silence: as \
            long as what is missing.

            Examples:
              tutti offset bedroom 1500
              tutti offset bedroom 1500±50
              tutti offset bedroom -300
              tutti offset bedroom 0
            """)

    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("The room, and µs, or µs±µs.", valueName: "room> <µs[±µs]"))
    var words: [String] = []

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    func parsed() throws -> (room: RoomID, offset: LatencyOffset) {
        guard words.count == 2, !words[0].hasPrefix("-") else {
            throw ValidationError(
                "\"\(words.joined(separator: " "))\" is no offset: write tutti offset ROOM 1500 (µs), or 1500±50"
            )
        }
        do {
            return (try roomID(words[0]), try LatencyOffset(parsing: words[1]))
        } catch let error as InvalidValue {
            throw ValidationError("a \(error.subject) \(error.reason)")
        }
    }

    func run() async throws {
        let (room, offset) = try parsed()
        try await options.perform(.latencyOffset(room: room, offset))
    }
}

private func roomID(_ text: String) throws(ValidationError) -> RoomID {
    do {
        return try RoomID(text)
    } catch {
        throw ValidationError("\(error)")
    }
}
