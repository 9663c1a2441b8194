import TuttiChance

/// One number for everything that happened: two runs with the same number did the same.
///
/// FNV-1a over 64-bit words instead of bytes, finished with SplitMix64's mixer: it needs to notice
/// a difference, not to resist anybody.
struct TraceHash: Sendable {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ word: UInt64) {
        state = (state ^ word) &* 0x0000_0100_0000_01B3
        state ^= state >> 29
    }

    mutating func add(_ number: Int64) { add(UInt64(bitPattern: number)) }

    mutating func add(_ number: Double) { add(number.bitPattern) }

    var value: UInt64 {
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
