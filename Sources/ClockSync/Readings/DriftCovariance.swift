/// How well an offset and the rate at which it drifts are known: the covariance of a Kalman filter
/// of two clocks.
///
/// The rate walks at random, the offset is its integral. (The model of two states in L. Galleani, A
/// tutorial on the two-state model of the atomic clock noise, Metrologia 45, 2008, without white
/// frequency noise: the readings' own noise drowns that of a crystal.)
struct DriftCovariance: Equatable, Sendable {
    /// Variance of the offset, seconds².
    private(set) var offset: Double
    private var cross = 0.0
    /// Variance of the rate.
    private(set) var rate: Double

    init(offset: Double, rate: Double) {
        self.offset = offset
        self.rate = rate
    }

    /// - Parameter walk: of the rate, per √s.
    mutating func advance(by dt: Double, walk: Double) {
        let step = walk * walk * dt
        offset += dt * (2 * cross + dt * (rate + step / 3))
        cross += dt * (rate + step / 2)
        rate += step
    }

    /// Variance of the offset after `dt`, as far as the rate is unknown now; seconds².
    func offset(after dt: Double) -> Double { offset + dt * (2 * cross + dt * rate) }

    /// Takes an observation of the offset.
    ///
    /// - Parameter noise: its variance, seconds².
    /// - Returns: how much of what it differs by goes into the offset, and into the rate.
    mutating func observe(noise: Double) -> (offset: Double, rate: Double) {
        let inverse = 1 / (offset + noise)
        let gain = (offset: offset * inverse, rate: cross * inverse)
        rate -= gain.rate * cross
        cross -= gain.offset * cross
        offset -= gain.offset * offset
        return gain
    }

    /// Takes an observation with gains that another covariance gave (Joseph's form).
    ///
    /// - Parameter missed: its variance, seconds².
    mutating func observe(missed: Double, gain: (offset: Double, rate: Double)) {
        let (a00, a01) = (offset - gain.offset * offset, cross - gain.offset * cross)
        let (a10, a11) = (cross - gain.rate * offset, rate - gain.rate * cross)
        offset = a00 - gain.offset * a00 + gain.offset * gain.offset * missed
        cross = a01 - gain.rate * a00 + gain.offset * gain.rate * missed
        rate = a11 - gain.rate * a10 + gain.rate * gain.rate * missed
    }
}
