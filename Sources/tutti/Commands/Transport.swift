import ArgumentParser
import GroupControl

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

/// `tutti previous`.
struct Previous: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to the beginning of the asset, or to the asset before it.",
        discussion: """
            In the first three seconds of an asset it is the one before; later its own beginning.

            Example:
              tutti previous
            """)
    @OptionGroup var options: ControlOptions
    func run() async throws { try await options.perform(.previous) }
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
        abstract: "Go to a place of the current asset, in all rooms at one instant.",
        usage: """
            tutti seek <time|+time|-time|percent> [--leader <host:port>] [--group <room>] \
            [--config <path>] [--verbose] [--log-level <level>]
            """,
        discussion: """
            Seconds, M:SS or H:MM:SS, with a fraction if you like; with + or - before it, from \
            where it plays now; with %, a share of the asset.

            Examples:
              tutti seek 1:23.5
              tutti seek 1:02:03
              tutti seek +10
              tutti seek -1:30
              tutti seek 50%

            A time behind the end, or in the last second, is a second before the end; one before \
            the beginning is the beginning.
            """)

    // A negative number looks like a flag.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp("Where to go.", valueName: "time|+time|-time|percent"))
    var words: [String] = []

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try parsed() }

    func parsed() throws -> GroupCommand {
        try refuseOptions(in: words)
        // A space before the sign may make it a word of its own: 50 %.
        let isPercent = words.count == 2 && words[1] == "%"
        let text = words.joined().split(separator: " ").joined()
        guard words.count == 1 || isPercent, let place = PositionArgument(argument: text) else {
            throw ValidationError(
                "\"\(words.joined(separator: " "))\" is no place: "
                    + "write tutti seek 83.5, 1:23.5, +10, -10 or 50%")
        }
        return switch place {
        case .time(let seconds): .seek(seconds: seconds)
        case .by(let seconds): .seekBy(seconds: seconds)
        case .share(let share): .seekTo(share: share)
        }
    }

    func run() async throws { try await options.perform(parsed()) }
}
