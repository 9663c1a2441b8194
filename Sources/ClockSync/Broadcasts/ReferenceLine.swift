import TuttiTiming

import func Glibc.sqrt

/// One room's clock against the moments at which its cluster hears beacons.
///
/// A Kalman filter of offset and rate. What it is fed is the difference of two rooms' receive
/// stamps, in which nothing is left of the sender, the air and the access point: some tens of µs of
/// receive path, fresh each time. Two crystals against each other are straight for half a minute,
/// so three hundred beacons tell their offset to one or two µs.
///
/// Among rooms of equal noise s, with the mean of all of them as the common moment, the filter of
/// each is the optimal one for the differences between them, however many there are.
struct ReferenceLine: Equatable, Sendable {
    /// Random walk of the rate, per √s; a quiet room's crystal does a fifth of this. Less makes a
    /// thermal ramp (0.1 ppm/s) visible, more makes the noise so.
    static let walk = 0.02e-6
    /// What the rate of a two-way line may be wrong by at first.
    static let rateSpread = 2e-6
    /// Stamps are not better than this; seconds.
    static let leastScale = 0.3e-6
    /// Residuals beyond so many deviations say nothing: a packet that waited in one receiver.
    static let gate = 4.0
    /// Memory of the scale, in beacons.
    static let scaleMemory = 64.0
    /// Gated in a row: the clock jumped.
    static let rejectionLimit = 24

    private(set) var map: ClockMap<LocalClock, GroupClock>
    /// Standard deviation of one stamp, seconds.
    private(set) var scale: Double
    private var covariance: DriftCovariance
    private var time: LocalInstant
    private var rejections = 0

    /// - Parameters:
    ///   - spread: of ``map``'s offset at `time`, seconds.
    ///   - scale: of one stamp, seconds.
    init(
        _ map: ClockMap<LocalClock, GroupClock>, at time: LocalInstant, spread: Double,
        scale: Double
    ) {
        self.map = map.reanchored(at: time)
        self.time = time
        self.scale = max(scale, Self.leastScale)
        covariance = DriftCovariance(
            offset: spread * spread, rate: Self.rateSpread * Self.rateSpread)
    }

    /// Variance of the offset, seconds².
    var variance: Double { covariance.offset }

    /// The clock jumped, or its stamps are nonsense.
    var isLost: Bool { rejections >= Self.rejectionLimit }

    mutating func advance(to instant: LocalInstant) {
        let dt = (instant - time).seconds
        guard dt > 0 else { return }
        covariance.advance(by: dt, walk: Self.walk)
        time = instant
        map = map.reanchored(at: instant)
    }

    /// Takes how much later than the cluster this room heard a beacon; call ``advance(to:)``
    /// before.
    ///
    /// - Parameters:
    ///   - residual: seconds by the cluster's time.
    ///   - rooms: that the mean of the cluster was made of.
    mutating func take(_ residual: Double, of rooms: Int) {
        // The mean moved with this room.
        let own = residual * sqrt(Double(rooms) / Double(rooms - 1))
        let limit = Self.gate * sqrt(scale * scale + variance)
        let size = min(own.magnitude, limit)
        // √(π/2) times the mean magnitude is the deviation of a normal distribution.
        scale += (1.2533 * size - scale) / Self.scaleMemory
        scale = max(scale, Self.leastScale)
        guard own.magnitude <= limit else {
            rejections += 1
            return
        }
        rejections = 0
        let gain = covariance.observe(noise: scale * scale)
        map.toAnchor += Nanoseconds(seconds: -gain.offset * residual)
        map.skew -= gain.rate * residual
    }

    /// Moves the line without learning anything: all lines of a cluster together.
    mutating func shift(by offset: Double, rate: Double) {
        map.toAnchor += Nanoseconds(seconds: offset)
        map.skew += rate
    }
}
