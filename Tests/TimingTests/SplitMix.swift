/// A small seeded generator (SplitMix64, Steele, Lea, Flood 2014): same seed, same cases.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// A value whose *size* is evenly spread: small ones and the extremes come up often.
    mutating func anySize() -> Int64 {
        let value = Int64(bitPattern: next()) >> Int64(next() % 64)
        return next() % 16 == 0 ? [.min, .max, 0, .min + 1][Int(next() % 4)] : value
    }

    mutating func timescale() -> Int32 {
        let common: [Int32] = [1, 2, 3, 600, 44_100, 48_000, 1_000_000_000, .max, .max - 1]
        let free = Int32(truncatingIfNeeded: next() >> 33) >> Int32(next() % 31)
        return next() % 2 == 0 ? common[Int(next() % 9)] : max(1, free)
    }
}
