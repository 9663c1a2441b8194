/// Weighted least squares over as many exchanges as lie on one line: chrony's source statistics.
///
/// Written from its description: up to 64 samples; weight 1/(1 + ((dist − least)/s)²) with
/// dist = delay/2 and s = (median − least)/0.7; where the residuals have too few runs of one sign
/// the oldest sample is dropped and the line fitted again. A second regression of the residual on
/// the excess delay finds one-sided queues: a slope of 0.45 or more with the same sign ten times in
/// a row is taken off the offsets. A delay far above the least of them, against the scatter of the
/// offsets, is refused.
struct WeightedRegressionFilter: ClockFilter {
    static let length = 64
    static let fewest = 4
    static let deviationRatio = 10.0

    private struct Fit {
        var offset = 0.0
        var rate = 0.0
        var time = 0.0
        var deviation = 0.0
        var residuals: [Double] = []

        func callAsFunction(_ time: Double) -> Double { offset + rate * (time - self.time) }
    }

    private var samples: [Exchange] = []
    private var fit: Fit?
    private var asymmetry = 0.0
    /// Signed number of updates in a row that saw an asymmetry.
    private var asymmetryRun = 0

    mutating func receive(_ exchange: Exchange) {
        if let fit, samples.count >= 8, let least = samples.map(\.delay).min() {
            let isWild = exchange.delay - least > Self.deviationRatio * fit.deviation
            // For 4 s at most: a filter that refuses for ever keeps an old path's delays.
            if isWild, exchange.time - samples[samples.count - 1].time < 4 { return }
        }
        samples.append(exchange)
        if samples.count > Self.length { samples.removeFirst() }
        guard samples.count >= Self.fewest else {
            let best = samples.min { $0.delay < $1.delay } ?? exchange
            fit = Fit(offset: best.offset, time: best.time, deviation: best.delay)
            return
        }
        var line = regression()
        while samples.count > Self.fewest, hasTooFewRuns(line.residuals) {
            samples.removeFirst()
            line = regression()
        }
        fit = line
        learnAsymmetry(line)
    }

    private func regression() -> Fit {
        let least = samples.reduce(Double.infinity) { min($0, $1.delay) }
        let halves = samples.map { ($0.delay - least) / 2 }
        let scale = max(halves.sorted()[halves.count / 2] / 0.7, 1e-7)
        let now = samples[samples.count - 1].time
        let correction = asymmetryRun.magnitude >= 10 ? min(max(asymmetry, -0.5), 0.5) : 0
        var (w, wt, wo, wtt, wto) = (0.0, 0.0, 0.0, 0.0, 0.0)
        func value(_ index: Int) -> Double {
            samples[index].offset - correction * 2 * halves[index]
        }
        for index in samples.indices {
            let weight = 1 / (1 + (halves[index] / scale) * (halves[index] / scale))
            let (t, o) = (samples[index].time - now, value(index))
            w += weight
            wt += weight * t
            wo += weight * o
            wtt += weight * t * t
            wto += weight * t * o
        }
        let determinant = w * wtt - wt * wt
        var fit = Fit(time: now)
        fit.rate = determinant > 0 ? (w * wto - wt * wo) / determinant : 0
        fit.offset = (wo - fit.rate * wt) / w
        fit.residuals = samples.indices.map { value($0) - fit(samples[$0].time) }
        let square = fit.residuals.reduce(0) { $0 + $1 * $1 }
        fit.deviation = (square / Double(samples.count)).squareRoot()
        return fit
    }

    /// Runs of one sign have mean (n + 1)/2 and deviation √(n − 1)/2 when nothing is wrong.
    private func hasTooFewRuns(_ residuals: [Double]) -> Bool {
        var runs = 1
        for index in residuals.indices.dropFirst()
        where (residuals[index] > 0) != (residuals[index - 1] > 0) { runs += 1 }
        let count = Double(residuals.count)
        return Double(runs) < (count + 1) / 2 - (count - 1).squareRoot()
    }

    private mutating func learnAsymmetry(_ fit: Fit) {
        // Against what was measured, not what was corrected: the correction must not undo itself.
        let count = Double(samples.count)
        let delay = samples.reduce(0) { $0 + $1.delay } / count
        let rest = samples.reduce(0) { $0 + $1.offset - fit($1.time) } / count
        var (xx, xy) = (0.0, 0.0)
        for sample in samples {
            let x = sample.delay - delay
            xx += x * x
            xy += x * (sample.offset - fit(sample.time) - rest)
        }
        guard xx > 0 else { return }
        asymmetry = xy / xx
        let sign = asymmetry >= 0.45 ? 1 : asymmetry <= -0.45 ? -1 : 0
        asymmetryRun = sign == 0 || sign * asymmetryRun < 0 ? sign : asymmetryRun + sign
    }

    func offset(at time: Double) -> Double? { fit?(time) }
}
