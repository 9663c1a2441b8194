import ArgumentParser
import TuttiGroupControl

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
        help: ArgumentHelp("The room, and µs, or µs±µs.", valueName: "room> <µs[±µs]"),
        completion: .custom(Completions.rooms))
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
            return (try roomArgument(words[0]), try LatencyOffset(parsing: words[1]))
        } catch let error as InvalidValue {
            throw ValidationError("a \(error.subject) \(error.reason)")
        }
    }

    func run() async throws {
        let (room, offset) = try parsed()
        try await options.perform(
            .latencyOffset(room: room, offset), saying: "\(room): offset \(offset) µs")
    }
}
