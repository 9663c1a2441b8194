/// A Kalman filter that believes a sample the less the more its round trip exceeds the smallest.
///
/// Delay that was added may lie in one direction alone, so half of the excess is the scale of the
/// error. RADclock judges its samples in this way.
struct MinimumDelayKalman: ClockFilter {
    /// How long a smallest round trip is remembered; seconds.
    static let memory = 60.0
    /// Error of a sample at the floor; seconds.
    static let least = 2e-6
    /// 0.02 ppm/√s.
    static let walk = 4e-16

    private var delays: [(time: Double, delay: Double)] = []
    private var filter: ClockKalman?

    mutating func receive(_ exchange: Exchange) {
        // Ascending delays: only what could still become the smallest is kept.
        while let last = delays.last, last.delay >= exchange.delay { delays.removeLast() }
        delays.append((exchange.time, exchange.delay))
        while delays[0].time < exchange.time - Self.memory { delays.removeFirst() }
        let error = Self.least + (exchange.delay - delays[0].delay) / 2
        guard filter != nil else {
            filter = ClockKalman(
                offset: exchange.offset, variance: exchange.delay * exchange.delay / 16,
                rateVariance: 60e-6 * 60e-6, walk: Self.walk, at: exchange.time)
            return
        }
        filter?.update(offset: exchange.offset, variance: error * error, at: exchange.time)
    }

    func offset(at time: Double) -> Double? { filter?.predicted(at: time) }
}
