import Testing
import TuttiChance
import TuttiTiming

/// Maps are affine; what they lose is rounding, and how much follows from where they round.
struct ClockMapTests {
    typealias Local = Instant<LocalClock>
    enum Third {}

    /// A map between clocks of any age (up to 292 years) with the skew of bad crystals.
    static func anyMap<A, B>(_ random: inout SplitMix64, from: Instant<A>) -> ClockMap<A, B> {
        ClockMap(
            from: from, to: Instant(nanoseconds: Int64(bitPattern: random.next()) >> 2),
            skew: Double.random(in: -1e-3...1e-3, using: &random))
    }
    /// A span of at most a day, 8.64e13 ns.
    static func span(_ random: inout SplitMix64) -> Nanoseconds {
        Nanoseconds(Int64.random(in: -86_400_000_000_000...86_400_000_000_000, using: &random))
    }

    /// A map rounds once, to half a nanosecond; the correction of at most 8.64e10 ns is a `Double`
    /// product good to 2^-53 of itself. Going there and back rounds twice.
    @Test(arguments: [40, 41, 42] as [UInt64])
    func `the inverse leads back to within the two roundings`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<3_000 {
            let anchor = Local(nanoseconds: Int64(bitPattern: random.next()) >> 2)
            let map: ClockMap<LocalClock, GroupClock> = Self.anyMap(&random, from: anchor)
            let instant = anchor + Self.span(&random)
            let error = map.inverted(map(instant)) - instant
            #expect(error.magnitude <= Nanoseconds(1))
        }
    }

    /// Three roundings of half a nanosecond one way, two the other, each stretched by at most 0.1
    /// %.
    @Test(arguments: [43, 44, 45] as [UInt64])
    func `a composition agrees with one map after the other`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<3_000 {
            let anchor = Local(nanoseconds: Int64(bitPattern: random.next()) >> 2)
            let first: ClockMap<LocalClock, GroupClock> = Self.anyMap(&random, from: anchor)
            let second: ClockMap<GroupClock, Third> = Self.anyMap(
                &random, from: first.toAnchor + Self.span(&random))
            let instant = anchor + Self.span(&random)
            let error = first.composed(with: second)(instant) - second(first(instant))
            #expect(error.magnitude <= Nanoseconds(2))
        }
    }

    @Test func `the map is exact at its anchor and moves with the rate`() {
        let map = ClockMap<LocalClock, GroupClock>(
            from: Local(nanoseconds: 1_000), to: GroupInstant(nanoseconds: -5), skew: 100e-6)
        #expect(map(Local(nanoseconds: 1_000)) == GroupInstant(nanoseconds: -5))
        // 100 ppm of a second are 100 µs.
        #expect(
            map(Local(nanoseconds: 1_000_001_000)) == GroupInstant(nanoseconds: 1_000_099_995))
    }

    @Test(arguments: [46] as [UInt64])
    func `moving the anchor moves no instant`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<3_000 {
            let anchor = Local(nanoseconds: Int64(bitPattern: random.next()) >> 2)
            let map: ClockMap<LocalClock, GroupClock> = Self.anyMap(&random, from: anchor)
            let moved = map.reanchored(at: anchor + Self.span(&random))
            let instant = anchor + Self.span(&random)
            // Two roundings one way, one the other.
            #expect((moved(instant) - map(instant)).magnitude <= Nanoseconds(1))
        }
    }

    @Test func `later stays later for crystals that exist`() {
        var random = SplitMix64(seed: 47)
        for _ in 0..<3_000 {
            let anchor = Local(nanoseconds: Int64(bitPattern: random.next()) >> 2)
            let map: ClockMap<LocalClock, GroupClock> = Self.anyMap(&random, from: anchor)
            let instant = anchor + Self.span(&random)
            #expect(map(instant) <= map(instant + Nanoseconds(1)))
        }
    }

    @Test func `no extreme traps and far instants stay on their side`() {
        let ends: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]
        let skews: [Double] = [0, 1e-4, -1e-4, -1, -2, 1e300, -1e300, .infinity, .nan]
        for from in ends {
            for to in ends {
                for skew in skews {
                    let map = ClockMap<LocalClock, GroupClock>(
                        from: Local(nanoseconds: from), to: GroupInstant(nanoseconds: to),
                        skew: skew)
                    for now in ends {
                        let instant = Local(nanoseconds: now)
                        let there = map(instant)
                        _ = map.inverted(there)
                        _ = map.inverted.inverted(instant)
                        _ = map.reanchored(at: instant).composed(with: map.inverted)(instant)
                        if skew == 0, from == 0, to == 0 { #expect(there.nanoseconds == now) }
                        if abs(skew) < 1e-3, from <= 0, to >= 0, now >= 0 {
                            #expect(there.nanoseconds >= to)
                        }
                    }
                }
            }
        }
    }

    @Test func `a clock against itself is the identity`() {
        for now in [Int64.min, -1, 0, 12_345, .max] {
            let instant = Local(nanoseconds: now)
            #expect(ClockMap<LocalClock, LocalClock>.identity(instant) == instant)
        }
    }

    @Test func `the clock of the machine that defines it has no error`() {
        let now = Local(nanoseconds: 123_456_789)
        let clock = SharedClock.own(at: now, epoch: 7)
        #expect(clock.map(now).nanoseconds == now.nanoseconds)
        #expect(clock.map(now + .seconds(9)) - clock.map(now) == .seconds(9))
        #expect(clock.uncertainty == .zero && clock.quality == .locked && clock.epoch == 7)
    }
}
