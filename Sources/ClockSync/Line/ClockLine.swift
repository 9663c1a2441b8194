import TuttiTiming

/// The line the rest of the room lives by: continuous, never running backwards, never stepped
/// once it is in use.
///
/// The estimate may move; the line only leans towards it. Inside ±`excess` the measurements cannot
/// contradict the line, so it coasts on the known skew and drifts to the middle slowly: temporary
/// changes of a wireless path stay nearly invisible.
///
///     e = estimate − line,  edge = e beyond ±excess
///     rate − 1 = skew + clip(edge/τ + (e − edge)/τᵢₙ, ±limit)
///
/// τ is short where the estimate is good; what exceeds twice its expected error goes within a
/// second in any case.
struct ClockLine: Equatable, Sendable {
    /// The age until which a line is young, and given up sooner: it may have been begun inside a
    /// burst of delay.
    static let youth = Nanoseconds.seconds(5)
    /// A young line is given up when it is off by more than this, seconds.
    static let youngBreak = 2e-3
    /// Any line is given up when it is off by more than this, seconds. A new one, announced by
    /// another epoch, takes its place: leaning at the limit would take longer than a room may sound
    /// wrong.
    static let hardBreak = 5e-3
    /// Largest lean. 100 ppm is 0.2 cent of pitch.
    static let limit = 100e-6
    /// Largest lean when the line is off by more than ``farOff``; 0.35 cent of pitch.
    static let farLimit = 200e-6
    /// Fastest line: two crystals at the ends of what exists, and the lean.
    static let rateLimit = 500e-6
    /// A line that is off by more than this is far off, seconds.
    static let farOff = 300e-6
    /// A deviation of more than this many expected errors is no chance.
    static let certainty = 2.0
    /// The time in which such a deviation is taken away, seconds. It is longer than
    /// ``longestLean``, or a lean would go beyond its aim while nothing new is measured.
    static let correction = 1.0
    /// How long a lean lasts at most while nothing new is measured.
    static let longestLean = Nanoseconds.milliseconds(250)
    /// A lean lasts no longer than this share of τ either.
    static let leanShare = 0.8
    /// The shortest τ, seconds, which is that of a line that has just begun. It may be off by 5 µs,
    /// and what is learnt in the next half second is worth as much as all before. With 0.3 such
    /// lines are half as much again off by then.
    static let youngTime = 0.1
    /// The age at which a line has all its steadiness, seconds.
    static let calmAge = 72.0

    private(set) var map: ClockMap<LocalClock, GroupClock>
    /// Since when it is being measured.
    private(set) var startedAt: LocalInstant
    /// When it was last leaned.
    private var aimedAt: LocalInstant
    /// How long that may last.
    private var leanLasts = Self.longestLean
    /// The part of the rate that is correction, not skew.
    private(set) var lean = 0.0
    /// Estimate minus line at ``aimedAt``, seconds.
    private(set) var deviation = 0.0

    init(at now: LocalInstant, reading: GroupInstant, skew: Double, startedAt: LocalInstant) {
        self.map = ClockMap(from: now, to: reading, skew: skew)
        self.startedAt = startedAt
        self.aimedAt = now
    }

    /// Measuring begins anew, and nobody plays by it yet.
    mutating func begin(at now: LocalInstant) { startedAt = now }

    /// When it has to be aimed anew, or it would go too far.
    var leanEnds: LocalInstant { aimedAt + leanLasts }

    /// Whether an error of `edge` seconds calls for another line instead of leaning.
    func breaks(at now: LocalInstant, edge: Double) -> Bool {
        let age = now - startedAt
        return edge.magnitude > (age < Self.youth ? Self.youngBreak : Self.hardBreak)
    }

    /// Leans from `now` on; the line stays continuous.
    ///
    /// - Parameters:
    ///   - deviation: estimate minus line now, seconds.
    ///   - error: expected error of the estimate, seconds; a poor one is followed slowly.
    mutating func aim(
        at now: LocalInstant, deviation: Double, excess: Double, error: Double, skew: Double
    ) {
        let age = max(0, (now - startedAt).seconds)
        let edge = Self.edge(deviation, excess)
        // A young line has no steadiness to lose yet: its estimate gets better as fast as it ages.
        // A good estimate is followed at once, a poor one the slower the older the line is.
        let doubt = min(max(error / 3e-6, 0.5), 8)
        let slow = min(1.5 * doubt, Self.youngTime + 1.5 * doubt * age / Self.calmAge)
        let inside = min(90, 1 + age / 2)
        let limit = edge.magnitude > Self.farOff ? Self.farLimit : Self.limit
        // What lies beyond the doubt of the estimate is not smoothed, it is an error.
        let sure = Self.edge(deviation, excess + Self.certainty * error)
        let wanted =
            edge / slow + (deviation - edge) / max(inside, slow)
            + sure * (1 / min(slow, Self.correction) - 1 / slow)
        let total = skew + min(max(wanted, -limit), limit)
        let rate = min(max(total, -Self.rateLimit), Self.rateLimit)
        map = map.reanchored(at: now)
        map.skew = rate
        lean = rate - skew
        aimedAt = now
        leanLasts = min(Self.longestLean, Nanoseconds(seconds: Self.leanShare * slow))
        self.deviation = deviation
    }

    /// Follows the skew alone, when there is no estimate to lean to.
    mutating func coast(at now: LocalInstant, skew: Double) {
        map = map.reanchored(at: now)
        map.skew = skew
        lean = 0
        aimedAt = now
    }

    /// Whether a deviation is certain and more than a second of leaning takes away.
    static func isJump(_ deviation: Double, excess: Double, error: Double) -> Bool {
        edge(deviation, excess + certainty * error).magnitude > farLimit
    }

    /// The part of `deviation` that lies outside ±`excess`.
    static func edge(_ deviation: Double, _ excess: Double) -> Double {
        deviation > excess ? deviation - excess : deviation < -excess ? deviation + excess : 0
    }
}
