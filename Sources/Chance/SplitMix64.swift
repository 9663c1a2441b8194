import func Glibc.cos
import func Glibc.exp
import func Glibc.log
import func Glibc.pow

/// Chance as an argument: a stream of numbers that its seed decides completely.
///
/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
/// The same seed gives the same numbers on every machine. Every concern of a world (one link's
/// delays, one host's crystal …) has a stream of its own, so that drawing once more in one place
/// changes nothing in another.
public struct SplitMix64: RandomNumberGenerator, Sendable, BitwiseCopyable {
    private var state: UInt64

    /// The stream of that seed: the same numbers on every machine; 0 is a seed like any other.
    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    // MARK: Distributions

    /// 0 ..< 1.
    public mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// `low` ..< `high`, each value as likely.
    public mutating func uniform(_ low: Double, _ high: Double) -> Double {
        low + (high - low) * uniform()
    }

    /// True with probability `p`.
    public mutating func chance(_ p: Double) -> Bool { uniform() < p }

    /// Exponentially distributed, 0 or more: waiting times of what happens at random.
    public mutating func exponential(mean: Double) -> Double { -mean * log(1 - uniform()) }

    /// Mean 0, standard deviation 1 (Box and Muller).
    public mutating func normal() -> Double {
        let radius = (-2 * log(1 - uniform())).squareRoot()
        return radius * cos(2 * .pi * uniform())
    }

    /// Mean `shape × scale` (Marsaglia and Tsang 2000; for shapes below 1 with their boost).
    public mutating func gamma(shape: Double, scale: Double) -> Double {
        if shape < 1 {
            let boost = pow(1 - uniform(), 1 / shape)
            return gamma(shape: shape + 1, scale: scale) * boost
        }
        let d = shape - 1 / 3.0
        let c = 1 / (9 * d).squareRoot()
        while true {
            let x = normal()
            let v = (1 + c * x) * (1 + c * x) * (1 + c * x)
            if v > 0, log(1 - uniform()) < 0.5 * x * x + d - d * v + d * log(v) {
                return d * v * scale
            }
        }
    }
}
