import Testing
import TuttiChance
import TuttiTiming

/// Facts of arithmetic on fractions, tried on all small cases and on seeded large ones.
struct MediaTimeTests {
    static let small: [MediaTime] = (-4...4).flatMap { value in
        (1...6).map { MediaTime(value: Int64(value), timescale: Int32($0)) }
    }
    static let special: [MediaTime] = [
        .negativeInfinity, .indefinite, .positiveInfinity, .invalid,
    ]
    static let extreme: [MediaTime] = [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max].flatMap {
        value in
        [1, 2, 3, 44_100, 1_000_000_000, Int32.max - 1, .max].map {
            MediaTime(value: value, timescale: $0)
        }
    }

    /// Whether `time` is the nearest at its own timescale to `numerator / denominator` seconds.
    func isNearest(_ time: MediaTime, _ numerator: Int128, over denominator: Int128) -> Bool {
        let error = Int128(time.value) * denominator - numerator * Int128(time.timescale)
        return error.magnitude <= (denominator.magnitude + 1) / 2
    }

    func checkSum(_ a: MediaTime, _ b: MediaTime, _ sum: MediaTime, sign: Int128) {
        let numerator =
            Int128(a.value) * Int128(b.timescale) + sign * Int128(b.value) * Int128(a.timescale)
        let denominator = Int128(a.timescale) * Int128(b.timescale)
        if sum.isNumeric {
            #expect(isNearest(sum, numerator, over: denominator), "\(a) \(sign) \(b) = \(sum)")
            let isExact =
                Int128(sum.value) * denominator == numerator * Int128(sum.timescale)
            #expect(sum.wasRounded == !isExact, "\(a) \(sign) \(b) = \(sum)")
        } else {
            // Only when half a second or more beyond the whole seconds that fit.
            let limit = denominator * Int128(Int64.max)
            #expect(sum == (numerator < 0 ? .negativeInfinity : .positiveInfinity))
            #expect(numerator.magnitude >= limit.magnitude, "\(a) \(sign) \(b) = \(sum)")
        }
    }

    @Test func `the order of small times is the order of their fractions`() {
        for a in Self.small {
            for b in Self.small {
                let (x, y) = (a.value * Int64(b.timescale), b.value * Int64(a.timescale))
                #expect((a < b) == (x < y))
                #expect((a == b) == (x == y))
                if a == b { #expect(a.hashValue == b.hashValue) }
            }
        }
    }

    @Test func `times without a number sort around all numbers`() {
        for time in Self.small + Self.extreme {
            #expect(MediaTime.negativeInfinity < time)
            #expect(time < .indefinite)
        }
        #expect(MediaTime.indefinite < .positiveInfinity)
        #expect(MediaTime.positiveInfinity < .invalid)
        for time in Self.special { #expect(time == time) }
    }

    @Test func `order is total over extremes`() {
        let all = Self.extreme + Self.special
        for a in all {
            for b in all {
                #expect([a < b, a == b, b < a].count { $0 } == 1, "\(a) \(b)")
            }
        }
        let sorted = all.sorted()
        for (a, b) in zip(sorted, sorted.dropFirst()) { #expect(a <= b) }
    }

    @Test func `sums of small times are exact at the common timescale`() {
        for a in Self.small {
            for b in Self.small {
                checkSum(a, b, a + b, sign: 1)
                checkSum(a, b, a - b, sign: -1)
                #expect(!(a + b).wasRounded)
                #expect((a + b) - b == a)
            }
        }
    }

    @Test func `sums of extremes are the nearest that fits and never trap`() {
        for a in Self.extreme {
            for b in Self.extreme {
                checkSum(a, b, a + b, sign: 1)
                checkSum(a, b, a - b, sign: -1)
            }
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `sums of any times are the nearest that fits`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            let a = MediaTime(value: random.anySize(), timescale: random.timescale())
            let b = MediaTime(value: random.anySize(), timescale: random.timescale())
            checkSum(a, b, a + b, sign: 1)
            checkSum(a, b, a - b, sign: -1)
            #expect(a + b == b + a)
        }
    }

    @Test func `sums with times without a number follow the stated rules`() {
        let one = MediaTime(value: 1, timescale: 1)
        for time in Self.special + [one] {
            #expect(time + .invalid == .invalid)
            #expect(.invalid - time == .invalid)
        }
        #expect(MediaTime.positiveInfinity + one == .positiveInfinity)
        #expect(one - .positiveInfinity == .negativeInfinity)
        #expect(MediaTime.positiveInfinity + .negativeInfinity == .invalid)
        #expect(MediaTime.positiveInfinity - .negativeInfinity == .positiveInfinity)
        #expect(MediaTime.negativeInfinity + .indefinite == .negativeInfinity)
        #expect(MediaTime.indefinite + one == .indefinite)
        #expect(-MediaTime.indefinite == .indefinite)
    }

    @Test(arguments: [5, 6, 7] as [UInt64])
    func `products by fractions are the nearest that fits`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            let time = MediaTime(value: random.anySize(), timescale: random.timescale())
            let multiplier = Int32(truncatingIfNeeded: random.anySize())
            let divisor = Int32(truncatingIfNeeded: random.anySize())
            let product = time.multiplied(by: multiplier, over: divisor)
            guard divisor != 0 else {
                #expect(product == .invalid)
                continue
            }
            let sign: Int128 = divisor < 0 ? -1 : 1
            let numerator = sign * Int128(time.value) * Int128(multiplier)
            let denominator = sign * Int128(divisor) * Int128(time.timescale)
            if product.isNumeric {
                #expect(isNearest(product, numerator, over: denominator))
            } else {
                #expect(product.isInfinite)
                #expect(numerator.magnitude >= (denominator * Int128(Int64.max)).magnitude)
            }
        }
    }

    @Test func `the least value has a negative`() {
        let least = MediaTime(value: .min, timescale: 48_000)
        #expect(-least > MediaTime(value: .max, timescale: 48_000))
        #expect((-least).isNumeric)
        #expect(-MediaTime(value: .min, timescale: 1) == .positiveInfinity)
    }

    @Test func `a product with a double is rounded once`() {
        let time = MediaTime(value: 3, timescale: 48_000)
        #expect(time.multiplied(by: 0.5) == MediaTime(value: 2, timescale: 48_000))
        #expect(time.multiplied(by: -0.5) == MediaTime(value: -2, timescale: 48_000))
        #expect(time.multiplied(by: 0.25).wasRounded)
        #expect(!time.multiplied(by: 2).wasRounded)
        // Above 2^53 a Double product would lose units.
        let large = MediaTime(value: 1 << 60 | 1, timescale: 1)
        #expect(large.multiplied(by: 3) == MediaTime(value: 3 << 60 | 3, timescale: 1))
    }

    @Test(arguments: [8, 9] as [UInt64])
    func `no double makes a product trap and signs are kept`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let odd: [Double] = [
            0, -0.0, 1, -1, .infinity, -.infinity, .nan, .leastNonzeroMagnitude,
            .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNormalMagnitude, 0x1p63,
        ]
        for round in 0..<4_000 {
            let time = MediaTime(value: random.anySize(), timescale: random.timescale())
            let factor = round < 48 ? odd[round % 12] : Double(bitPattern: random.next())
            let product = time.multiplied(by: factor)
            if factor.isNaN || (factor.isInfinite && time.value == 0) {
                #expect(product == .invalid)
            } else {
                let exact = Double(time.value) * factor
                if abs(exact) >= 1 { #expect((product > .zero) == (exact > 0)) }
                if abs(exact) < 0x1p62 {
                    // One unit of rounding plus the error of this test's own product.
                    let tolerance = 1 + abs(exact) * 0x1p-50
                    #expect(abs(Double(product.value) - exact) <= tolerance)
                } else if abs(exact) > 0x1p64 {
                    #expect(product.isInfinite)
                }
            }
        }
    }

    @Test func `every double of seconds is taken and comes back`() {
        #expect(MediaTime(seconds: .nan) == .invalid)
        #expect(MediaTime(seconds: -.infinity) == .negativeInfinity)
        #expect(MediaTime(seconds: 1e30) == .positiveInfinity)
        #expect(MediaTime(seconds: 1, preferredTimescale: 0) == .invalid)
        #expect(MediaTime(seconds: 0.5, preferredTimescale: 1).value == 1)
        #expect(MediaTime(seconds: -0.5, preferredTimescale: 1).value == -1)
        #expect(MediaTime.indefinite.seconds.isNaN)
        var random = SplitMix64(seed: 10)
        for _ in 0..<2_000 {
            // A multiple of 2^-20 is exact at a timescale of 2^20.
            let seconds = Double(Int64(bitPattern: random.next()) >> 22) * 0x1p-20
            let time = MediaTime(seconds: seconds, preferredTimescale: 1 << 20)
            #expect(time.seconds == seconds)
            #expect(!time.wasRounded)
        }
    }
}
