/// What a demo found, as text, as JSON and as numbers for other programs.
struct DemoReport: Encodable {
    struct Skew: Encodable {
        var p50: Double?
        var p99: Double?
        var max: Double?
    }

    struct RoomReport: Encodable {
        var name: String
        /// Error of the crystal of its card.
        var partsPerMillion: Double
        var dropouts: Int
        /// `nil`, and absent in JSON, for a room that played for too short a time.
        var cost: RoomCost?
    }

    struct Pair: Encodable {
        var first: String
        var second: String
        /// Median; positive: the second is later.
        var medianMicroseconds: Double?
        var maxMicroseconds: Double?
        var unmatchedWindows: Int
    }

    struct Event: Encodable {
        var room: String
        var kind: String
        var seconds: Double
        var milliseconds: Double
    }

    var skewMicroseconds: Skew
    var startSkewMicroseconds: Double?
    var dropouts: Int
    var rooms: [RoomReport]
    var pairs: [Pair]
    var events: [Event]
    var windows: Int
    var unmatchedWindows: Int
    var seconds: Double
    var title: String
    var discovery: String
    var inLockstep: Bool
    var reason: String?

    init(_ result: DemoResult) {
        let lockstep = result.lockstep
        func number(_ x: Double) -> Double? { x.isFinite ? (x * 1e4).rounded() / 1e4 : nil }
        func hundredths(_ x: Double) -> Double { (x * 100).rounded() / 100 }
        skewMicroseconds = Skew(
            p50: number(lockstep.percentile(0.5)), p99: number(lockstep.percentile(0.99)),
            max: number(lockstep.maximum))
        startSkewMicroseconds = number(lockstep.startSkewMicroseconds)
        dropouts = lockstep.dropouts.count
        rooms = result.rooms.enumerated().map { number, room in
            RoomReport(
                name: room.name, partsPerMillion: room.partsPerMillion,
                dropouts: lockstep.dropouts.count { $0.room == number },
                cost: result.costs.indices.contains(number)
                    ? result.costs[number].map {
                        RoomCost(
                            processorPercent: hundredths($0.processorPercent),
                            residentMegabytes: hundredths($0.residentMegabytes))
                    } : nil)
        }
        pairs = lockstep.pairs.enumerated().map { index, pair in
            let points = lockstep.points.filter { $0.pair == index }
            let values = points.compactMap(\.skewMicroseconds).sorted()
            return Pair(
                first: lockstep.rooms[pair.first], second: lockstep.rooms[pair.second],
                medianMicroseconds: values.isEmpty ? nil : number(values[values.count / 2]),
                maxMicroseconds: values.map(abs).max().flatMap(number),
                unmatchedWindows: points.count - values.count)
        }
        events = lockstep.dropouts.map {
            Event(
                room: lockstep.rooms[$0.room], kind: $0.kind.rawValue,
                seconds: number($0.seconds) ?? 0, milliseconds: number($0.milliseconds) ?? 0)
        }
        windows = lockstep.points.count
        unmatchedWindows = lockstep.unmatchedCount
        seconds = number(lockstep.programmeSeconds) ?? 0
        title = result.title
        discovery = result.discovery.rawValue
        howFound = result.discovery.phrase
        inLockstep = lockstep.complaint == nil
        reason = lockstep.complaint
        points = lockstep.points
        pairNames = lockstep.pairs.map { (lockstep.rooms[$0.first], lockstep.rooms[$0.second]) }
        folder = result.folder
    }

    private let points: [Lockstep.Point]
    private let pairNames: [(String, String)]
    private let folder: String?
    private let howFound: String

    private enum CodingKeys: String, CodingKey {
        case skewMicroseconds, startSkewMicroseconds, dropouts, rooms, pairs, events, windows
        case unmatchedWindows, seconds, title, discovery, inLockstep, reason
    }

    /// One line that says it all.
    var headline: String {
        "\(rooms.count) rooms, skew p50 \(text(skewMicroseconds.p50)) p99 \(text(skewMicroseconds.p99)) max \(text(skewMicroseconds.max)) µs, start \(text(startSkewMicroseconds)) µs, \(dropouts) dropouts"
    }

    func text(colour: Bool) -> String {
        var table = Table(columns: [
            .init(title: "pair", rank: 5),
            .init(title: "median µs", alignsRight: true, rank: 3),
            .init(title: "worst µs", alignsRight: true, rank: 4),
            .init(title: "unmatched", alignsRight: true, rank: 1),
        ])
        table.rows = pairs.map {
            [
                "\($0.first) → \($0.second)",
                $0.medianMicroseconds.map { $0.text(2, sign: true) } ?? "–",
                text($0.maxMicroseconds), "\($0.unmatchedWindows)",
            ]
        }
        let verdict = inLockstep ? "In lockstep." : "Not in lockstep."
        let paint = inLockstep ? "\u{1B}[32m" : "\u{1B}[31m"
        var lines = [
            "", "\(title), \(seconds.text(1)) s, \(howFound)",
            "Skew between what left the virtual cards, against true time (\(windows) windows of 1 s):",
            "",
        ]
        lines += table.lines(width: 100)
        lines += [
            "",
            "all pairs   p50 \(text(skewMicroseconds.p50)) µs   p99 \(text(skewMicroseconds.p99)) µs   max \(text(skewMicroseconds.max)) µs",
            "first 0.5 s \(text(startSkewMicroseconds)) µs (worst pair)",
            "dropouts    \(dropouts)",
        ]
        lines.append("cost        \(costText)")
        for event in events.prefix(10) {
            lines.append(
                "  \(event.room): \(event.kind) of \(event.milliseconds.text(3)) ms at \(event.seconds.text(2)) s"
            )
        }
        if let folder { lines.append("saved in    \(folder)") }
        lines.append(colour ? "\(paint)\(verdict)\u{1B}[0m" : verdict)
        return lines.joined(separator: "\n") + "\n"
    }

    /// The cost of the dearest room, so that no room costs more than is said.
    private var costText: String {
        let costs = rooms.compactMap(\.cost)
        guard let processor = costs.map(\.processorPercent).max(),
            let memory = costs.map(\.residentMegabytes).max()
        else {
            let least = CostMeter.leastPlaying / .seconds(1)
            return "not measured: that takes \(least.text(0)) s of music"
        }
        return
            "\(processor.text(2)) % of a core and \(memory.text(1)) MB in a room at most, its card included"
    }

    /// One line per window.
    var csv: String {
        var lines = ["seconds,first,second,skew_us"]
        for point in points {
            let (first, second) = pairNames[point.pair]
            let skew = point.skewMicroseconds.map { "\($0)" } ?? "unmatched"
            lines.append("\(point.seconds),\(first),\(second),\(skew)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func text(_ number: Double?) -> String { number.map { $0.text(2) } ?? "–" }
}
