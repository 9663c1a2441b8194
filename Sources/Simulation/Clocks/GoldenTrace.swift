import TuttiClockSync
import TuttiTiming

/// Exchanges kept in a file, and the truth about each: what an estimator must go on making of them
/// is pinned by a test.
///
///     t1,forward,turnaround,roundTrip,truth
///
/// in nanoseconds: when the request left by the room's clock, t2 − t1 and the truth (leader minus
/// room when the reply arrived) without the difference of the epochs, t3 − t2, and t4 − t1. One row
/// an exchange, in the order of arrival.
struct GoldenTrace: Equatable, Sendable {
    struct Row: Equatable, Sendable {
        var sample: ExchangeSample
        /// Leader minus room at `t4` without the difference of the epochs; nanoseconds.
        var truth: Int64
    }

    static let header = "t1,forward,turnaround,roundTrip,truth"
    private static let epochs = ClockPair.leaderEpoch - ClockPair.localEpoch

    var name: String
    var rows: [Row]

    init(name: String, _ parts: ClockParts, seconds: Double) {
        let trace = ExchangeTrace(parts, seconds: seconds)
        var clocks = trace.clocks
        self.name = name
        rows = trace.exchanges.map { exchange in
            let local = exchange.sample.t4
            let group = clocks.group(clocks.instant(of: local))
            return Row(
                sample: exchange.sample,
                truth: group.nanoseconds - local.nanoseconds - Self.epochs)
        }
    }

    /// - Returns: `nil` when a line is not of the form.
    init?(name: String, text: String) {
        self.name = name
        rows = []
        let lines = text.split(separator: "\n")
        guard lines.first.map(String.init) == Self.header else { return nil }
        for line in lines.dropFirst() {
            let numbers = line.split(separator: ",").compactMap { Int64($0) }
            guard numbers.count == 5 else { return nil }
            let t1 = LocalInstant(nanoseconds: ClockPair.localEpoch + numbers[0])
            let t2 = GroupInstant(nanoseconds: t1.nanoseconds + Self.epochs + numbers[1])
            rows.append(
                Row(
                    sample: ExchangeSample(
                        t1: t1, t2: t2, t3: t2 + Nanoseconds(numbers[2]),
                        t4: t1 + Nanoseconds(numbers[3]), stamps: .kernel),
                    truth: numbers[4]))
        }
    }

    var text: String {
        let lines = rows.map { row in
            let sample = row.sample
            let numbers = [
                sample.t1.nanoseconds - ClockPair.localEpoch,
                sample.t2.nanoseconds - sample.t1.nanoseconds - Self.epochs,
                (sample.t3 - sample.t2).count, (sample.t4 - sample.t1).count, row.truth,
            ]
            return numbers.map(String.init).joined(separator: ",")
        }
        return ([Self.header] + lines).joined(separator: "\n") + "\n"
    }
}

/// What an estimator makes of a ``GoldenTrace``.
struct GoldenOutcome: Equatable, Sendable {
    static let header = "trace,p50,p99,locked,restarts,skew,boundP50,boundMisses"
    /// Errors count from here on, and not before the clock is locked; seconds.
    static let settling = 10.0

    var trace: String
    /// Half and 99 hundredths of the magnitudes of the errors at each sample; µs.
    var p50: Double
    var p99: Double
    /// When the clock first locks; seconds, infinite for never.
    var locked: Double
    var restarts: Int
    /// Estimated skew at the end of the trace; ppm.
    var skew: Double
    /// Half of the bounds are smaller; µs.
    var boundP50: Double
    /// Samples at which the bound does not contain the truth, from the first on.
    var boundMisses: Int

    /// Replays a trace.
    init(_ golden: GoldenTrace) {
        var filter = EstimatorFilter()
        var (errors, bounds): ([Double], [Double]) = ([], [])
        (trace, locked, boundMisses) = (golden.name, .infinity, 0)
        for row in golden.rows {
            let exchange = Exchange(row.sample)
            filter.receive(exchange)
            guard let clock = filter.estimator.sharedClock(at: row.sample.t4) else { continue }
            let reading = Exchange.offset(clock.map(row.sample.t4), row.sample.t4)
            let error = reading - Double(row.truth) * 1e-9
            if clock.quality == .locked { locked = min(locked, exchange.arrived) }
            if error.magnitude > clock.uncertainty.seconds { boundMisses += 1 }
            guard exchange.arrived > max(Self.settling, locked) else { continue }
            errors.append(error.magnitude * 1e6)
            bounds.append(clock.uncertainty.microseconds)
        }
        // A clock that never locks has no error that counts.
        func quantile(_ values: [Double], _ share: Int) -> Double {
            values.isEmpty ? .infinity : values.sorted()[values.count * share / 100]
        }
        p50 = quantile(errors, 50)
        p99 = quantile(errors, 99)
        boundP50 = quantile(bounds, 50)
        restarts = filter.estimator.restarts
        skew = filter.estimator.storedSkew.skew * 1e6
    }

    /// - Returns: `nil` when the line is not of the form.
    init?(line: Substring) {
        let words = line.split(separator: ",").map(String.init)
        guard words.count == 8, let p50 = Double(words[1]), let p99 = Double(words[2]),
            let locked = Double(words[3]), let restarts = Int(words[4]),
            let skew = Double(words[5]), let boundP50 = Double(words[6]),
            let boundMisses = Int(words[7])
        else { return nil }
        (trace, self.p50, self.p99, self.locked) = (words[0], p50, p99, locked)
        (self.restarts, self.skew, self.boundP50) = (restarts, skew, boundP50)
        self.boundMisses = boundMisses
    }

    var line: String {
        func thousandths(_ value: Double) -> String {
            let whole = Int64(saturating: value * 1_000)
            let digits = String(whole.magnitude)
            let padded = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
            return (whole < 0 ? "-" : "") + padded.dropLast(3) + "." + padded.suffix(3)
        }
        return [
            trace, thousandths(p50), thousandths(p99), thousandths(locked), String(restarts),
            thousandths(skew), thousandths(boundP50), String(boundMisses),
        ].joined(separator: ",")
    }
}

/// The traces that the tests keep, and how they are made.
public enum GoldenTraces {
    /// What the outcomes' file is called.
    public static let expectations = "expected.csv"
    static let seed: UInt64 = 2_026
    static let seconds = 60.0
    static let eventTime = 30.0

    /// One of each kind of path and of event.
    static func make() -> [GoldenTrace] {
        let paths = [
            "wired", "wired-load", "wifi", "busy-wifi", "bloat", "two-hops", "pareto", "asymmetric",
        ]
        let calm = paths.compactMap { ClockPath.named($0) }.map { path in
            GoldenTrace(name: path.name, ClockParts(path, seed: seed), seconds: seconds)
        }
        guard let wired = ClockPath.named("wired") else { return calm }
        let events: [ClockEvent] = [.suspend, .jump, .detour, .outage]
        return calm
            + events.map { event in
                GoldenTrace(
                    name: "wired-" + event.rawValue,
                    ClockParts(wired, seed: seed).with(event, at: eventTime), seconds: seconds)
            }
    }

    /// The files of all traces and the one of what the clock makes of them.
    public static func files() -> [(name: String, text: String)] {
        let traces = make()
        let outcomes = traces.map { GoldenOutcome($0).line }
        let expected = ([GoldenOutcome.header] + outcomes).joined(separator: "\n") + "\n"
        return traces.map { ($0.name + ".csv", $0.text) } + [(expectations, expected)]
    }
}
