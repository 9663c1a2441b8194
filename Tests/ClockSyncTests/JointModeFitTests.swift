import Testing

@testable import ClockSync

/// One second of exchanges, as a room that joins sees it: two milliseconds apart, and nothing known
/// of the skew but what crystals are.
struct JointModeFitTests {
    private static let offset = 0.25
    private static let unknown = StoredSkew.unknown.deviation * StoredSkew.unknown.deviation

    /// - Parameter delay: one way at a time, seconds; the time runs from −1 to 0.
    private func pair(
        seed: UInt64, skew: Double, count: Int = 500, known: Double? = nil,
        delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> JointModeFit? {
        var random = Randomness(seed: seed)
        var (forward, backward): ([ModePeak.Point], [ModePeak.Point]) = ([], [])
        for number in 0..<count {
            let time = Double(number - count) / Double(count)
            let difference = Self.offset + skew * time
            forward.append((time, delay(&random, time, true) + difference))
            backward.append((time + 1e-3, delay(&random, time, false) - difference - skew * 1e-3))
        }
        return JointModeFit(forward, backward, at: 2e-3, prior: (0, Self.unknown), known: known)
    }

    /// Emulated air as recorded: one packet in eight meets nobody, and stamps blur that by 25 µs.
    private func air(_ random: inout Randomness) -> Double {
        let blur = 60e-6 + 25e-6 * max(-2.4, random.normal())
        return 300e-6 + blur + (random.chance(0.12) ? 0 : random.gamma(1.6, 1.2e-3))
    }

    /// Two deviations of two crystals cover ±120 ppm.
    @Test(arguments: [-120e-6, -40e-6, 0, 15e-6, 90e-6])
    func `a second of packets says offset and skew, and how well`(skew: Double) {
        var (count, squares, claims, turns, turnClaims) = (0.0, 0.0, 0.0, 0.0, 0.0)
        for seed in 1...60 {
            let delay = { (random: inout Randomness, _: Double, _: Bool) in air(&random) }
            guard let pair = pair(seed: UInt64(seed), skew: skew, delay: delay) else { continue }
            let error = pair.offset - (Self.offset + skew * 2e-3)
            count += 1
            squares += error * error
            claims += pair.variance
            turns += (pair.skew - skew) * (pair.skew - skew)
            turnClaims += pair.skewVariance
        }
        #expect(count > 50, "nearly every second gathers enough")
        let (error, claim) = ((squares / count).squareRoot(), (claims / count).squareRoot())
        // Some 60 packets a direction, blurred by 25 µs: 25/√60/√2 = 2.3 for the offset in the
        // middle, twice that at the end of a line through it.
        #expect(error < 2 * 2 * 2.3e-6, "\(error)")
        #expect(error < 1.4 * claim && claim < 2 * error, "\(error), \(claim)")
        let (turn, turnClaim) = ((turns / count).squareRoot(), (turnClaims / count).squareRoot())
        #expect(turn < 1.4 * turnClaim && turnClaim < 2 * turn, "\(turn), \(turnClaim)")
    }

    @Test func `near a slope that is known it finds what it finds among all`() throws {
        let skew = 60e-6
        let delay = { (random: inout Randomness, _: Double, _: Bool) in air(&random) }
        var compared = 0
        for seed in 1...40 {
            guard let all = pair(seed: UInt64(seed), skew: skew, delay: delay) else { continue }
            let near = try #require(
                pair(seed: UInt64(seed), skew: skew, known: skew + 10e-6, delay: delay))
            // Both end at a maximum of the same sum; from another start after the last bit of it.
            #expect((near.offset - all.offset).magnitude < 0.2e-6)
            #expect((near.skew - all.skew).magnitude < 0.4e-6)
            compared += 1
        }
        #expect(compared > 30)
        // Known by a mistake, beyond all that is tried: the end of that.
        for known in [-1.0, 1] {
            let found = pair(seed: 1, skew: skew, known: known, delay: delay)
            #expect(found.map { $0.skew.magnitude < 1e-3 } ?? true)
        }
    }

    /// As wide as ten crests: what chance gathers on some slope must not pass for one.
    @Test func `where nothing gathers there is none`() {
        var found = 0
        for seed in 1...100 {
            let pair = pair(seed: UInt64(seed), skew: 30e-6, count: 120) { random, _, _ in
                max(500e-6, 2e-3 + 300e-6 * random.normal())
            }
            if pair != nil { found += 1 }
        }
        #expect(found <= 3, "\(found) of 100")
    }

    /// One packet in ten finds the way out without what delays the others by 80 µs.
    @Test func `one direction whose crest stands off its edge leans`() {
        func lean(_ delay: Double) -> Double {
            let pairs = (1...40).compactMap { seed in
                pair(seed: UInt64(seed), skew: 10e-6) { random, _, isOutward in
                    air(&random) + (isOutward && !random.chance(0.1) ? delay : 0)
                }
            }
            return pairs.reduce(0) { $0 + $1.lean } / Double(max(pairs.count, 1))
        }
        let (even, uneven) = (lean(0), lean(80e-6))
        // Half of the 80 µs, less what the edges of few and of many lie apart.
        #expect(even.magnitude < 5e-6, "\(even)")
        #expect((10e-6...40e-6).contains(uneven), "\(uneven)")
    }

    @Test func `nothing is said of nothing`() {
        let few: [[ModePeak.Point]] = [[], [(0, 0)], [(-1, 0.1)]]
        for points in few {
            #expect(JointModeFit(points, points, at: 0, prior: (0, Self.unknown)) == nil)
        }
    }
}
