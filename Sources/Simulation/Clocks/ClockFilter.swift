import TuttiClockSync
import TuttiTiming

/// Whatever turns exchanges into the leader's time: ours and those that it is compared with.
protocol ClockFilter: Sendable {
    mutating func receive(_ exchange: Exchange)

    /// Leader minus room at a time of the room's clock, in the units of ``Exchange``; `nil` while
    /// nothing is known. Never called with a time before an exchange that was received.
    mutating func offset(at time: Double) -> Double?
}

/// The filters of the comparison, ours first.
enum ClockFilters {
    static let ours = "tutti"

    /// A fresh filter of this name, which has seen no exchange; `nil` for an unknown name.
    static func make(_ name: String) -> (any ClockFilter)? {
        switch name {
        case ours: EstimatorFilter()
        case "median of 200": MedianFilter()
        case "best of 8, Kalman": BurstKalmanFilter()
        case "least squares of 32": RegressionFilter()
        case "weighted squares": WeightedRegressionFilter()
        case "best delay of 8, PLL": MinimumDelayLoop()
        case "minimum delay, Kalman": MinimumDelayKalman()
        case "one way": OneWaySmoother()
        case "hulls of 60 s": DualHullFilter()
        default: nil
        }
    }

    static let baselines: [(name: String, like: String)] = [
        ("median of 200", "Snapcast"),
        ("best of 8, Kalman", "Sendspin"),
        ("least squares of 32", "GStreamer's network clock"),
        ("weighted squares", "chrony"),
        ("best delay of 8, PLL", "NTP"),
        ("minimum delay, Kalman", "RADclock's idea in a Kalman filter"),
        ("one way", "nqptp, AirPlay 2"),
        ("hulls of 60 s", "TICSync; Zhang, Liu, Xia"),
    ]
}

/// Ours: what a room publishes, without its own schedule.
struct EstimatorFilter: ClockFilter {
    private(set) var estimator: ClockEstimator

    init(stored: StoredSkew = .unknown) { estimator = ClockEstimator(stored: stored) }

    mutating func receive(_ exchange: Exchange) {
        catchUp(to: exchange.sample.t4)
        estimator.expectUse(for: .joining, at: exchange.sample.t4)
        _ = estimator.receive(exchange.sample, at: exchange.sample.t4)
    }

    mutating func offset(at time: Double) -> Double? {
        let local = LocalInstant(
            nanoseconds: ClockPair.localEpoch + Int64(saturating: time * 1e9))
        catchUp(to: local)
        guard let clock = estimator.sharedClock(at: local) else { return nil }
        return Exchange.offset(clock.map(local), local)
    }

    /// Does what is due up to `now`, as a room would between packets.
    private mutating func catchUp(to now: LocalInstant) {
        var rounds = 0
        while let due = estimator.nextDeadline, due <= now, rounds < 100 {
            estimator.advance(to: due)
            rounds += 1
        }
    }
}
