import Testing
import TuttiTiming

/// Saturating arithmetic, compared with exact arithmetic in 128 bits.
struct NanosecondsTests {
    static let ends: [Int64] = [
        .min, .min + 1, -1_000_000_000, -1, 0, 1, 1_000_000_000, .max - 1, .max,
    ]

    func clamped(_ x: Int128) -> Int64 { Int64(clamping: x) }

    @Test func `arithmetic of all extremes is the exact result clamped`() {
        for a in Self.ends {
            for b in Self.ends {
                let (x, y) = (Nanoseconds(a), Nanoseconds(b))
                #expect((x + y).count == clamped(Int128(a) + Int128(b)))
                #expect((x - y).count == clamped(Int128(a) - Int128(b)))
                #expect((x * b).count == clamped(Int128(a) * Int128(b)))
                #expect((x / b).count == (b == 0 ? 0 : clamped(Int128(a) / Int128(b))))
                let instant = LocalInstant(nanoseconds: a)
                #expect((instant + y).nanoseconds == clamped(Int128(a) + Int128(b)))
                #expect((instant - y).nanoseconds == clamped(Int128(a) - Int128(b)))
                #expect(
                    (instant - LocalInstant(nanoseconds: b)).count
                        == clamped(Int128(a) - Int128(b)))
            }
            #expect((-Nanoseconds(a)).count == clamped(-Int128(a)))
            #expect(Nanoseconds(a).magnitude >= .zero)
            #expect(Nanoseconds.milliseconds(a).count == clamped(Int128(a) * 1_000_000))
        }
    }

    @Test func `a double becomes the nearest integer`() {
        #expect(Int64(saturating: 0.49999999999999994) == 0)
        #expect(Int64(saturating: 0.5) == 1)
        #expect(Int64(saturating: -0.5) == -1)
        #expect(Int64(saturating: -0.49999999999999994) == 0)
        #expect(Int64(saturating: 2.5) == 3)
        // Odd integers beyond 2^52, where a half is no longer representable.
        #expect(Int64(saturating: 4_503_599_627_370_497) == 4_503_599_627_370_497)
        #expect(Int64(saturating: -9_007_199_254_740_991) == -9_007_199_254_740_991)
    }

    @Test func `a double out of range is clamped and one in range is kept`() {
        let below = Double(sign: .plus, exponent: 63, significand: 1).nextDown
        #expect(Int64(saturating: below) == Int64(below))
        #expect(Int64(saturating: -below) == -Int64(below))
        #expect(Int64(saturating: 0x1p63) == .max)
        #expect(Int64(saturating: -0x1p63) == .min)
        #expect(Int64(saturating: .infinity) == .max)
        #expect(Int64(saturating: -.infinity) == .min)
        #expect(Int64(saturating: .nan) == 0)
        #expect(Nanoseconds(seconds: 1e300).count == .max)
        #expect(Nanoseconds(seconds: 1.5).count == 1_500_000_000)
    }
}
