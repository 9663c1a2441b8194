import Testing

@testable import ClockSync

struct ModalBlocksTests {
    private static let skew = 12e-6
    private static let offset = 0.25

    /// Half a minute of exchanges, 40 a second, until time 0; the leader's clock is `offset` ahead
    /// then. What the blocks make of it, a solve every quarter second.
    ///
    /// - Parameter delay: one way at a time, seconds.
    private func fits(
        seed: UInt64,
        delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> [EnvelopeFit] {
        var random = Randomness(seed: seed)
        var blocks = ModalBlocks()
        // The skew is known to a ppm and a half at first, and half of that later.
        var known = Self.skew + 1.5e-6
        for number in 0..<1_200 {
            let time = Double(number - 1_200) / 40
            let difference = Self.offset + Self.skew * time
            blocks.insert(
                forward: (time, delay(&random, time, true) + difference),
                backward: (time, delay(&random, time, false) - difference))
            if number == 400 { known = Self.skew + 0.7e-6 }
            if number % 10 == 9 { blocks.measure(skew: known) }
        }
        return blocks.fits(at: 0, prior: (known, 1e-6 * 1e-6), delay: 600e-6)
    }

    /// Emulated air as recorded: one packet in eight meets nobody, and stamps blur that by 25 µs.
    private func air(_ random: inout Randomness) -> Double {
        let blur = 60e-6 + 25e-6 * max(-2.4, random.normal())
        return 300e-6 + blur + (random.chance(0.12) ? 0 : random.gamma(1.6, 1.2e-3))
    }

    /// Root mean square of error and claim, of all seeds and walks; seconds.
    private func errors(
        seeds: Int, of delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> (count: Int, error: Double, claim: Double) {
        var (count, squares, claims) = (0, 0.0, 0.0)
        for seed in 1...seeds {
            for fit in fits(seed: UInt64(seed), delay: delay) {
                count += 1
                squares += (fit.offset - Self.offset) * (fit.offset - Self.offset)
                claims += fit.error * fit.error
            }
        }
        let number = Double(max(count, 1))
        return (count, (squares / number).squareRoot(), (claims / number).squareRoot())
    }

    @Test func `where a share of the packets meets nobody the clock is where most of them agree`() {
        let all = errors(seeds: 60) { random, _, _ in air(&random) }
        #expect(all.count > 100)
        // A third of the blur of one packet, and about what is claimed.
        #expect(all.error < 8e-6, "\(all)")
        #expect(all.error < 1.2 * all.claim && all.claim < 3 * all.error, "\(all)")
    }

    /// A host under load delays both directions.
    @Test func `a crest that moves in both directions alike moves nothing`() {
        let still = errors(seeds: 30) { random, _, _ in air(&random) }
        let moving = errors(seeds: 30) { random, time, _ in air(&random) - 3e-6 * time }
        #expect(moving.error < 1.5 * still.error, "\(moving), \(still)")
        #expect(moving.claim < 1.5 * still.claim, "\(moving), \(still)")
    }

    /// Every seven seconds, in each direction by itself.
    @Test func `floors that move are in the error`() {
        var floors: [Double] = []
        var random = Randomness(seed: 9)
        for _ in 0..<20 { floors.append(150e-6 * random.unit()) }
        let all = errors(seeds: 30) { random, time, isOutward in
            air(&random) + floors[Int(-time / 7) * 2 + (isOutward ? 1 : 0)]
        }
        #expect(all.error > 15e-6, "the floors do matter: \(all)")
        #expect(all.error < 2 * all.claim, "\(all)")
    }

    @Test func `a wrong crest now and then moves nothing`() {
        let all = errors(seeds: 30) { random, time, isOutward in
            // Two and a half seconds in which nobody in one direction meets nobody.
            let isBusy = isOutward && (-12.5)...(-10) ~= time
            return isBusy ? 700e-6 + 20e-6 * random.unit() : air(&random)
        }
        // A tenth of what the block says.
        #expect(all.error < 18e-6, "\(all)")
    }

    @Test func `delays without a crest say nothing`() {
        for seed in 1...20 {
            let flat = fits(seed: UInt64(seed)) { random, _, _ in 300e-6 + 5e-3 * random.unit() }
            #expect(flat.isEmpty, "seed \(seed)")
        }
        var blocks = ModalBlocks()
        blocks.measure(skew: 0)
        #expect(blocks.fits(at: 0, prior: (0, 1e-12), delay: 0).isEmpty)
        blocks.insert(forward: (0, 1e-3), backward: (0, 1e-3))
        blocks.measure(skew: 0)
        #expect(blocks.fits(at: 0, prior: (0, 1e-12), delay: 0).isEmpty)
    }

    @Test func `two crests in one direction are doubtful, where one is not the clearer`() {
        let two = errors(seeds: 30) { random, _, isOutward in
            300e-6 + 10e-6 * random.unit() + (isOutward && random.chance(0.5) ? 250e-6 : 0)
        }
        #expect(two.error < two.claim, "\(two)")
        #expect(two.claim > 20e-6, "\(two)")
    }

    @Test func `a crest that stands higher in one direction is doubtful by half of that`() throws {
        let lopsided = fits(seed: 3) { random, _, isOutward in
            300e-6 + (isOutward ? 100e-6 * (random.chance(0.1) ? 0 : 1) : 0) + 5e-6 * random.unit()
        }
        let reading = try #require(lopsided.first)
        let error = (reading.offset - Self.offset).magnitude
        #expect(error > 40e-6, "nobody can see which direction is right")
        #expect(reading.error > 0.9 * error)
    }
}
