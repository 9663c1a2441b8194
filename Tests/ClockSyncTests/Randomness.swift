import Glibc
import TuttiChance

/// A seeded source with the distributions that the bounds of these tests were derived with.
struct Randomness: RandomNumberGenerator {
    private var numbers: SplitMix64
    init(seed: UInt64) {
        numbers = SplitMix64(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678_9ABC_DEF1)
    }

    mutating func next() -> UInt64 { numbers.next() }

    /// 0 < x < 1.
    mutating func unit() -> Double { (Double(next() >> 11) + 0.5) * 0x1p-53 }
    mutating func uniform(_ low: Double, _ high: Double) -> Double { low + (high - low) * unit() }
    mutating func chance(_ p: Double) -> Bool { unit() < p }
    mutating func exponential(_ mean: Double) -> Double { -mean * log(unit()) }
    mutating func normal() -> Double { sqrt(-2 * log(unit())) * cos(2 * .pi * unit()) }

    /// Marsaglia and Tsang (2000); shapes below 1 by the usual power of a uniform.
    mutating func gamma(_ shape: Double, _ scale: Double) -> Double {
        if shape < 1 { return gamma(shape + 1, scale) * pow(unit(), 1 / shape) }
        let d = shape - 1 / 3
        let c = 1 / sqrt(9 * d)
        while true {
            let x = normal()
            let v = pow(1 + c * x, 3)
            if v > 0, log(unit()) < 0.5 * x * x + d - d * v + d * log(v) { return d * v * scale }
        }
    }
}
