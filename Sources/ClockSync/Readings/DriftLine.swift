import func Glibc.sqrt

/// A line through readings of one offset, while the skew walks at random: a Kalman filter of two
/// states.
struct DriftLine: Sendable {
    private let origin: (time: Double, offset: Double)
    private let prior: Double
    private let walk: Double
    private var time: Double
    /// Above the line through the origin with the prior skew.
    private var offset = 0.0
    private var skew = 0.0
    private var covariance: DriftCovariance

    /// - Parameters:
    ///   - origin: the first reading, still to be observed; seconds.
    ///   - prior: of the skew.
    ///   - walk: of the skew, per √s.
    init(
        from origin: (time: Double, offset: Double), prior: (skew: Double, variance: Double),
        walk: Double
    ) {
        self.origin = origin
        self.prior = prior.skew
        self.walk = walk
        self.time = origin.time
        self.covariance = DriftCovariance(offset: 1, rate: prior.variance + walk * walk)
    }

    /// Takes the next reading.
    ///
    /// - Parameters:
    ///   - reading: of the offset, seconds.
    ///   - instant: of it, seconds; ascending.
    ///   - variance: of the reading, seconds².
    ///   - limit: a reading that differs by more deviations counts as one that much less sure.
    /// - Returns: by how many deviations it differs from what was expected.
    mutating func observe(
        _ reading: Double, at instant: Double, variance: Double, limit: Double = .infinity
    ) -> Double {
        let dt = max(0, instant - time)
        time = max(time, instant)
        offset += skew * dt
        covariance.advance(by: dt, walk: walk)
        let rest = reading - origin.offset - prior * (instant - origin.time) - offset
        let miss = rest / sqrt(covariance.offset + variance)
        let excess = max(1, miss.magnitude / limit)
        let gain = covariance.observe(noise: variance * excess * excess)
        offset += gain.offset * rest
        skew += gain.rate * rest
        return miss
    }

    /// Where the line is at `now`.
    ///
    /// - Parameters:
    ///   - delay: of the path, seconds.
    ///   - inflation: by how much its variance is larger than the readings said.
    func fit(at now: Double, delay: Double, inflation: Double) -> ClockReading {
        let dt = now - time
        let span = now - origin.time
        let noise = sqrt(max(0, inflation * covariance.offset(after: dt)))
        var fit = ClockReading(
            window: span, span: span,
            offset: origin.offset + prior * span + offset + skew * dt, skew: prior + skew,
            delay: delay, noise: noise + EnvelopeSolver.stampNoise,
            skewSpread: sqrt(max(0, covariance.rate * inflation)), isPinned: false, wander: 0)
        fit.error = fit.noise
        return fit
    }
}
