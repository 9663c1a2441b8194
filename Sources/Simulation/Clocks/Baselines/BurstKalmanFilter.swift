/// The best round trip of eight goes into a Kalman filter: what Sendspin's time filter does.
///
/// Written from its description: the second measurement gives the rate by finite difference, the
/// variance of one is (round trip/4)², the rate walks by 0.01 ppm/√s, after a hundred updates a
/// residual above three half round trips multiplies the covariance by four, and the rate counts
/// only when it is larger than twice its deviation.
struct BurstKalmanFilter: ClockFilter {
    static let burst = 8
    static let walk = 1e-16
    static let updatesToForget = 100

    private var best: Exchange?
    private var count = 0
    private var updates = 0
    private var filter: ClockKalman?

    mutating func receive(_ exchange: Exchange) {
        if let best, best.delay <= exchange.delay {} else { best = exchange }
        count += 1
        guard count == Self.burst, let best else { return }
        take(best)
        (self.best, count) = (nil, 0)
    }

    private mutating func take(_ best: Exchange) {
        let variance = (best.delay / 4) * (best.delay / 4)
        updates += 1
        guard var filter else {
            filter = ClockKalman(
                offset: best.offset, variance: variance, rateVariance: 0, walk: Self.walk,
                at: best.time)
            return
        }
        if updates == 2 {
            let dt = max(best.time - filter.time, 1e-3)
            let rate = (best.offset - filter.offset) / dt
            let rateVariance = (filter.p00 + variance) / (dt * dt)
            filter.set(offset: best.offset, variance: variance, at: best.time)
            filter.set(rate: rate, variance: rateVariance)
        } else {
            let residual = best.offset - filter.predicted(at: best.time)
            if updates > Self.updatesToForget, residual.magnitude > 3 * best.delay / 2 {
                filter.forget(4)
            }
            filter.update(offset: best.offset, variance: variance, at: best.time)
        }
        self.filter = filter
    }

    /// Until the first burst is over, its best packet is better than nothing.
    func offset(at time: Double) -> Double? {
        guard let filter else { return best?.offset }
        let isSure = filter.rate * filter.rate > 4 * filter.p11
        return isSure ? filter.predicted(at: time) : filter.offset
    }
}
