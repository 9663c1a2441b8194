/// What a ``ClockComparison`` found: tables of ours against theirs.
public struct ClockReport: Encodable, Equatable, Sendable {
    /// Errors of one filter on one kind of network; the median over the seeds, µs. `nil`: there
    /// was no clock.
    public struct Figure: Encodable, Equatable, Sendable {
        /// The filter's name.
        public var filter: String
        /// Half of the errors are not above it.
        public var p50: Double?
        /// 99 of a hundred errors are not above it.
        public var p99: Double?
    }

    /// How ours fares on one kind of network.
    public enum Verdict: String, Encodable, Sendable {
        /// No other is better at p99.
        case wins
        /// Within ``ClockReport/tieShare`` or ``ClockReport/tieMicroseconds`` of the best.
        case ties
        case loses
    }

    /// All filters on one kind of network, in a steady run.
    public struct Column: Encodable, Equatable, Sendable {
        /// The kind of network.
        public var path: String
        /// Ours, ours on its own schedule, then the others.
        public var figures: [Figure]
        /// The best of the others at p99.
        public var best: String
        /// How ours fares beside ``best``.
        public var verdict: Verdict
    }

    /// Error of one filter some time after the first packet; µs over the seeds.
    public struct Join: Encodable, Equatable, Sendable {
        /// The kind of network.
        public var path: String
        /// The filter's name.
        public var filter: String
        /// When the errors were read, since the first packet.
        public var seconds: [Double]
        /// Half of the joins were not worse, at each of ``seconds``; `nil`: there was no clock.
        public var p50: [Double?]
        /// 95 of a hundred joins were not worse; the same.
        public var p95: [Double?]
    }

    /// From when on a room's own line may be played by, and how good it is then; over the joins.
    public struct Lock: Encodable, Equatable, Sendable {
        /// The kind of network.
        public var path: String
        /// Half and 95 hundredths of the seconds from the first packet on.
        public var secondsP50: Double?
        /// 95 hundredths of them; `nil`: fewer rooms had such a line at all.
        public var secondsP95: Double?
        /// Half and 95 hundredths of the error at that moment, µs.
        public var errorP50: Double?
        /// 95 hundredths of it.
        public var errorP95: Double?
        /// Half and 95 hundredths of the largest error in the two seconds after it, µs.
        public var laterP50: Double?
        /// 95 hundredths of it.
        public var laterP95: Double?
        /// Packets of the first half second that nothing held up, in the direction that has fewer:
        /// half and 5 hundredths.
        public var unhinderedP50: Double?
        /// 5 hundredths of them: fewer in one of twenty joins.
        public var unhinderedP5: Double?
    }

    /// How filters come through something that happens to one kind of network.
    public struct Event: Encodable, Equatable, Sendable {
        /// One filter after the event.
        public struct Recovery: Encodable, Equatable, Sendable {
            /// The filter's name.
            public var filter: String
            /// Until the error stays below the limit, the median over the seeds; `nil`: never.
            public var seconds: Double?
            /// 99 hundredths of the error 60 to 100 s later; µs.
            public var laterP99: Double?
        }
        /// The kind of network.
        public var path: String
        /// What happens.
        public var event: String
        /// Below this a filter counts as recovered.
        public var limitMicroseconds: Double
        /// Each filter, ours first.
        public var recoveries: [Recovery]
    }

    /// How far above the best is a tie.
    public static let tieShare = 0.1
    /// The same in µs, where that is more: filters that are so close are told apart by chance.
    public static let tieMicroseconds = 0.5

    /// How many seeds the steady columns are the median of.
    public var seeds: Int
    /// Whether seeds and shapes are those that no constant was chosen on.
    public var isHeldOut: Bool
    /// Steady runs, one kind of network each.
    public var columns: [Column]
    /// Errors of rooms that join; empty where joins were not asked for.
    public var joins: [Join]
    /// When joining rooms may play; empty where joins were not asked for.
    public var locks: [Lock]
    /// What events do; empty where they were not asked for.
    public var events: [Event]

    /// The paths on which another filter is better than ours at p99.
    public var lost: [String] { columns.filter { $0.verdict == .loses }.map(\.path) }
}

extension ClockComparison {
    /// Puts the outcomes together, in whatever order they were computed.
    public func report(of outcomes: [Outcome]) -> ClockReport {
        var steady: [String: [[String: [Double]]]] = [:]
        var joins: [String: [[String: [Double]]]] = [:]
        var events: [String: [[String: [Double]]]] = [:]
        for outcome in outcomes.sorted(by: { $0.job.seed < $1.job.seed }) {
            let path = outcome.job.path.name
            switch outcome.job.kind {
            case .steady: steady[path, default: []].append(outcome.figures)
            case .join: joins[path, default: []].append(outcome.figures)
            case .event(let event):
                events[path + "/" + event.rawValue, default: []].append(outcome.figures)
            }
        }
        let paths = ClockPath.all.filter { path in jobs.contains { $0.path.name == path.name } }
        return ClockReport(
            seeds: seeds, isHeldOut: jobs.contains { $0.seed > Self.heldOutSeeds },
            columns: paths.compactMap { path in
                steady[path.name].map { Self.column(path.name, $0) }
            },
            joins: paths.flatMap { path in Self.joins(path.name, joins[path.name] ?? []) },
            locks: paths.compactMap { path in joins[path.name].map { Self.lock(path.name, $0) } },
            events: paths.flatMap { path in
                ClockEvent.allCases.compactMap { event in
                    events[path.name + "/" + event.rawValue].map { Self.event(event, path, $0) }
                }
            })
    }

    private static func column(_ path: String, _ runs: [[String: [Double]]]) -> ClockReport.Column {
        let names = [ours, oursAlone] + baselines.map(\.name)
        let figures = names.map { name in
            ClockReport.Figure(
                filter: name, p50: quantile(runs.compactMap { $0[name]?[0] }, 0.5),
                p99: quantile(runs.compactMap { $0[name]?[1] }, 0.5))
        }
        let mine = figures[0].p99 ?? .infinity
        let best = figures.dropFirst(2).min { ($0.p99 ?? .infinity) < ($1.p99 ?? .infinity) }!
        let theirs = best.p99 ?? .infinity
        let limit = max(
            theirs * (1 + ClockReport.tieShare), theirs + ClockReport.tieMicroseconds)
        return ClockReport.Column(
            path: path, figures: figures, best: best.filter,
            verdict: mine <= theirs ? .wins : mine <= limit ? .ties : .loses)
    }

    private static func joins(
        _ path: String, _ runs: [[String: [Double]]]
    ) -> [ClockReport.Join] {
        guard !runs.isEmpty else { return [] }
        let others = [
            "minimum delay, Kalman", "best of 8, Kalman", "hulls of 60 s", "median of 200",
        ]
        return ([ours, oursStored, oursAlone] + others).map { name in
            func part(_ share: Double) -> [Double?] {
                joinTimes.indices.map { time in
                    quantile(runs.compactMap { $0[name]?[time] }, share)
                }
            }
            return ClockReport.Join(
                path: path, filter: name, seconds: joinTimes, p50: part(0.5), p95: part(0.95))
        }
    }

    private static func lock(_ path: String, _ runs: [[String: [Double]]]) -> ClockReport.Lock {
        func part(_ index: Int, _ share: Double) -> Double? {
            quantile(runs.compactMap { $0[lock]?[index] }, share)
        }
        return ClockReport.Lock(
            path: path, secondsP50: part(0, 0.5), secondsP95: part(0, 0.95),
            errorP50: part(1, 0.5), errorP95: part(1, 0.95), laterP50: part(2, 0.5),
            laterP95: part(2, 0.95), unhinderedP50: part(3, 0.5), unhinderedP5: part(3, 0.05))
    }

    private static func event(
        _ event: ClockEvent, _ path: ClockPath, _ runs: [[String: [Double]]]
    ) -> ClockReport.Event {
        let names = [ours, oursAlone] + baselines.map(\.name)
        return ClockReport.Event(
            path: path.name, event: event.rawValue, limitMicroseconds: path.goodError * 1e6,
            recoveries: names.map { name in
                .init(
                    filter: name, seconds: quantile(runs.compactMap { $0[name]?[0] }, 0.5),
                    laterP99: quantile(runs.compactMap { $0[name]?[1] }, 0.5))
            })
    }

    /// `nil` for infinity, which is a clock that is not there.
    private static func quantile(_ values: [Double], _ share: Double) -> Double? {
        guard !values.isEmpty else { return nil }
        let value = values.sorted()[min(values.count - 1, Int(share * Double(values.count)))]
        return value.isFinite ? value : nil
    }
}
