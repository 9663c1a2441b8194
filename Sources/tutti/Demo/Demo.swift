import ArgumentParser

/// `tutti demo`: a whole house on one machine.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Play in several rooms on this machine and measure how well they keep together.",
        discussion: """
            Starts a leader and followers as processes of their own, each with a virtual sound \
            card whose crystal is off by some ppm, and shows them at work. Afterwards compares \
            what left the cards, against true time: nothing that a room says about itself is \
            used. Exit status 1 when the rooms were not in lockstep: p99 of the skew above a \
            quarter of a sample (5.2 µs), or any dropout.

            Skew of a pair A → B is positive where B plays the same content later. What a room \
            costs its machine is measured from the fifth second on, for three seconds at least; in \
            the JSON of a shorter run rooms have no "cost".

            Examples:
              tutti demo
              tutti demo song.flac --rooms 5 --seconds 60
              tutti demo --record /tmp/demo       WAV per room, skew.csv, skew.png
              tutti demo --json | jq .skewMicroseconds
            """)

    @Argument(help: "What to play; without it, a piece that the program makes up.")
    var file: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Rooms, 2 to 16.", valueName: "n"))
    var rooms = 3

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("End after this long, 3 to 3600.", valueName: "s"))
    var seconds = 20.0

    @Option(
        help: ArgumentHelp("Keep recordings, numbers and a picture there.", valueName: "dir"))
    var record: String?

    @Flag(help: "Print the result as one JSON object on stdout; all else goes to stderr.")
    var json = false

    @Flag(help: "Do not use Avahi: tell the followers the leader's address.")
    var noAvahi = false

    @Flag(help: "Write what the rooms log to stderr at the end.")
    var verbose = false

    func validate() throws {
        guard (2...16).contains(rooms) else {
            throw ValidationError("--rooms takes 2 to 16, not \(rooms)")
        }
        guard (3...3_600).contains(seconds) else {
            throw ValidationError("--seconds takes 3 to 3600, not \(seconds)")
        }
    }

    func run() async throws {
        let demo = self
        let result = try await untilInterrupted { try await DemoRun(demo).run() }
        guard let result else { throw CommandError("interrupted: nothing was measured") }
        let report = DemoReport(result)
        if json {
            Terminal.output.write(jsonText(report, pretty: false) + "\n")
        } else {
            Terminal.output.write(report.text(colour: Terminal.output.showsColour))
        }
        if let complaint = result.lockstep.complaint {
            Terminal.error.say("tutti: \(complaint)")
            throw ExitCode.failure
        }
    }
}

/// A room of the demo.
struct DemoRoom: Sendable {
    /// What people read.
    var name: String
    /// What the network sees: no other demo has it.
    var fullName: String
    var partsPerMillion: Double
    var wander: Double

    /// Ordinary crystals are within ±100 ppm; some are worse.
    private static let crystals: [Double] = [
        80, -120, 20, -35, 150, -80, 60, -150, 5, 110, -60, 35, -100, 130, -20, 95,
    ]
    private static let names = [
        "kitchen", "bedroom", "bath", "study", "hall", "attic", "cellar", "garden", "studio",
        "nursery", "library", "garage", "terrace", "guest room", "workshop", "pantry",
    ]

    static func all(_ count: Int, tag: String) -> [DemoRoom] {
        (0..<count).map {
            DemoRoom(
                name: names[$0], fullName: "\(names[$0]) \(tag)", partsPerMillion: crystals[$0],
                wander: 0.3)
        }
    }
}
