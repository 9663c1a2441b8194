import ArgumentParser
import Foundation
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiRoom
import TuttiTiming

/// `tutti responses`: from a command to what leaves the cards.
struct Responses: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure how long after a command all rooms sound otherwise.",
        discussion: """
            Starts a leader and followers as processes of their own on this machine, each with a virtual \
            sound card, and gives them commands over a connection that stands. What is measured is the time \
            from the moment before the command is sent until the last of the cards plays what was \
            asked for: louder, quieter, silence, or another place of the item. Nothing that a room says is \
            used. "answered" is when the client has the leader's answer.

            Of it, 40 ms are the margin within which every room must have heard of the instant, and what \
            is queued in the output cannot be changed any more (--buffer-ms).

            Examples:
              tutti responses
              tutti responses --times 50 --json
              tutti responses --buffer-ms 20
            """)

    @Option(parsing: .unconditional, help: ArgumentHelp("Rooms, 2 to 16.", valueName: "n"))
    var rooms = 3

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Rounds of all commands, 2 to 500.", valueName: "n"))
    var times = 20

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("What each card holds, 5 to 1000.", valueName: "ms"))
    var bufferMs = OutputThread.standardBufferMilliseconds

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard (2...16).contains(rooms) else {
            throw ValidationError("\"--rooms \(rooms)\" is not from 2 to 16")
        }
        guard (2...500).contains(times) else {
            throw ValidationError("\"--times \(times)\" is not from 2 to 500")
        }
        guard (5...1_000).contains(bufferMs) else {
            throw ValidationError("\"--buffer-ms \(bufferMs)\" is not from 5 to 1000")
        }
    }

    func run() async throws {
        let run = ResponseRun(rooms: rooms, times: times, bufferMs: bufferMs)
        guard let figures = try await untilInterrupted({ try await run.measure() }) else { return }
        if json {
            Terminal.output.say(jsonText(figures, pretty: true))
        } else {
            for line in ResponseFigures.text(figures, width: Terminal.output.width) {
                Terminal.output.say(line)
            }
        }
    }
}

/// Of one kind of command, milliseconds.
struct ResponseFigures: Encodable, Equatable, Sendable {
    var command: String
    var count: Int
    /// Until the last card plays what was asked for.
    var median: Double
    var p95: Double
    var longest: Double
    /// Until the client has its answer.
    var answeredMedian: Double

    init(_ command: String, heard: [Double], answered: [Double]) {
        self.command = command
        count = heard.count
        median = heard.nearestRank(0.5) ?? 0
        p95 = heard.nearestRank(0.95) ?? 0
        longest = heard.max() ?? 0
        answeredMedian = answered.nearestRank(0.5) ?? 0
    }

    static func text(_ figures: [ResponseFigures], width: Int) -> [String] {
        func column(_ title: String, _ rank: Int, right: Bool = true) -> Table.Column {
            Table.Column(title: title, alignsRight: right, rank: rank)
        }
        var table = Table(columns: [
            column("COMMAND", 9, right: false), column("TIMES", 2), column("MEDIAN ms", 7),
            column("P95 ms", 8), column("LONGEST ms", 6), column("ANSWERED ms", 5),
        ])
        func number(_ value: Double) -> String { String(format: "%.1f", value) }
        for figure in figures {
            table.rows.append([
                figure.command, "\(figure.count)", number(figure.median), number(figure.p95),
                number(figure.longest), number(figure.answeredMedian),
            ])
        }
        return table.lines(width: width)
    }
}

/// Starts the rooms, gives the commands, and looks for their effects in what left the cards.
struct ResponseRun: Sendable {
    /// A command, and when it was given.
    private struct Given {
        var kind: String
        var at: LocalInstant
        var answered: LocalInstant
    }

    let rooms: Int
    let times: Int
    let bufferMs: Int

    /// Seconds of the item: quiet in its first half, loud in its second.
    private static let half = 40.0
    private static let (quiet, loud): (Float, Float) = (0.05, 0.4)
    private static let sampleRate = 48_000
    private static let startLimit = Duration.seconds(30)
    private static let endLimit = Duration.seconds(4)

    /// What is given in each round, in this order; each changes how loud it is.
    private static let round: [(kind: String, command: GroupCommand)] = [
        ("seek", .seek(seconds: half + 20)), ("pause", .pause), ("play", .play),
        ("volume", .volume(room: nil, percent: 30)), ("volume", .volume(room: nil, percent: 100)),
        ("seek", .seek(seconds: 20)),
    ]

    func measure() async throws -> [ResponseFigures] {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/noise.wav"
        try WaveFile.write(noise(), sampleRate: Self.sampleRate, to: path)
        let house = DemoRoom.all(rooms, tag: "\(getpid())")
        func state(_ room: Int) -> String { "\(folder.path)/state-\(room)" }
        func card(_ room: Int) -> String { "\(folder.path)/card-\(room)" }
        try HouseholdAccess.prepare(house.enumerated().map { (state($0), $1.fullName) })
        let credentials = try Credentials.household(in: state(0), name: house[0].fullName)
        let port = try freePort()
        let leader = HostPort(host: "127.0.0.1", port: port)
        var children: [ChildProcess] = []
        do {
            for (number, room) in house.enumerated() {
                let output = OutputSpecification.virtual(
                    VirtualCardOptions(
                        partsPerMillion: room.partsPerMillion, wander: room.wander,
                        seed: UInt64(number + 1), record: card(number)))
                let role =
                    number == 0
                    ? ["lead", path, "--port", "\(port)", "--wait-for", "\(rooms)"]
                    : ["follow", "--leader", "\(leader)"]
                children.append(
                    try ChildProcess(
                        [ownProgram()] + role + [
                            "--no-avahi", "--name", room.fullName, "--output", "\(output)",
                            "--cache-folder", "\(folder.path)/cache-\(number)", "--state-folder",
                            state(number), "--die-with-parent", "--log-level", "warning",
                            "--buffer-ms", "\(bufferMs)",
                        ], log: "\(folder.path)/room-\(number).log"))
            }
            let given = try await give(to: leader, credentials, children)
            await end(children)
            return try look(for: given, in: (0..<rooms).map(card))
        } catch {
            await end(children)
            throw error
        }
    }

    private func end(_ children: [ChildProcess]) async {
        for child in children.reversed() { child.terminate() }
        await ChildProcess.reap(children, limit: Self.endLimit)
    }

    private func noise() -> [Float] {
        let frames = Int(2 * Self.half) * Self.sampleRate
        var samples: [Float] = []
        samples.reserveCapacity(2 * frames)
        for frame in 0..<frames {
            let level = frame < frames / 2 ? Self.quiet : Self.loud
            let sample = Float.random(in: -1...1) * level
            samples += [sample, sample]
        }
        return samples
    }

    private func give(
        to leader: HostPort, _ credentials: Credentials, _ children: [ChildProcess]
    ) async throws -> [Given] {
        let deadline = ContinuousClock.now + Self.startLimit
        while true {
            guard ContinuousClock.now < deadline, children.allSatisfy(\.isRunning) else {
                throw CommandError("the rooms did not begin to play: see tutti demo --verbose")
            }
            let status = try? await GroupClient.connect(
                to: leader, timeout: .seconds(1), credentials: credentials
            ).status()
            if status?.rooms.count == rooms,
                status?.rooms.allSatisfy({ $0.state == .playing }) ?? false
            {
                break
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        // Every room has all of the item, and a clock that is good.
        try await Task.sleep(for: .seconds(15))
        let client = try await GroupClient.connect(to: leader, credentials: credentials)
        var given: [Given] = []
        for _ in 0..<times {
            for (kind, command) in Self.round {
                let at = HostClock.now()
                try await client.perform(command)
                given.append(Given(kind: kind, at: at, answered: HostClock.now()))
                // Not in step with anything that a period has.
                let pause = Double.random(in: 0.75...0.95) - (HostClock.now() - at).seconds
                try await Task.sleep(for: .seconds(max(0.1, pause)))
            }
        }
        return given
    }

    // MARK: What left the cards

    private func look(for given: [Given], in paths: [String]) throws -> [ResponseFigures] {
        let recordings = try paths.map { try CardRecording.load(path: $0) }
        guard let base = recordings.compactMap(\.firstInstant).min() else {
            throw CommandError("no card recorded anything")
        }
        let takes = recordings.map { Take($0, name: "", base: base) }
        var heard: [String: [Double]] = [:]
        var answered: [String: [Double]] = [:]
        for one in given {
            let at = Double((one.at - base).count)
            let moments = takes.map { Self.change(in: $0, after: at) }
            guard let last = moments.compactMap(\.self).max(), !moments.contains(nil) else {
                throw CommandError("a \(one.kind) is not to be found in what left the cards")
            }
            heard[one.kind, default: []].append((last - at) / 1e6)
            answered[one.kind, default: []].append((one.answered - one.at).seconds * 1e3)
        }
        return heard.keys.sorted().map {
            ResponseFigures($0, heard: heard[$0] ?? [], answered: answered[$0] ?? [])
        }
    }

    /// Frames of one look at how loud it is: a millisecond.
    private static let window = 48

    /// When the sound becomes what it is half a second later, within two milliseconds.
    ///
    /// - Parameter at: nanoseconds since the base.
    private static func change(in take: Take, after at: Double) -> Double? {
        guard let segment = take.segments.first(where: { $0.start < at && $0.end > at + 0.65e9 })
        else { return nil }
        func level(from: Double, to: Double) -> Float {
            let (first, last) = (Int(segment.frame(at: from)), Int(segment.frame(at: to)))
            guard first >= 0, last <= segment.samples.count, last > first else { return 0 }
            let sum = segment.samples[first..<last].reduce(Float(0)) { $0 + $1 * $1 }
            return (sum / Float(last - first)).squareRoot()
        }
        let before = max(level(from: at - 0.1e9, to: at), Take.audible)
        let after = max(level(from: at + 0.5e9, to: at + 0.6e9), Take.audible)
        let border = (before * after).squareRoot()
        guard max(before, after) / min(before, after) > 1.5 else { return nil }
        let span = Double(window) / take.sampleRate * 1e9
        var found: Double?
        for place in stride(from: at, to: at + 0.5e9, by: span) {
            let isThere = (level(from: place, to: place + span) > border) == (after > border)
            if isThere, found == nil { found = place }
            // A fade that dips is not yet the end.
            if !isThere { found = nil }
        }
        return found
    }
}
