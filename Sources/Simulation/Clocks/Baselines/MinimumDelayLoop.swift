/// The sample with the smallest delay of eight steers a phase-locked loop: NTP's clock filter.
///
/// Written from RFC 5905: eight stages, the dispersion of a stored sample grows by 15 ppm, the best
/// counts only when it is newer than the one used before, a gate against popcorn, a step beyond
/// 128 ms. The loop's time constant is not minutes, as where it steers a computer, but seconds, and
/// the rate is set from the first two: with NTP's own constants it would only be slow.
struct MinimumDelayLoop: ClockFilter {
    static let stages = 8
    static let dispersion = 15e-6
    static let gate = 3.0
    static let step = 0.128
    static let training = 2.0
    /// Seconds; larger is smoother, and slower to follow a crystal.
    static let timeConstant = 8.0

    private var stages: [Exchange] = []
    private var used: Exchange?
    private var first: Exchange?
    private var popcorn = false
    private var offset = 0.0
    private var rate = 0.0
    private var time = 0.0

    mutating func receive(_ exchange: Exchange) {
        stages.append(exchange)
        if stages.count > Self.stages { stages.removeFirst() }
        let now = exchange.time
        func distance(_ sample: Exchange) -> Double {
            sample.delay / 2 + Self.dispersion * (now - sample.time)
        }
        guard let best = stages.min(by: { distance($0) < distance($1) }) else { return }
        if let used, best.time <= used.time { return }

        let square = stages.reduce(0) {
            let difference = $1.offset - best.offset
            return $0 + difference * difference
        }
        let jitter = max((square / Double(stages.count)).squareRoot(), 1e-6)
        if let used, !popcorn, (best.offset - used.offset).magnitude > Self.gate * jitter,
            stages.count == Self.stages
        {
            popcorn = true
            return
        }
        popcorn = false
        let interval = used.map { best.time - $0.time } ?? 0
        used = best
        discipline(by: best, after: interval)
    }

    private mutating func discipline(by best: Exchange, after interval: Double) {
        let first = first ?? best
        self.first = first
        let residual = best.offset - (offset + rate * (best.time - time))
        let age = best.time - first.time
        if age < Self.training || residual.magnitude > Self.step {
            offset = best.offset
            // Only in training: setting a clock does not change its crystal, so the rate stays.
            if age > 0.5, age < Self.training { rate = (best.offset - first.offset) / age }
        } else {
            let share = min(interval / Self.timeConstant, 0.5)
            offset += rate * (best.time - time) + 2 * share * residual
            rate += share * residual / Self.timeConstant
        }
        time = best.time
    }

    func offset(at time: Double) -> Double? {
        used == nil ? nil : offset + rate * (time - self.time)
    }
}
