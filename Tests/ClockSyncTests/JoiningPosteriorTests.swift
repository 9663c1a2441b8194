import Testing

@testable import TuttiClockSync

@Suite struct JoiningPosteriorTests {
    private static let prior = (skew: 0.0, variance: 80e-6 * 80e-6)

    /// Packets of both directions of `seconds` up to now, 2 ms apart: a share met nobody and is blurred
    /// by `blur`, the others queued for 2 ms on average.
    private static func packets(
        _ seconds: Double, offset: Double, skew: Double, clean: Double = 0.06, blur: Double = 12e-6,
        seed: UInt64
    ) -> (forward: [ModePeak.Point], backward: [ModePeak.Point]) {
        // Seeds next to each other give one sequence, moved by a step.
        var random = Randomness(seed: seed << 32)
        func side(_ sign: Double) -> [ModePeak.Point] {
            stride(from: -seconds, to: 0, by: 0.002).map { time in
                let queue = random.chance(clean) ? 0 : random.exponential(2e-3)
                let delay = 350e-6 + blur * random.normal() + queue
                return (time, sign * (offset + skew * time) + delay)
            }
        }
        return (side(1), side(-1))
    }

    @Test func `what it says is off by about as much as it claims`() throws {
        var (offsets, skews, count) = (0.0, 0.0, 0.0)
        for seed in 1...60 as ClosedRange<UInt64> {
            var random = Randomness(seed: (seed << 32) ^ 77)
            let (offset, skew) = (1e-3 * random.normal(), 80e-6 * random.normal())
            let (forward, backward) = Self.packets(0.5, offset: offset, skew: skew, seed: seed)
            let found = try #require(
                JoiningPosterior(forward, backward, at: 0, prior: Self.prior))
            let (miss, turn) = (found.offset - offset, found.skew - skew)
            offsets += miss * miss / found.variance
            skews += turn * turn / found.skewVariance
            count += 1
        }
        // Means of 60 squares of normal deviates: 1 ± 0.18; the model is not quite the packets'.
        #expect(offsets / count > 0.4 && offsets / count < 2.5)
        #expect(skews / count > 0.4 && skews / count < 2.5)
    }

    @Test func `a host that begins to play lengthens both ways alike and moves no clock`() throws {
        func error(lopsided: Bool) throws -> Double {
            var squares = 0.0
            for seed in 1...40 as ClosedRange<UInt64> {
                var (forward, backward) = Self.packets(
                    1.5, offset: 0, skew: 0, clean: 0.1, blur: 7e-6, seed: seed)
                for index in forward.indices where forward[index].time > -0.5 {
                    forward[index].value += 20e-6
                    backward[index].value += lopsided ? -20e-6 : 20e-6
                }
                let found = try #require(
                    JoiningPosterior(forward, backward, at: 0, prior: Self.prior))
                squares += found.offset * found.offset
            }
            return (squares / 40).squareRoot()
        }
        let (alike, lopsided) = (try error(lopsided: false), try error(lopsided: true))
        // A quarter of what a clock that steps by as much does, which nobody can tell from a path.
        // Without the drift as an unknown it was 0.44.
        #expect(alike < lopsided / 4, "\(alike), \(lopsided)")
        #expect(lopsided > 15e-6, "\(lopsided)")
    }

    @Test func `it knows more with time, and looking near what was found finds the same`() throws {
        let skew = 60e-6
        let (forward, backward) = Self.packets(2, offset: 5e-6, skew: skew, seed: 3)
        func found(after seconds: Double, near earlier: JoiningPosterior? = nil) throws
            -> JoiningPosterior
        {
            let end = -2 + seconds
            return try #require(
                JoiningPosterior(
                    forward.filter { $0.time < end }, backward.filter { $0.time < end }, at: end,
                    prior: Self.prior, found: earlier))
        }
        let early = try found(after: 0.5)
        let late = try found(after: 2)
        #expect(late.skewVariance < early.skewVariance / 4)
        let near = try found(after: 2, near: early)
        // Sums over other slopes of one posterior: a small part of its deviation.
        #expect(
            (near.skew - late.skew).magnitude * (near.skew - late.skew).magnitude
                < late.skewVariance / 10)
        #expect(
            (near.offset - late.offset).magnitude * (near.offset - late.offset).magnitude
                < late.variance / 10)
    }

    @Test func `both directions alike cancel, one alone is half of the offset`() throws {
        let (forward, backward) = Self.packets(1, offset: 0, skew: 0, seed: 9)
        let later = backward.map { (time: $0.time, value: $0.value + 40e-6) }
        let now = try #require(JoiningPosterior(forward, backward, at: 0, prior: Self.prior))
        let moved = try #require(JoiningPosterior(forward, later, at: 0, prior: Self.prior))
        #expect((moved.offset - now.offset + 20e-6).magnitude < 1e-9)
    }

    @Test func `a prior that knows the skew is not contradicted by chance`() throws {
        let known = (skew: 60e-6, variance: 1e-12)
        let (forward, backward) = Self.packets(0.5, offset: 0, skew: 60e-6, seed: 4)
        let found = try #require(JoiningPosterior(forward, backward, at: 0, prior: known))
        #expect((found.skew - known.skew).magnitude < 3e-6)
        #expect(found.skewVariance <= 1.1e-12)
    }

    @Test(arguments: [0, 1, 3]) func `too few packets tell nothing`(count: Int) {
        let (forward, backward) = Self.packets(0.5, offset: 0, skew: 0, seed: 5)
        #expect(
            JoiningPosterior(
                Array(forward.prefix(count)), Array(backward.prefix(count)), at: 0,
                prior: Self.prior) == nil)
    }

    /// By likelihood four are a little less than four: fewer than blocks want.
    @Test(arguments: [(1, false), (2, false), (4, true), (12, true)])
    func `so many packets must have met nobody`(clean: Int, isEnough: Bool) {
        var random = Randomness(seed: 21 << 32)
        func side(_ places: Int) -> [ModePeak.Point] {
            (0..<200).map { number in
                // The clean ones are spread over the time; the others are at least 0.3 ms late.
                let isClean = number % (200 / places) == 0 && number / (200 / places) < places
                let queue = isClean ? 0 : 0.3e-3 + random.exponential(2e-3)
                return (Double(number - 200) * 0.002, 350e-6 + 3e-6 * random.normal() + queue)
            }
        }
        let found = JoiningPosterior(side(12), side(clean), at: 0, prior: Self.prior)
        #expect((found != nil) == isEnough)
    }

    @Test func `nor does a direction in which all queue`() {
        let (forward, _) = Self.packets(0.5, offset: 0, skew: 0, seed: 6)
        let (_, backward) = Self.packets(0.5, offset: 0, skew: 0, clean: 0, blur: 0, seed: 7)
        // Ten times as long: the lowest lie far apart.
        let queued = backward.map { (time: $0.time, value: ($0.value - 350e-6) * 10) }
        #expect(JoiningPosterior(forward, queued, at: 0, prior: Self.prior) == nil)
    }
}
