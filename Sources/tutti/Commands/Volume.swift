import ArgumentParser
import TuttiGroupControl

/// `tutti volume`.
struct Volume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Set the volume of the group or of one room, or change it.",
        usage: """
            tutti volume [<room>] <0…100|+n|-n> [--leader <host:port>] [--group <room>] \
            [--config <path>] [--verbose] [--log-level <level>]
            """,
        discussion: """
            Percent; with + or - before it, by so much from what it is. Without a room it is the group's: \
            its rooms keep their own volumes, and so their balance. A room is as loud as both say \
            together: half of half is a quarter. 50 % is -18 dB, 10 % is -60 dB (60·log10 of the share). \
            No room gets louder than its setting volume-limit lets it.

            Examples:
              tutti volume 40
              tutti volume bedroom 25
              tutti volume bedroom +5
              tutti volume -10
            """)

    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp(
            "The room, if only one is meant, and 0 to 100, +n or -n.",
            valueName: "room> <0…100|+n|-n"),
        completion: .custom(Completions.rooms))
    var words: [String] = []

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    func parsed() throws -> GroupCommand {
        try refuseOptions(in: words)
        guard !words.isEmpty else {
            throw ValidationError("how loud? write tutti volume [ROOM] 0…100, +5 or -5")
        }
        guard (1...2).contains(words.count), let last = words.last,
            let change = VolumeArgument(last)
        else {
            throw ValidationError(
                "\"\(words.joined(separator: " "))\" is no volume: "
                    + "write tutti volume [ROOM] 0…100, +5 or -5")
        }
        let room = words.count == 2 ? try roomArgument(words[0]) : nil
        return switch change {
        case .to(let percent): .volume(room: room, percent: percent)
        case .by(let percent): .volumeBy(room: room, percent: percent)
        }
    }

    func run() async throws { try await options.perform(parsed()) }
}

/// `40`, `40%`, `+5`, `-5`.
enum VolumeArgument: Equatable {
    case to(Int)
    case by(Int)

    init?(_ text: String) {
        let (sign, rest) = SignedText.split(text)
        let digits = rest.hasSuffix("%") ? rest.dropLast() : rest
        guard digits.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(digits),
            (0...100).contains(number)
        else { return nil }
        self = sign == 0 ? .to(number) : .by(sign * number)
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
              tutti unmute bedroom
            """)

    @Argument(
        help: "The room, if only one is meant.",
        completion: .custom(Completions.rooms))
    var room: String?

    @Flag(help: "Let it sound again, as tutti unmute does.")
    var off = false

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try room.map(roomArgument) }

    func run() async throws {
        try await options.perform(.mute(room: try room.map(roomArgument), muted: !off))
    }
}

/// `tutti unmute`.
struct Unmute: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let one room or all sound again.",
        discussion: """
            Examples:
              tutti unmute
              tutti unmute bedroom
            """)

    @Argument(
        help: "The room, if only one is meant.",
        completion: .custom(Completions.rooms))
    var room: String?

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try room.map(roomArgument) }

    func run() async throws {
        try await options.perform(.mute(room: try room.map(roomArgument), muted: false))
    }
}

/// `tutti channel`.
struct Channel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say what a room plays of stereo: left, right, both or mono.",
        discussion: """
            Two rooms are a stereo pair: one plays left, the other right. The group remembers it; auto is as \
            the room's own settings (channel) have it.

            Examples:
              tutti channel shelf left
              tutti channel window right
              tutti channel shelf auto
            """)

    @Argument(help: "The room.", completion: .custom(Completions.rooms))
    var room: String

    @Argument(
        help: ArgumentHelp("What it plays.", valueName: "stereo|left|right|mono|auto"),
        completion: .list(RoomRole.allCases.map(\.rawValue) + ["auto"]))
    var role: String

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    private func parsed() throws -> GroupCommand {
        let room = try roomArgument(room)
        if role == "auto" { return .role(room: room, nil) }
        guard let role = RoomRole(rawValue: role) else {
            throw ValidationError(
                "\"\(role)\" is no channel: write stereo, left, right, mono or auto"
                    + Suggestion.question(
                        for: role, among: RoomRole.allCases.map(\.rawValue) + ["auto"]))
        }
        return .role(room: room, role)
    }

    func run() async throws {
        try await options.perform(parsed(), saying: "\(room.shown()): \(role)")
    }
}
