import Testing

@testable import TuttiClockSync

struct ModeBlocksTests {
    private static let skew = 12e-6
    private static let offset = 0.25

    /// Half a minute of exchanges, 40 a second, until time 0; the leader's clock is `offset` ahead
    /// then. The blocks, measured every quarter second, and the skew as known in the end.
    ///
    /// - Parameter delay: one way at a time, seconds.
    private func blocks(
        seed: UInt64, isWire: Bool = false,
        delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> (ModeBlocks, known: Double) {
        // Seeds next to each other give one sequence, moved by a step.
        var random = Randomness(seed: seed << 32)
        var blocks = ModeBlocks()
        // The skew is known to 10 ppm at first, which blurs a block by 20 µs, and to one later.
        var known = Self.skew + 10e-6
        for number in 0..<1_200 {
            let time = Double(number - 1_200) / 40
            let difference = Self.offset + Self.skew * time
            blocks.insert(
                forward: (time, delay(&random, time, true) + difference),
                backward: (time, delay(&random, time, false) - difference))
            if number == 400 { known = Self.skew + 1e-6 }
            if number % 10 == 9 { blocks.measure(skew: known, isWire: isWire) }
        }
        return (blocks, known)
    }

    /// What they say.
    private func fits(
        seed: UInt64, isWire: Bool = false,
        delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> [ClockReading] {
        var (blocks, known) = blocks(seed: seed, isWire: isWire, delay: delay)
        return blocks.fits(at: 0, prior: (known, 1e-6 * 1e-6), delay: 600e-6)
    }

    /// Emulated air as recorded: one packet in eight meets nobody, and stamps blur that by 25 µs.
    private func air(_ random: inout Randomness, unhindered: Double = 0.12) -> Double {
        let blur = 60e-6 + 25e-6 * max(-2.4, random.normal())
        return 300e-6 + blur
            + (random.chance(unhindered) ? 0 : random.gamma(1.6, 1.2e-3))
    }

    /// Root mean square of error and claim, of all seeds and walks; seconds.
    private func errors(
        seeds: Int, isWire: Bool = false,
        of delay: (inout Randomness, _ time: Double, _ isOutward: Bool) -> Double
    ) -> (count: Int, error: Double, claim: Double) {
        var (count, squares, claims) = (0, 0.0, 0.0)
        for seed in 1...seeds {
            for fit in fits(seed: UInt64(seed), isWire: isWire, delay: delay) {
                count += 1
                squares += (fit.offset - Self.offset) * (fit.offset - Self.offset)
                claims += fit.error * fit.error
            }
        }
        let number = Double(max(count, 1))
        return (count, (squares / number).squareRoot(), (claims / number).squareRoot())
    }

    @Test(arguments: [false, true])
    func `where a share of the packets meets nobody the clock is where they agree`(isWire: Bool) {
        let all = errors(seeds: 60, isWire: isWire) { random, _, _ in air(&random) }
        #expect(all.count > 100)
        // A third of the blur of one packet, and about what is claimed.
        #expect(all.error < 8e-6, "\(all)")
        #expect(all.error < 1.2 * all.claim && all.claim < 3 * all.error, "\(all)")
    }

    /// Floors that change every three seconds, at random and by more than crests are unsure of.
    @Test(arguments: [false, true])
    func `whether both directions move alike is told from neighbouring blocks`(isWire: Bool) {
        func lopsidedness(
            _ floors: (_ period: UInt64, _ isOutward: Bool) -> UInt64
        ) -> [Double] {
            (1...UInt64(20)).map { seed in
                let (blocks, known) = blocks(seed: seed, isWire: isWire) {
                    random, time, isOutward in
                    let period = UInt64(time / 3 + 1_000)
                    var chance = Randomness(seed: (seed << 40) ^ (floors(period, isOutward) << 20))
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
        #expect(ModeBlocks().lopsidedness(skew: 0) == 1)
    }

    /// A host under load delays both directions: by 90 µs within the half minute.
    @Test(arguments: [false, true])
    func `a gathering that moves in both directions alike moves nothing`(isWire: Bool) {
        let still = errors(seeds: 30, isWire: isWire) { random, _, _ in air(&random) }
        let moving = errors(seeds: 30, isWire: isWire) { random, time, _ in
            air(&random) - 3e-6 * time
        }
        #expect(moving.error < still.error + 90e-6 / 30, "\(moving), \(still)")
        #expect(moving.claim < 1.5 * still.claim, "\(moving), \(still)")
    }

    /// Every seven seconds, in each direction by itself. Some four floors a direction, each with a
    /// deviation of 43 µs (150/√12): half the difference of two means of those has 15, and a line
    /// at its end more.
    @Test(arguments: [false, true]) func `floors that move are in the error`(isWire: Bool) {
        var (squares, claims) = (0.0, 0.0)
        for seed in 1...40 {
            var random = Randomness(seed: UInt64(1_000 + seed) << 32)
            let floors = (0..<20).map { _ in 150e-6 * random.unit() }
            let one = errors(seeds: 1, isWire: isWire) { random, time, isOutward in
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
    @Test(arguments: [false, true])
    func `delays that scatter widely say nothing, or what they claim`(isWire: Bool) {
        var (count, squares, claims) = (0, 0.0, 0.0)
        for seed in 1...40 {
            var random = Randomness(seed: UInt64(seed) << 32)
            var blocks = ModeBlocks()
            for number in 0..<480 {
                let time = Double(number - 480) / 8
                let difference = Self.skew * time
                blocks.insert(
                    forward: (time, 1e-3 + 300e-6 * random.normal() + difference),
                    backward: (time, 1e-3 + 300e-6 * random.normal() - difference))
                if number % 2 == 1 { blocks.measure(skew: Self.skew, isWire: isWire) }
            }
            let prior = (skew: Self.skew, variance: 6e-5 * 6e-5)
            for fit in blocks.fits(at: 0, prior: prior, delay: 1e-3) {
                count += 1
                squares += fit.offset * fit.offset
                claims += fit.error * fit.error
            }
        }
        #expect(count <= 3 * 40 / 4, "\(count) of 120")
        #expect(squares <= 9 * claims)
    }

    /// A download towards the room, or away from it: one packet in eight meets nobody there, most do in
    /// the other direction.
    @Test(arguments: [0.3, 0.6, 0.95])
    func `a direction that queues does not draw the clock to the edge of the other`(clean: Double) {
        let all = errors(seeds: 40) { random, _, isOutward in
            air(&random, unhindered: isOutward ? 0.12 : clean)
        }
        #expect(all.count > 100)
        #expect(all.error < 1.2 * all.claim, "\(all)")
        #expect(all.error < 8e-6, "\(all)")
    }

    @Test func `blocks are read anew when a path turns out to be of wires or of air`() {
        func history(_ kinds: [Bool]) -> [Double] {
            var random = Randomness(seed: 11 << 32)
            var blocks = ModeBlocks()
            for number in 0..<800 {
                let time = Double(number) / 40
                blocks.insert(forward: (time, air(&random)), backward: (time, air(&random)))
                if number % 10 == 9 { blocks.measure(skew: 0, isWire: kinds[0]) }
            }
            for isWire in kinds { blocks.measure(skew: 0, isWire: isWire) }
            let fits = blocks.fits(
                at: 20, prior: (0, 1e-12), delay: 600e-6)
            return fits.map(\.offset)
        }
        let (asAir, asWire) = (history([false]), history([true]))
        #expect(history([false, true, false]) == asAir && history([true, false, true]) == asWire)
        #expect(history([false, true]) != asAir && history([true, false]) != asWire)
    }

    @Test func `the first seconds are forgotten too`() throws {
        var random = Randomness(seed: 12 << 32)
        var blocks = ModeBlocks()
        func run(offset: Double) -> ClockReading? {
            for number in 0..<800 {
                let time = Double(number) / 400
                blocks.insert(
                    forward: (time, air(&random) + offset), backward: (time, air(&random) - offset))
                if number % 40 == 39 { blocks.measure(skew: 0, isWire: false) }
            }
            let prior = (skew: 0.0, variance: 80e-6 * 80e-6)
            return blocks.fits(at: 2, prior: prior, delay: 600e-6).last
        }
        #expect((try #require(run(offset: 1)).offset - 1).magnitude < 30e-6)
        blocks.removeAll()
        #expect((try #require(run(offset: 2)).offset - 2).magnitude < 30e-6)
    }

    @Test func `a room that joins on air learns from each packet at once`() throws {
        let prior = (skew: 0.0, variance: 80e-6 * 80e-6)
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = Randomness(seed: seed << 32)
            var blocks = ModeBlocks()
            func fit(of range: Range<Int>, unhindered: Double) throws -> ClockReading {
                for number in range {
                    let time = Double(number) / 400
                    blocks.insert(
                        forward: (time, air(&random, unhindered: unhindered)),
                        backward: (time, air(&random, unhindered: unhindered)))
                }
                blocks.measure(skew: 0, isWire: false)
                let now = Double(range.upperBound) / 400
                return try #require(blocks.fits(at: now, prior: prior, delay: 600e-6).first)
            }
            let early = try fit(of: 0..<160, unhindered: 0.12)
            // Eight pairs that met nobody, in twenty milliseconds; of the 160 before some twenty
            // did each way.
            let late = try fit(of: 160..<168, unhindered: 1)
            #expect(late.error < early.error, "seed \(seed)")
        }
    }

    @Test(arguments: [false, true]) func `what is forgotten is forgotten`(isWire: Bool) {
        var random = Randomness(seed: 5)
        var blocks = ModeBlocks()
        func run(_ seconds: Range<Int>, offset: Double) {
            for number in seconds.lowerBound * 40..<seconds.upperBound * 40 {
                let time = Double(number) / 40
                blocks.insert(
                    forward: (time, air(&random) + offset), backward: (time, air(&random) - offset))
                if number % 10 == 9 { blocks.measure(skew: 0, isWire: isWire) }
            }
        }
        run(0..<20, offset: 1)
        blocks.removeAll()
        #expect(blocks.fits(at: 20, prior: (0, 1e-12), delay: 600e-6).isEmpty)
        run(20..<40, offset: 2)
        let fits = blocks.fits(at: 40, prior: (0, 1e-12), delay: 600e-6)
        #expect(!fits.isEmpty && fits.allSatisfy { ($0.offset - 2).magnitude < 100e-6 })
    }

    @Test(arguments: [false, true]) func `a silence of minutes ends a block`(isWire: Bool) {
        var random = Randomness(seed: 6)
        var blocks = ModeBlocks()
        for number in 0..<1_600 {
            // One second of packets, then 300 s of nothing, then half a minute.
            let time = Double(number) / 40 + (number < 40 ? 0 : 300)
            let difference = 100e-6 * time
            blocks.insert(
                forward: (time, air(&random) + difference),
                backward: (time, air(&random) - difference))
            // Far off: what came before the silence is 6 ms away from there.
            if number % 10 == 9 { blocks.measure(skew: 80e-6, isWire: isWire) }
        }
        let fits = blocks.fits(at: 339, prior: (80e-6, 3e-5 * 3e-5), delay: 600e-6)
        #expect(!fits.isEmpty && fits.allSatisfy { ($0.offset - 33.9e-3).magnitude < 100e-6 })
    }

    @Test(arguments: [false, true])
    func `a wrong gathering now and then moves nothing`(isWire: Bool) {
        let all = errors(seeds: 30, isWire: isWire) { random, time, isOutward in
            // Two and a half seconds in which nobody in one direction meets nobody.
            let isBusy = isOutward && (-12.5)...(-10) ~= time
            return isBusy ? 700e-6 + 20e-6 * random.unit() : air(&random)
        }
        // A tenth of what the block says.
        #expect(all.error < 18e-6, "\(all)")
    }

    /// Some 20 a block in a millisecond at the floor, which is an edge without a gathering. Where few packets
    /// may have met nobody that passes for one, but for an unsure one.
    @Test func `delays without a crest say nothing on wires, and no more than they know on air`() {
        let delay = { (random: inout Randomness, _: Double, _: Bool) in
            300e-6 + 5e-3 * random.unit()
        }
        #expect(errors(seeds: 20, isWire: true, of: delay).count == 0)
        let air = errors(seeds: 60, of: delay)
        #expect(air.error < 1.5 * air.claim, "\(air)")
        #expect(air.error < 50e-6, "\(air)")
    }

    @Test(arguments: [false, true]) func `nothing is said of nothing`(isWire: Bool) {
        var blocks = ModeBlocks()
        blocks.measure(skew: 0, isWire: isWire)
        #expect(blocks.fits(at: 0, prior: (0, 1e-12), delay: 0).isEmpty)
        blocks.insert(forward: (0, 1e-3), backward: (0, 1e-3))
        blocks.measure(skew: 0, isWire: isWire)
        #expect(blocks.fits(at: 0, prior: (0, 1e-12), delay: 0).isEmpty)
    }

    @Test(arguments: [false, true])
    func `of two crests the lower is the floor on air, on wires both are doubtful`(isWire: Bool) {
        let two = errors(seeds: 30, isWire: isWire) { random, _, isOutward in
            300e-6 + 10e-6 * random.unit() + (isOutward && random.chance(0.5) ? 250e-6 : 0)
        }
        #expect(two.error < two.claim, "\(two)")
        if isWire {
            #expect(two.claim > 20e-6, "\(two)")
        } else {
            // The other one is half of 250 µs away.
            #expect(two.error < 12e-6, "\(two)")
        }
    }

    @Test(arguments: [false, true])
    func `a crest that stands higher in one direction is doubtful by half of that`(
        isWire: Bool
    ) throws {
        let lopsided = fits(seed: 3, isWire: isWire) { random, _, isOutward in
            300e-6 + (isOutward ? 100e-6 * (random.chance(0.1) ? 0 : 1) : 0) + 5e-6
                * random.unit()
        }
        let reading = try #require(lopsided.first)
        let error = (reading.offset - Self.offset).magnitude
        #expect(error > 40e-6, "nobody can see which direction is right")
        #expect(reading.error > 0.9 * error)
    }
}
