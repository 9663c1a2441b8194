import Testing

@testable import ClockSync

struct ModalBlocksTests {
    private static let skew = 12e-6
    private static let offset = 0.25

    /// Half a minute of exchanges, 40 a second, until time 0; the leader's clock is `offset` ahead
    /// then. The blocks, measured every quarter second, and the skew as known in the end.
    ///
    /// - Parameter delay: one way at a time, seconds.
    private func blocks(
        seed: UInt64,
        delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> (ModalBlocks, known: Double) {
        var random = Randomness(seed: seed)
        var blocks = ModalBlocks()
        // The skew is known to 10 ppm at first, which blurs a block by 20 µs, and to one later.
        var known = Self.skew + 10e-6
        for number in 0..<1_200 {
            let time = Double(number - 1_200) / 40
            let difference = Self.offset + Self.skew * time
            blocks.insert(
                forward: (time, delay(&random, time, true) + difference),
                backward: (time, delay(&random, time, false) - difference))
            if number == 400 { known = Self.skew + 1e-6 }
            if number % 10 == 9 { blocks.measure(skew: known) }
        }
        return (blocks, known)
    }

    /// What they say.
    private func fits(
        seed: UInt64,
        delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> [EnvelopeFit] {
        var (blocks, known) = blocks(seed: seed, delay: delay)
        return blocks.fits(at: 0, prior: (known, 1e-6 * 1e-6), delay: 600e-6)
    }

    /// Emulated air as recorded: one packet in eight meets nobody, and stamps blur that by 25 µs.
    private func air(_ random: inout Randomness, unhindered: Double = 0.12) -> Double {
        let blur = 60e-6 + 25e-6 * max(-2.4, random.normal())
        return 300e-6 + blur + (random.chance(unhindered) ? 0 : random.gamma(1.6, 1.2e-3))
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

    /// Floors that change every three seconds, at random and by more than crests are unsure of.
    @Test func `whether both directions move alike is told from neighbouring blocks`() {
        func lopsidedness(
            _ floors: (_ period: UInt64, _ isOutward: Bool) -> UInt64
        ) -> [Double] {
            (1...UInt64(20)).map { seed in
                let (blocks, known) = blocks(seed: seed) { random, time, isOutward in
                    let period = UInt64(time / 3 + 1_000)
                    var chance = Randomness(seed: floors(period, isOutward) + seed << 32)
                    return air(&random, unhindered: 0.5) + 60e-6 * chance.normal()
                }
                return blocks.lopsidedness(skew: known)
            }
        }
        let alike = lopsidedness { period, _ in period }
        let apart = lopsidedness { period, isOutward in isOutward ? period : period + 10_000 }
        let middle = { (values: [Double]) in values.sorted()[values.count / 2] }
        #expect(middle(alike) < 0.4, "\(alike)")
        // Independent ones move by as much apart as together.
        #expect(middle(apart) > 0.7, "\(apart)")
    }

    @Test func `of few blocks nothing is known of how alike both directions move`() {
        #expect(ModalBlocks().lopsidedness(skew: 0) == 1)
    }

    /// A host under load delays both directions: by 90 µs within the half minute.
    @Test func `a crest that moves in both directions alike moves nothing`() {
        let still = errors(seeds: 30) { random, _, _ in air(&random) }
        let moving = errors(seeds: 30) { random, time, _ in air(&random) - 3e-6 * time }
        #expect(moving.error < still.error + 90e-6 / 30, "\(moving), \(still)")
        #expect(moving.claim < 1.5 * still.claim, "\(moving), \(still)")
    }

    /// Every seven seconds, in each direction by itself. Some four floors a direction, each with a
    /// deviation of 43 µs (150/√12): half the difference of two means of those has 15, and a line
    /// at its end more.
    @Test func `floors that move are in the error`() {
        var (squares, claims) = (0.0, 0.0)
        for seed in 1...40 {
            var random = Randomness(seed: UInt64(1_000 + seed))
            let floors = (0..<20).map { _ in 150e-6 * random.unit() }
            let one = errors(seeds: 1) { random, time, isOutward in
                air(&random) + floors[Int(-time / 7) * 2 + (isOutward ? 1 : 0)]
            }
            squares += one.error * one.error
            claims += one.claim * one.claim
        }
        let (error, claim) = ((squares / 40).squareRoot(), (claims / 40).squareRoot())
        #expect(error > 12e-6, "the floors do matter: \(error)")
        #expect(error < 1.2 * claim, "\(error), \(claim)")
    }

    /// As wide as ten crests, at the steady rate of wires: what chance makes of it is rare.
    @Test func `delays that scatter widely say nothing, or what they claim`() {
        var (count, squares, claims) = (0, 0.0, 0.0)
        for seed in 1...40 {
            var random = Randomness(seed: UInt64(seed))
            var blocks = ModalBlocks()
            for number in 0..<480 {
                let time = Double(number - 480) / 8
                let difference = Self.skew * time
                blocks.insert(
                    forward: (time, 1e-3 + 300e-6 * random.normal() + difference),
                    backward: (time, 1e-3 + 300e-6 * random.normal() - difference))
                if number % 2 == 1 { blocks.measure(skew: Self.skew) }
            }
            for fit in blocks.fits(at: 0, prior: (Self.skew, 6e-5 * 6e-5), delay: 1e-3) {
                count += 1
                squares += fit.offset * fit.offset
                claims += fit.error * fit.error
            }
        }
        #expect(count <= 3 * 40 / 4, "\(count) of 120")
        #expect(squares <= 9 * claims)
    }

    @Test func `what is forgotten is forgotten`() {
        var random = Randomness(seed: 5)
        var blocks = ModalBlocks()
        func run(_ seconds: Range<Int>, offset: Double) {
            for number in seconds.lowerBound * 40..<seconds.upperBound * 40 {
                let time = Double(number) / 40
                blocks.insert(
                    forward: (time, air(&random) + offset), backward: (time, air(&random) - offset))
                if number % 10 == 9 { blocks.measure(skew: 0) }
            }
        }
        run(0..<20, offset: 1)
        blocks.removeAll()
        #expect(blocks.fits(at: 20, prior: (0, 1e-12), delay: 600e-6).isEmpty)
        run(20..<40, offset: 2)
        let fits = blocks.fits(at: 40, prior: (0, 1e-12), delay: 600e-6)
        #expect(!fits.isEmpty && fits.allSatisfy { ($0.offset - 2).magnitude < 100e-6 })
    }

    @Test func `a silence of minutes ends a block`() {
        var random = Randomness(seed: 6)
        var blocks = ModalBlocks()
        for number in 0..<1_600 {
            // One second of packets, then 300 s of nothing, then half a minute.
            let time = Double(number) / 40 + (number < 40 ? 0 : 300)
            let difference = 100e-6 * time
            blocks.insert(
                forward: (time, air(&random) + difference),
                backward: (time, air(&random) - difference))
            // Far off: what came before the silence is 6 ms away from there.
            if number % 10 == 9 { blocks.measure(skew: 80e-6) }
        }
        let fits = blocks.fits(at: 339, prior: (80e-6, 3e-5 * 3e-5), delay: 600e-6)
        #expect(!fits.isEmpty && fits.allSatisfy { ($0.offset - 33.9e-3).magnitude < 100e-6 })
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
