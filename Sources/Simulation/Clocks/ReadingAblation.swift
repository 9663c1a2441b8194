public import TuttiClockSync

/// What each reading of the clock earns: the same rooms on the same paths, once with all readings
/// and once without each of some.
///
/// A room runs on its own schedule (``ClockWorld``), since that depends on how good its clock is.
/// All runs of a seed have the same crystals and draw the same delays, packet for packet, until
/// their schedules part.
public struct ReadingAblation: Sendable {
    /// Seconds of a steady run, and from when on it counts.
    public static let seconds = ClockComparison.seconds
    static let settling = ClockComparison.settling
    /// When a joining room is read, seconds after its first packet.
    public static let joinTimes = [0.5, 2.0]
    /// Rooms that join for each seed of the steady runs.
    public static let joinsPerSeed = 10

    /// Something to be computed; independent of all the others.
    public struct Job: Sendable {
        enum Kind: Sendable { case steady, join }
        var path: ClockPath
        var seed: UInt64
        var kind: Kind
        /// `nil`: with all readings.
        var withheld: ReadingKind?
    }

    /// What came of a job, for ``report(of:)``.
    public struct Outcome: Sendable {
        var job: Job
        /// 99 of a hundred readings of a steady run, or the error at each of
        /// ``ReadingAblation/joinTimes``; µs.
        var figures: [Double]
    }

    /// Readings that are withheld, each by itself.
    public let kinds: [ReadingKind]
    /// Runs of each path, at least 1.
    public let seeds: Int
    /// All that is to be computed, in no order that matters.
    public let jobs: [Job]

    /// - Parameters:
    ///   - kinds: each is withheld by itself; empty: every one.
    ///   - names: paths out of ``ClockComparison/paths``; empty: all that are not held out, or all
    ///     when `heldOut`.
    ///   - seeds: steady runs of each path; ten joins for each.
    /// - Throws: ``SimulationError`` with the names there are.
    public init(
        _ kinds: [ReadingKind], paths names: [String], seeds: Int, heldOut: Bool
    ) throws(SimulationError) {
        let kinds = kinds.isEmpty ? ReadingKind.allCases : kinds
        let paths = try ClockComparison.paths(names, heldOut: heldOut)
        let first = heldOut ? ClockComparison.heldOutSeeds : 0
        var jobs: [Job] = []
        for path in paths {
            for kind in [nil] + kinds.map(Optional.some) {
                for number in 1...UInt64(max(1, seeds)) {
                    jobs.append(
                        Job(path: path, seed: first + number, kind: .steady, withheld: kind))
                }
                guard path.network.toRoom.download == nil else { continue }
                for number in 1...UInt64(max(1, seeds) * Self.joinsPerSeed) {
                    jobs.append(Job(path: path, seed: first + number, kind: .join, withheld: kind))
                }
            }
        }
        self.kinds = kinds
        self.seeds = max(1, seeds)
        self.jobs = jobs
    }

    /// Puts the outcomes together, in whatever order they were computed.
    public func report(of outcomes: [Outcome]) -> AblationReport {
        AblationReport(self, outcomes)
    }
}

extension ReadingAblation.Job {
    /// Computes it: some seconds of a processor.
    public func perform() -> ReadingAblation.Outcome {
        let world = ClockWorld(
            ClockParts(path, seed: seed), withholding: withheld.map { [$0] } ?? [])
        switch kind {
        case .steady:
            let errors = ClockErrors(world, seconds: ReadingAblation.seconds)
            let span = ReadingAblation.settling..<ReadingAblation.seconds + 1
            return .init(job: self, figures: [errors.percentiles(span).p99])
        case .join:
            let errors = ClockErrors(world, seconds: ReadingAblation.joinTimes.max()! + 0.1)
            return .init(
                job: self, figures: ReadingAblation.joinTimes.map { errors.magnitude(at: $0) })
        }
    }
}

/// One table: paths down, readings across.
public struct AblationReport: Codable, Equatable, Sendable, CustomStringConvertible {
    /// One kind of network, in a steady run or a join.
    public struct Row: Codable, Equatable, Sendable {
        /// The kind of network.
        public var path: String
        /// What is read: `steady`, or `joining, 0.5 s`.
        public var figure: String
        /// Error with all readings, µs: the median over seeds of 99 of a hundred; of joins 90 of a
        /// hundred rooms. `nil`: there is no clock.
        public var all: Double?
        /// The same without each reading, as a ratio to `all`, in the order of
        /// ``AblationReport/readings``.
        public var ratios: [Double?]
    }

    /// What was withheld, column by column.
    public var readings: [String]
    /// Seeds of the steady runs; ``ReadingAblation/joinsPerSeed`` times as many rooms join.
    public var seeds: Int
    /// Path by path, its steady run first.
    public var rows: [Row]

    init(_ ablation: ReadingAblation, _ outcomes: [ReadingAblation.Outcome]) {
        readings = ablation.kinds.map(\.rawValue)
        seeds = ablation.seeds
        rows = []
        var paths: [String] = []
        for job in ablation.jobs where paths.last != job.path.name { paths.append(job.path.name) }
        func values(_ path: String, _ isSteady: Bool, _ kind: ReadingKind?, _ place: Int)
            -> [Double]
        {
            outcomes.filter {
                $0.job.path.name == path && $0.job.withheld == kind
                    && (isSteady ? $0.job.kind == .steady : $0.job.kind == .join)
            }.map { $0.figures[place] }.sorted()
        }
        func add(_ path: String, _ name: String, _ isSteady: Bool, _ place: Int) {
            func figure(of kind: ReadingKind?) -> Double? {
                let values = values(path, isSteady, kind, place)
                guard !values.isEmpty else { return nil }
                let share = isSteady ? 0.5 : 0.9
                return values[min(values.count - 1, Int(share * Double(values.count)))]
            }
            // Without a clock there is no figure, and JSON has no word for infinity.
            func known(_ value: Double) -> Double? { value.isFinite ? value : nil }
            guard let all = figure(of: nil) else { return }
            rows.append(
                Row(
                    path: path, figure: name, all: known(all),
                    ratios: ablation.kinds.map {
                        known((figure(of: $0) ?? .infinity) / max(all, 1e-3))
                    }))
        }
        for path in paths {
            add(path, "steady", true, 0)
            for (place, time) in ReadingAblation.joinTimes.enumerated() {
                add(path, "joining, \(time) s", false, place)
            }
        }
    }

    public var description: String {
        var table = [["path", "", "all, µs"] + readings.map { "without \($0)" }]
        var last = ""
        for row in rows {
            table.append(
                [row.path == last ? "" : row.path, row.figure, ClockReport.number(row.all)]
                    + row.ratios.map { $0.map { "× \(ClockReport.precise($0))" } ?? "–" })
            last = row.path
        }
        return "Error of the clock, and by how many times it is larger without a reading.\n"
            + "Steady: 99 of a hundred readings of 300 s, median of \(seeds) seeds; joining: 90 of "
            + "a hundred of \(seeds * ReadingAblation.joinsPerSeed) rooms.\n\n"
            + ClockReport.aligned(table)
    }
}
