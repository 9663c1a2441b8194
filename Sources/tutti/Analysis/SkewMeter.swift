import Glibc

/// Measures by how much one output is later than another, from the sound itself.
///
/// Both takes are brought onto one grid of true time, flattened (music is pink: without that the
/// bass decides), and compared window by window:
///
/// 1. coarse: normalised cross-correlation of both, decimated, for every lag within ±`reach`;
/// 2. sample: the same at the full rate around the best coarse lags;
/// 3. fraction: Gauss–Newton on `Σ (b(t + τ) − g·a(t))²` over the lag τ and the gain g, with `b`
///    between its samples by windowed sinc.
///
/// Sign, everywhere: positive skew(A, B): B plays the same content *later* than A.
struct SkewMeter: Sendable {
    /// Lags within this are found, seconds. Rooms further apart are not in lockstep by any measure.
    static let reach = 0.050
    /// A window whose best correlation is below does not show the same content.
    static let correlationMin = 0.7
    private static let decimation = 8
    private static let emphasis = 0.95

    /// One take on the grid, ready to be compared.
    struct Signal: Sendable {
        let grid: TimeGrid
        /// As it sounded.
        let sound: [Double]
        /// Flattened.
        fileprivate let flat: [Double]
        /// Flattened, low-passed, every eighth.
        fileprivate let coarse: [Double]

        init(_ take: Take, grid: TimeGrid) {
            self.grid = grid
            var values = [Double](repeating: 0, count: grid.count)
            for segment in take.segments where segment.anchorFrames.count >= 2 {
                Interpolation.shared.render(segment, onto: grid, into: &values)
            }
            sound = values
            var flat = values
            for i in stride(from: grid.count - 1, to: 0, by: -1) {
                flat[i] -= SkewMeter.emphasis * values[i - 1]
            }
            self.flat = flat
            coarse = Self.decimated(flat)
        }

        /// Two moving averages of the decimation's length: no energy folds back onto zero.
        private static func decimated(_ values: [Double]) -> [Double] {
            let m = SkewMeter.decimation
            var sums = [Double](repeating: 0, count: values.count / m + 1)
            for block in 0..<(values.count / m) {
                var sum = 0.0
                for j in 0..<m { sum += values[block * m + j] * Double(j + 1) }
                let next = (block + 1) * m
                for j in 0..<m where next + j < values.count {
                    sum += values[next + j] * Double(m - 1 - j)
                }
                sums[block] = sum
            }
            return sums
        }

        /// Root mean square of the sound in a window.
        func level(from start: Int, count: Int) -> Double {
            let range = max(0, start)..<max(0, min(sound.count, start + count))
            guard !range.isEmpty else { return 0 }
            var sum = 0.0
            for i in range { sum += sound[i] * sound[i] }
            return sqrt(sum / Double(range.count))
        }
    }

    /// What a window says.
    enum Window: Equatable, Sendable {
        /// Seconds by which the second is later.
        case matched(skew: Double)
        /// Both are silent: nothing to compare.
        case silent
        /// The content differs, or only one sounds.
        case unmatched
    }

    let a: Signal
    let b: Signal

    /// - Parameters:
    ///   - a: the signal that the skew is counted from.
    ///   - b: on the same grid.
    init(_ a: Signal, _ b: Signal) {
        precondition(a.grid == b.grid, "signals on different grids cannot be compared")
        self.a = a
        self.b = b
    }

    /// Compares the window of `count` samples that begins at `start`.
    func window(from start: Int, count: Int) -> Window {
        compare(start, count) { sampleLag(start, count).map { [$0] } ?? [] }
    }

    /// Compares a short window, which may hold a single tone and then fits at every period of it:
    /// only lags near those that longer windows around it have found are considered.
    ///
    /// - Parameter lags: seconds.
    func window(from start: Int, count: Int, near lags: [Double]) -> Window {
        compare(start, count) {
            lags.compactMap { lag in
                let middle = Int((lag * a.grid.sampleRate).rounded())
                return Self.correlations(
                    a.flat, b.flat, start: start, count: count,
                    lags: (middle - Self.nearby)...(middle + Self.nearby)
                ).max { $0.value < $1.value }?.lag
            }
        }
    }

    /// Half a millisecond at 48 kHz: below the period of most tones.
    private static let nearby = 24

    /// - Parameter lags: whole samples to be refined; the one that fits best counts.
    private func compare(_ start: Int, _ count: Int, lags: () -> [Int]) -> Window {
        guard start >= 0, start + count <= a.flat.count else { return .unmatched }
        let floor = Double(Take.audible)
        let levelA = a.level(from: start, count: count)
        let levelB = b.level(from: start, count: count)
        if levelA < floor && levelB < floor { return .silent }
        guard levelA >= floor, levelB >= floor else { return .unmatched }
        let found = lags().compactMap { fraction(start, count, lag: $0) }
        guard let (skew, correlation) = found.max(by: { $0.1 < $1.1 }),
            correlation >= Self.correlationMin
        else { return .unmatched }
        return .matched(skew: skew / a.grid.sampleRate)
    }

    /// The lag in whole samples with the highest normalised correlation.
    private func sampleLag(_ start: Int, _ count: Int) -> Int? {
        let m = Self.decimation
        let reach = Int(Self.reach * a.grid.sampleRate)
        let coarse = Self.correlations(
            a.coarse, b.coarse, start: start / m, count: count / m, lags: -(reach / m)...(reach / m)
        )
        guard let best = coarse.max(by: { $0.value < $1.value }), best.value > 0 else { return nil }
        // A tone correlates with itself a period away: decide between equals at the full rate.
        let peaks = coarse.indices.filter { i in
            coarse[i].value > 0.8 * best.value
                && (i == 0 || coarse[i - 1].value <= coarse[i].value)
                && (i == coarse.count - 1 || coarse[i + 1].value <= coarse[i].value)
        }.sorted { coarse[$0].value > coarse[$1].value }.prefix(3)
        let fine = peaks.flatMap { peak in
            Self.correlations(
                a.flat, b.flat, start: start, count: count,
                lags: (coarse[peak].lag * m - m)...(coarse[peak].lag * m + m))
        }
        return fine.max { $0.value < $1.value }?.lag
    }

    /// Normalised correlations of `a[start…]` with `b[start + lag…]`; outside, `b` is silence.
    private static func correlations(
        _ a: [Double], _ b: [Double], start: Int, count: Int, lags: ClosedRange<Int>
    ) -> [(lag: Int, value: Double)] {
        a.withUnsafeBufferPointer { a in
            b.withUnsafeBufferPointer { b in
                var energyA = 0.0
                for i in start..<(start + count) { energyA += a[i] * a[i] }
                func normalised(_ sum: Double, _ energyB: Double) -> Double {
                    let energy = energyA * energyB
                    return energy > 0 ? sum / sqrt(energy) : 0
                }
                var result: [(lag: Int, value: Double)] = []
                var lag = lags.lowerBound
                while lag <= lags.upperBound {
                    if lag + 1 <= lags.upperBound, start + lag >= 0, start + count + lag < b.count {
                        // Two lags at once: sums beside each other need not wait for each other,
                        // and a plain loop is quick without optimisation, too.
                        var (sum0, sum1) = (0.0, 0.0)
                        var (energy0, energy1) = (0.0, 0.0)
                        var i = start
                        while i < start + count {
                            let x = a[i]
                            let y0 = b[i + lag]
                            let y1 = b[i + lag + 1]
                            sum0 += x * y0
                            sum1 += x * y1
                            energy0 += y0 * y0
                            energy1 += y1 * y1
                            i += 1
                        }
                        result.append((lag, normalised(sum0, energy0)))
                        result.append((lag + 1, normalised(sum1, energy1)))
                        lag += 2
                    } else {
                        var sum = 0.0
                        var energyB = 0.0
                        var i = max(start, -lag)
                        while i < min(start + count, b.count - lag) {
                            sum += a[i] * b[i + lag]
                            energyB += b[i + lag] * b[i + lag]
                            i += 1
                        }
                        result.append((lag, normalised(sum, energyB)))
                        lag += 1
                    }
                }
                return result
            }
        }
    }

    /// The lag with its fraction, in samples, and the correlation there.
    private func fraction(_ start: Int, _ count: Int, lag: Int) -> (Double, Double)? {
        var delay = Double(lag)
        var correlation = 0.0
        for _ in 0..<Self.roundsMax {
            guard let step = step(start, count, delay: delay) else { return nil }
            delay += step.change
            correlation = step.correlation
            guard abs(delay - Double(lag)) < 4 else { return nil }
            if abs(step.change) < Self.settled { break }
        }
        return (delay, correlation)
    }

    private static let roundsMax = 12
    /// Samples: 2 ns at 48 kHz, far below the 0.1 µs that the analysis promises.
    private static let settled = 1e-4

    /// One Gauss–Newton step: least squares of `b(t + τ) + b′·Δ − g·a = 0` over Δ and g.
    private func step(
        _ start: Int, _ count: Int, delay: Double
    ) -> (change: Double, correlation: Double)? {
        let margin = 2
        guard
            let shifted = shifted(from: start - margin, count: count + 2 * margin, delay: delay)
        else { return nil }
        var dd = 0.0
        var da = 0.0
        var aa = 0.0
        var dy = 0.0
        var ay = 0.0
        var yy = 0.0
        shifted.withUnsafeBufferPointer { y in
            a.flat.withUnsafeBufferPointer { a in
                var i = 0
                while i < count {
                    let k = i + margin
                    let slope = (8 * (y[k + 1] - y[k - 1]) - (y[k + 2] - y[k - 2])) / 12
                    let x = a[start + i]
                    let value = y[k]
                    dd += slope * slope
                    da += slope * x
                    aa += x * x
                    dy += slope * value
                    ay += x * value
                    yy += value * value
                    i += 1
                }
            }
        }
        let determinant = dd * aa - da * da
        guard determinant > 1e-12 * dd * aa, aa > 0, yy > 0 else { return nil }
        let change = (da * ay - aa * dy) / determinant
        return (min(max(change, -1), 1), ay / sqrt(aa * yy))
    }

    /// `b` at `start + delay`, `start + 1 + delay`, …: one fraction for the whole window.
    private func shifted(from start: Int, count: Int, delay: Double) -> [Double]? {
        let whole = Int(delay.rounded(.down))
        let weights = Interpolation.weights(fraction: delay - Double(whole))
        let begin = start + whole - Interpolation.taps / 2 + 1
        guard begin + count + Interpolation.taps > 0, begin < b.flat.count else { return nil }
        var result = [Double](repeating: 0, count: count)
        b.flat.withUnsafeBufferPointer { b in
            weights.withUnsafeBufferPointer { weights in
                // Where all taps lie within the signal, four values at once: sums beside each other
                // need not wait for each other.
                let inside = max(0, -begin)...max(0, -begin, b.count - begin - Interpolation.taps)
                var i = 0
                while i < count {
                    let place = begin + i
                    if i + 3 < count, inside.contains(i), inside.contains(i + 3) {
                        var (sum0, sum1, sum2, sum3) = (0.0, 0.0, 0.0, 0.0)
                        var tap = 0
                        while tap < Interpolation.taps {
                            let weight = weights[tap]
                            sum0 += weight * b[place + tap]
                            sum1 += weight * b[place + tap + 1]
                            sum2 += weight * b[place + tap + 2]
                            sum3 += weight * b[place + tap + 3]
                            tap += 1
                        }
                        result[i] = sum0
                        result[i + 1] = sum1
                        result[i + 2] = sum2
                        result[i + 3] = sum3
                        i += 4
                    } else {
                        var tap = max(0, -place)
                        while tap < min(Interpolation.taps, b.count - place) {
                            result[i] += weights[tap] * b[place + tap]
                            tap += 1
                        }
                        i += 1
                    }
                }
            }
        }
        return result
    }
}
