import Glibc

/// Power of a run of samples over frequency, under a Kaiser window.
///
/// β = 22: the window's own side lobes lie below −200 dB, its main lobe reaches 7 bins to either
/// side (5 Hz at 48 kHz and 65 536 samples).
struct Spectrum {
    static let count = 65_536
    private let power: [Double]
    private let binHertz: Double

    init(_ samples: ArraySlice<Float>, sampleRate: Double = 48_000) {
        precondition(samples.count == Self.count, "\(samples.count) samples")
        binHertz = sampleRate / Double(Self.count)
        let half = Double(Self.count - 1) / 2
        var re = samples.enumerated().map { i, x in
            let u = (Double(i) - half) / half
            return Double(x) * Self.bessel(22 * max(0, 1 - u * u).squareRoot())
        }
        var im = [Double](repeating: 0, count: Self.count)
        Self.transform(&re, &im)
        power = (0..<Self.count / 2).map { re[$0] * re[$0] + im[$0] * im[$0] }
    }

    /// Power between two frequencies, in units that cancel in ratios.
    func power(_ range: ClosedRange<Double>) -> Double {
        let low = max(0, Int((range.lowerBound / binHertz).rounded(.up)))
        let high = min(power.count - 1, Int(range.upperBound / binHertz))
        return low <= high ? power[low...high].reduce(0, +) : 0
    }

    /// What belongs to the tone. A wander of ±5 ppm at 1 Hz is within; the first image of a tone
    /// that is read 300 ppm off lies 14.4 Hz beside it and is not.
    static let notch = 12.0

    /// Everything from 20 Hz to 20 kHz but the tone, against the tone; decibels.
    func distortion(tone: Double) -> Double {
        let (low, high) = (tone - Self.notch, tone + Self.notch)
        let rest = power(20...max(20, low)) + (high < 20_000 ? power(high...20_000) : 0)
        return 10 * log10(rest / power(low...high))
    }

    /// The level of `tone`, against the same in `other`; decibels.
    func gain(over other: Spectrum, tone: Double) -> Double {
        let range = tone - Self.notch...tone + Self.notch
        return 10 * log10(power(range) / other.power(range))
    }

    private static func bessel(_ x: Double) -> Double {
        var term = 1.0
        var sum = 1.0
        var n = 1.0
        while term > sum * 1e-17 {
            term *= x * x / (4 * n * n)
            sum += term
            n += 1
        }
        return sum
    }

    /// Radix-2 Fourier transform in place; the count is a power of two.
    private static func transform(_ re: inout [Double], _ im: inout [Double]) {
        let n = re.count
        var j = 0
        for i in 1..<n {
            var bit = n >> 1
            while j & bit != 0 {
                j ^= bit
                bit >>= 1
            }
            j |= bit
            if i < j {
                re.swapAt(i, j)
                im.swapAt(i, j)
            }
        }
        var span = 2
        while span <= n {
            let angle = -2 * Double.pi / Double(span)
            for k in 0..<span / 2 {
                let (c, s) = (cos(angle * Double(k)), sin(angle * Double(k)))
                for start in stride(from: k, to: n, by: span) {
                    let other = start + span / 2
                    let x = re[other] * c - im[other] * s
                    let y = re[other] * s + im[other] * c
                    re[other] = re[start] - x
                    im[other] = im[start] - y
                    re[start] += x
                    im[start] += y
                }
            }
            span *= 2
        }
    }
}
