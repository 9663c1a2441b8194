/// Two states, offset and rate, and a scalar measurement of the offset.
struct ClockKalman: Sendable {
    /// Offset in seconds, rate in seconds a second.
    private(set) var offset: Double
    private(set) var rate = 0.0
    private(set) var time: Double
    private(set) var p00: Double
    private(set) var p01 = 0.0
    private(set) var p11: Double
    /// Variance of the rate's change in a second.
    let walk: Double

    init(offset: Double, variance: Double, rateVariance: Double, walk: Double, at time: Double) {
        self.offset = offset
        self.time = time
        p00 = variance
        p11 = rateVariance
        self.walk = walk
    }

    func predicted(at time: Double) -> Double { offset + rate * (time - self.time) }

    mutating func advance(to time: Double) {
        let dt = time - self.time
        guard dt > 0 else { return }
        offset += rate * dt
        p00 += dt * (2 * p01 + dt * p11) + walk * dt * dt * dt / 3
        p01 += dt * p11 + walk * dt * dt / 2
        p11 += walk * dt
        self.time = time
    }

    mutating func forget(_ factor: Double) {
        (p00, p01, p11) = (p00 * factor, p01 * factor, p11 * factor)
    }

    /// - Parameter time: of the measurement; one older than the state is taken where the state is.
    mutating func update(offset measured: Double, variance: Double, at time: Double) {
        advance(to: time)
        let residual = measured - predicted(at: time)
        let total = p00 + variance
        let (k0, k1) = (p00 / total, p01 / total)
        offset += k0 * residual
        rate += k1 * residual
        p11 -= k1 * p01
        p01 *= 1 - k0
        p00 *= 1 - k0
    }

    mutating func set(rate: Double, variance: Double) {
        self.rate = rate
        p01 = 0
        p11 = variance
    }

    mutating func set(offset: Double, variance: Double, at time: Double) {
        self.offset = offset
        self.time = time
        p00 = variance
    }
}
