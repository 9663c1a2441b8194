public import TuttiTiming

/// What is known of a leader's rate against ours, to be kept on disk between sessions.
public struct StoredSkew: Equatable, Sendable {
    /// Leader's rate against ours, minus one.
    public var skew: Double
    /// Standard deviation. Crystals age and warm up: 2e-6 is right for yesterday's value.
    public var deviation: Double

    /// What is known of a leader; a skew beyond 400 ppm, or a deviation that is not positive,
    /// counts as unknown where it is used.
    public init(skew: Double, deviation: Double = 2e-6) {
        self.skew = skew
        self.deviation = deviation
    }

    /// What is known of two crystals that nobody has compared: ±80 ppm, which has room for one that
    /// is not ordinary. With less, a room whose host is further off believes too soon that it knows
    /// its clock.
    public static let unknown = StoredSkew(skew: 0, deviation: 80e-6)

    /// Of a clock that another machine goes on with: at the rate that it had, as well as that machine
    /// knew it. After half a minute on a poor path that is within 0.5 ppm.
    public static func continuing(_ clock: SharedClock) -> StoredSkew {
        StoredSkew(skew: clock.map.skew, deviation: 0.5e-6)
    }
}

/// A scalar Kalman filter of the skew; smooths what the windows say.
struct SkewFilter: Sendable {
    /// Random walk of a crystal, per √s.
    static let walk = 0.02e-6
    /// The largest skew that is believed, 1. No crystal is further off; a virtual machine's clock
    /// may claim to be.
    static let limit = 400e-6
    /// How many doubts in a row overturn the prior: two seconds of solves, some tenths when
    /// joining.
    static let doubtsToForget = 8

    private(set) var skew: Double
    private(set) var variance: Double
    /// What was known before the samples at hand.
    private(set) var prior: (skew: Double, variance: Double)
    private var doubts = 0

    init(_ stored: StoredSkew) {
        let isSound = stored.skew.magnitude <= Self.limit && stored.deviation > 0
        let known = isSound ? stored : .unknown
        let deviation = min(known.deviation, StoredSkew.unknown.deviation)
        (skew, variance) = (known.skew, deviation * deviation)
        prior = (skew, variance)
    }

    /// The samples want to leave what was thought possible: believe in less. When they insist, the
    /// prior was wrong too.
    mutating func doubt() {
        let most = StoredSkew.unknown.deviation * StoredSkew.unknown.deviation
        variance = min(9 * variance + 1e-12, most)
        doubts += 1
        if doubts >= Self.doubtsToForget { prior.variance = most }
    }

    /// The samples agree with what was thought possible.
    mutating func trust() { doubts = 0 }

    /// A fit that began with ``prior`` and holds all samples says everything there is to know.
    mutating func take(_ fit: ClockReading) {
        skew = min(max(fit.skew, -Self.limit), Self.limit)
        variance = fit.skewSpread * fit.skewSpread
    }

    /// After a break the crystals are still the same ones.
    mutating func loosen() {
        variance = max(variance, 4e-12)
        prior = (skew, variance)
    }

    mutating func advance(by seconds: Double) { variance += Self.walk * Self.walk * seconds }

    /// - Parameter interval: seconds since the update before; overlapping windows repeat
    ///   themselves.
    mutating func update(with fit: ClockReading, after interval: Double) {
        guard fit.span > 0.02 else { return }
        let noise = max(2 * fit.noise / fit.span, fit.skewSpread)
        let ramp = EnvelopeSolver.ramp * fit.span / 2
        let lopsided = 0.42 * fit.excess / fit.span
        let overlap = max(1, fit.span / max(interval, 1e-3))
        let measured = (noise * noise + ramp * ramp + lopsided * lopsided) * overlap
        let gain = variance / (variance + measured)
        skew = min(max(skew + gain * (fit.skew - skew), -Self.limit), Self.limit)
        variance *= 1 - gain
    }
}
