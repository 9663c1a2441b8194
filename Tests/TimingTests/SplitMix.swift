import TuttiChance

extension SplitMix64 {
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
