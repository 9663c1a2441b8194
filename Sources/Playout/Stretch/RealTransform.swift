import func Glibc.cos
import func Glibc.sin

/// The discrete Fourier transform of real samples, and back.
///
/// Even and odd samples are real and imaginary parts of half as many complex numbers. Those go
/// through a radix-4 transform that sorts itself (T. Stockham; the form of C. Van Loan,
/// "Computational Frameworks for the FFT", 1992), and are untangled at the end. Each channel is
/// transformed by itself with the same steps, so what was equal stays equal to the last bit.
@safe final class RealTransform {
    /// Samples; a power of two, at least 16.
    let length: Int
    /// 0, 1 … half the rate.
    var bins: Int { length / 2 + 1 }
    private let half: Int
    /// cos and −sin of 2πk/length for k in 0…length/2.
    private let cosines: UnsafeMutablePointer<Float>
    private let sines: UnsafeMutablePointer<Float>
    private let a: StereoBuffer
    private let b: StereoBuffer

    init(length: Int) {
        precondition(length >= 16 && length & (length - 1) == 0, "a transform of \(length)")
        self.length = length
        half = length / 2
        unsafe cosines = .allocate(capacity: half + 1)
        unsafe sines = .allocate(capacity: half + 1)
        for k in 0...half {
            let x = 2 * Double.pi * Double(k) / Double(length)
            unsafe (cosines + k).initialize(to: Float(cos(x)))
            unsafe (sines + k).initialize(to: Float(-sin(x)))
        }
        a = StereoBuffer(capacity: half)
        b = StereoBuffer(capacity: half)
    }

    deinit {
        unsafe cosines.deallocate()
        unsafe sines.deallocate()
    }

    /// The spectrum of `length` samples times a window.
    ///
    /// - Parameters:
    ///   - real, imaginary: room for ``bins`` numbers each.
    func forward(
        _ samples: UnsafePointer<Float>, window: UnsafePointer<Float>,
        real: UnsafeMutablePointer<Float>, imaginary: UnsafeMutablePointer<Float>
    ) {
        for i in 0..<half {
            unsafe a.left[i] = samples[2 &* i] * window[2 &* i]
            unsafe a.right[i] = samples[2 &* i &+ 1] * window[2 &* i &+ 1]
        }
        let z = transformed()
        unsafe real[0] = z.left[0] + z.right[0]
        unsafe imaginary[0] = 0
        unsafe real[half] = z.left[0] - z.right[0]
        unsafe imaginary[half] = 0
        for k in 1..<half {
            let m = half &- k
            let even = unsafe (z.left[k] + z.left[m], z.right[k] - z.right[m])
            let odd = unsafe (z.right[k] + z.right[m], z.left[m] - z.left[k])
            let w = unsafe (cosines[k], sines[k])
            unsafe real[k] = 0.5 * (even.0 + (w.0 * odd.0 - w.1 * odd.1))
            unsafe imaginary[k] = 0.5 * (even.1 + (w.0 * odd.1 + w.1 * odd.0))
        }
    }

    /// The samples of a spectrum, `length / 2` times as large as they were, times a window and
    /// added to `sum`.
    func addInverse(
        real: UnsafePointer<Float>, imaginary: UnsafePointer<Float>, window: UnsafePointer<Float>,
        to sum: UnsafeMutablePointer<Float>
    ) {
        // The forward transform of swapped parts is the inverse, swapped.
        for k in 0..<half {
            let m = half &- k
            let even = unsafe (real[k] + real[m], imaginary[k] - imaginary[m])
            let rest = unsafe (real[k] - real[m], imaginary[k] + imaginary[m])
            let w = unsafe (cosines[k], -sines[k])
            let odd = (w.0 * rest.0 - w.1 * rest.1, w.0 * rest.1 + w.1 * rest.0)
            unsafe a.right[k] = 0.5 * (even.0 - odd.1)
            unsafe a.left[k] = 0.5 * (even.1 + odd.0)
        }
        let z = transformed()
        for i in 0..<half {
            unsafe sum[2 &* i] += z.right[i] * window[2 &* i]
            unsafe sum[2 &* i &+ 1] += z.left[i] * window[2 &* i &+ 1]
        }
    }

    /// Transforms `a`; the result lies in the buffer that is returned.
    private func transformed() -> StereoBuffer {
        var (from, to) = (a, b)
        var stride = 1
        var count = half
        while count >= 4 {
            radix4(from, to, count: count, stride: stride)
            swap(&from, &to)
            count /= 4
            stride *= 4
        }
        if count == 2 {
            for q in 0..<stride {
                let x = unsafe SIMD2(from.left[q], from.right[q])
                let y = unsafe SIMD2(from.left[q &+ stride], from.right[q &+ stride])
                unsafe (to.left[q], to.right[q]) = ((x + y).x, (x + y).y)
                unsafe (to.left[q &+ stride], to.right[q &+ stride]) = ((x - y).x, (x - y).y)
            }
            swap(&from, &to)
        }
        return from
    }

    /// One pass: `count` points at each of `stride` places become four transforms of a quarter.
    private func radix4(_ from: StereoBuffer, _ to: StereoBuffer, count: Int, stride: Int) {
        let quarter = count / 4
        let turn = length / count
        for p in 0..<quarter {
            let turns = (twiddle(p &* turn), twiddle(2 &* p &* turn), twiddle(3 &* p &* turn))
            let source = stride &* p
            let target = 4 &* stride &* p
            if stride == 1 {
                alone(from, source, quarter, to, target, turns)
            } else {
                four(from, source, stride &* quarter, to, target, stride, turns)
            }
        }
    }

    /// Four points that lie `step` apart, at one place.
    @inline(__always)
    private func alone(
        _ from: StereoBuffer, _ source: Int, _ step: Int, _ to: StereoBuffer, _ target: Int,
        _ turns: Turns
    ) {
        let x = unsafe (from.left + source, from.right + source)
        let a = unsafe SIMD2(x.0[0], x.1[0])
        let b = unsafe SIMD2(x.0[step], x.1[step])
        let c = unsafe SIMD2(x.0[2 &* step], x.1[2 &* step])
        let d = unsafe SIMD2(x.0[3 &* step], x.1[3 &* step])
        let (evenSum, evenRest, oddSum) = (a + c, a - c, b + d)
        let quarterTurn = SIMD2(d.y - b.y, b.x - d.x)
        let y = unsafe (to.left + target, to.right + target)
        let results = (
            evenSum + oddSum, Self.times(evenRest - quarterTurn, turns.0),
            Self.times(evenSum - oddSum, turns.1), Self.times(evenRest + quarterTurn, turns.2)
        )
        unsafe (y.0[0], y.1[0]) = (results.0.x, results.0.y)
        unsafe (y.0[1], y.1[1]) = (results.1.x, results.1.y)
        unsafe (y.0[2], y.1[2]) = (results.2.x, results.2.y)
        unsafe (y.0[3], y.1[3]) = (results.3.x, results.3.y)
    }

    @inline(__always)
    private static func times(_ a: SIMD2<Float>, _ b: SIMD2<Float>) -> SIMD2<Float> {
        SIMD2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)
    }

    /// The same at `stride` places beside each other, four at once.
    @inline(__always)
    private func four(
        _ from: StereoBuffer, _ source: Int, _ step: Int, _ to: StereoBuffer, _ target: Int,
        _ stride: Int, _ turns: Turns
    ) {
        var q = 0
        while q < stride {
            let a = Complex(from, source &+ q)
            let b = Complex(from, source &+ q &+ step)
            let c = Complex(from, source &+ q &+ 2 &* step)
            let d = Complex(from, source &+ q &+ 3 &* step)
            let (evenSum, evenRest, oddSum) = (a + c, a - c, b + d)
            let quarterTurn = Complex(real: d.imaginary - b.imaginary, imaginary: b.real - d.real)
            let place = target &+ q
            (evenSum + oddSum).store(to, place)
            ((evenRest - quarterTurn) * turns.0).store(to, place &+ stride)
            ((evenSum - oddSum) * turns.1).store(to, place &+ 2 &* stride)
            ((evenRest + quarterTurn) * turns.2).store(to, place &+ 3 &* stride)
            q &+= 4
        }
    }

    /// Four complex numbers.
    private struct Complex {
        var real: SIMD4<Float>
        var imaginary: SIMD4<Float>

        @inline(__always)
        init(real: SIMD4<Float>, imaginary: SIMD4<Float>) {
            self.real = real
            self.imaginary = imaginary
        }

        @inline(__always)
        init(_ buffer: StereoBuffer, _ place: Int) {
            unsafe real = UnsafeRawPointer(buffer.left + place).loadUnaligned(
                as: SIMD4<Float>.self)
            unsafe imaginary = UnsafeRawPointer(buffer.right + place).loadUnaligned(
                as: SIMD4<Float>.self)
        }

        @inline(__always)
        func store(_ buffer: StereoBuffer, _ place: Int) {
            unsafe UnsafeMutableRawPointer(buffer.left + place).storeBytes(
                of: real, as: SIMD4<Float>.self)
            unsafe UnsafeMutableRawPointer(buffer.right + place).storeBytes(
                of: imaginary, as: SIMD4<Float>.self)
        }

        @inline(__always)
        static func + (a: Complex, b: Complex) -> Complex {
            Complex(real: a.real + b.real, imaginary: a.imaginary + b.imaginary)
        }

        @inline(__always)
        static func - (a: Complex, b: Complex) -> Complex {
            Complex(real: a.real - b.real, imaginary: a.imaginary - b.imaginary)
        }

        @inline(__always)
        static func * (a: Complex, turn: SIMD2<Float>) -> Complex {
            Complex(
                real: a.real * turn.x - a.imaginary * turn.y,
                imaginary: a.real * turn.y + a.imaginary * turn.x)
        }
    }

    private typealias Turns = (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)

    /// cos and −sin of 2πk/length; `k` is below `length`.
    @inline(__always)
    private func twiddle(_ k: Int) -> SIMD2<Float> {
        k <= half
            ? unsafe SIMD2(cosines[k], sines[k])
            : unsafe SIMD2(-cosines[k &- half], -sines[k &- half])
    }
}
