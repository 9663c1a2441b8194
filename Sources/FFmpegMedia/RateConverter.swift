import func Glibc.sin

/// Frames of one rate as frames of another, each a pure function of the input around its place.
///
/// Output frame `k` lies at input frame `k · from / to`, by whole numbers, and is a sum over
/// ``taps`` frames around it: a seek and a linear read compute the same samples, in every room. The
/// weights are a sinc under a Kaiser window whose side lobes lie at −100 dB, tabulated at
/// ``phases`` places between two frames and interpolated linearly, which is exact to −105 dB. When
/// the output is slower, cut-off and length scale, so that nothing folds back.
@safe
final class RateConverter {
    private static let phases = 512
    private static let beta = 10.0
    /// −6 dB point in units of half the slower rate; the pass band ends at 0.86.
    private static let cutoff = 0.93

    /// Input frames of one output frame; even.
    let taps: Int
    private let from: Int64
    private let to: Int64
    /// `phases + 1` rows of `taps` weights.
    private let rows: UnsafeMutableBufferPointer<Float>

    /// Input frames that are at hand: interleaved stereo from `windowStart` on.
    private var window: [Float] = []
    private var windowStart: Int64 = 0

    init(from: Int, to: Int) {
        precondition(from > 0 && to > 0, "from \(from) to \(to) frames a second")
        self.from = Int64(from)
        self.to = Int64(to)
        let scale = min(1, Double(to) / Double(from))
        taps = 2 * min(1_024, Int(48 / scale))
        unsafe rows = .allocate(capacity: (Self.phases + 1) * taps)
        let reach = Double(taps) / 2
        for phase in 0...Self.phases {
            let fraction = Double(phase) / Double(Self.phases)
            let weights = (0..<taps).map { tap in
                let t = Double(tap - taps / 2 + 1) - fraction
                let x = Double.pi * Self.cutoff * scale * t
                let u = min(1, abs(t) / reach)
                return (x == 0 ? 1 : sin(x) / x)
                    * Self.bessel(Self.beta * (1 - u * u).squareRoot())
            }
            let sum = weights.reduce(0, +)
            for tap in 0..<taps { unsafe rows[phase * taps + tap] = Float(weights[tap] / sum) }
        }
    }

    deinit { unsafe rows.deallocate() }

    /// Modified Bessel function of the first kind, order 0, by its power series.
    private static func bessel(_ x: Double) -> Double {
        var (term, sum, n) = (1.0, 1.0, 1.0)
        while term > sum * 1e-17 {
            term *= x * x / 4 / (n * n)
            sum += term
            n += 1
        }
        return sum
    }

    /// Forgets what was read.
    ///
    /// - Returns: the input frame that must be read next for output frame `frame` to be.
    func seek(to frame: Int64) -> Int64 {
        window.removeAll(keepingCapacity: true)
        windowStart = max(0, firstInput(of: frame))
        return windowStart
    }

    private func firstInput(of frame: Int64) -> Int64 { frame * from / to - Int64(taps / 2 - 1) }

    /// Writes output frames from `frame` on, in order after ``seek(to:)`` or the last call.
    ///
    /// - Parameters:
    ///   - output: interleaved stereo.
    ///   - input: yields the next input frames; fewer at their end, behind which is silence.
    func read<E: Error>(
        from frame: Int64, into output: UnsafeMutableBufferPointer<Float>,
        input: (UnsafeMutableBufferPointer<Float>) throws(E) -> Int
    ) throws(E) {
        let count = output.count / 2
        guard count > 0 else { return }
        unsafe try provide(firstInput(of: frame + Int64(count) - 1) + Int64(taps), input)
        unsafe window.withUnsafeBufferPointer { window in
            for k in 0..<count {
                unsafe convert(frame + Int64(k), window, output.baseAddress! + 2 * k)
            }
        }
        // What the next frame will not need.
        let used = max(0, firstInput(of: frame + Int64(count)) - windowStart)
        window.removeFirst(2 * min(Int(used), window.count / 2))
        windowStart += used
    }

    private func convert(
        _ frame: Int64, _ window: UnsafeBufferPointer<Float>,
        _ output: UnsafeMutablePointer<Float>
    ) {
        let place = Double(frame * from % to) / Double(to) * Double(Self.phases)
        let phase = Int(place)
        let share = Float(place - Double(phase))
        let row = unsafe rows.baseAddress! + phase * taps
        // The window begins with the recording, and ends with it: outside is silence.
        let first = firstInput(of: frame) - windowStart
        let low = max(0, Int(-first))
        let high = min(taps, window.count / 2 - Int(first))
        var (left, right): (Float, Float) = (0, 0)
        var tap = low
        while tap < high {
            let weight = unsafe row[tap] + share * (row[taps + tap] - row[tap])
            let at = 2 * (Int(first) + tap)
            left += unsafe window[at] * weight
            right += unsafe window[at + 1] * weight
            tap += 1
        }
        unsafe output[0] = left
        unsafe output[1] = right
    }

    private func provide<E: Error>(
        _ end: Int64, _ input: (UnsafeMutableBufferPointer<Float>) throws(E) -> Int
    ) throws(E) {
        while case let missing = Int(end - windowStart) - window.count / 2, missing > 0 {
            let start = window.count
            window.append(contentsOf: repeatElement(0, count: 2 * missing))
            var got = 0
            var failure: E?
            unsafe window.withUnsafeMutableBufferPointer { buffer in
                do throws(E) {
                    got = unsafe try input(
                        UnsafeMutableBufferPointer(rebasing: buffer[start...]))
                } catch { failure = error }
            }
            window.removeLast(2 * (missing - got))
            if let failure { throw failure }
            if got == 0 { return }
        }
    }
}
