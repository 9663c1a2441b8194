import Testing

@testable import TuttiClockSync

/// Three seconds of one direction, 40 packets a second.
struct ModePosteriorTests {
    /// One packet in eight met nobody and is blurred by 12 µs, the others queue for 2 ms on average.
    private static func packets(
        seed: UInt64, slope: Double = 0, shift: Double = 0
    ) -> [ModePeak.Point] {
        // Seeds next to each other give one sequence, moved by a step.
        var random = Randomness(seed: seed << 32)
        return (0..<120).map { number in
            let time = Double(number - 120) / 40
            let queue = random.chance(0.12) ? 0 : random.exponential(2e-3)
            return (time, 350e-6 + 12e-6 * random.normal() + queue + slope * time + shift)
        }
    }

    private static func place(
        _ points: [ModePeak.Point], along slope: Double = 0
    ) -> ModePosterior.Place {
        ModePosterior(points, sign: 1, now: 0, slope: slope).place(along: slope)
    }

    @Test func `the place is off by about as much as it claims`() {
        var (square, claim) = (0.0, 0.0)
        for seed in 1...200 as ClosedRange<UInt64> {
            let place = Self.place(Self.packets(seed: seed))
            square += (place.mean - 350e-6) * (place.mean - 350e-6)
            claim += place.variance
        }
        // The kernel is not the blur, the exponential begins at the place.
        #expect(square < 2 * claim && claim < 4 * square, "\(square), \(claim)")
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `it moves with the packets, and along their slope`(seed: UInt64) {
        let still = Self.place(Self.packets(seed: seed))
        let moved = Self.place(Self.packets(seed: seed, shift: 0.25))
        #expect((moved.mean - still.mean - 0.25).magnitude < 1e-9)
        let inclined = Self.place(Self.packets(seed: seed, slope: 40e-6), along: 40e-6)
        #expect((inclined.mean - still.mean).magnitude < 1e-9)
        #expect((inclined.evidence - still.evidence).magnitude < 1e-3)
        // The wrong way round, they gather nowhere.
        #expect(
            Self.place(Self.packets(seed: seed, slope: 40e-6), along: -40e-6).clean < still.clean)
    }

    @Test func `packets may come in any order, and twice`() {
        let points = Self.packets(seed: 3)
        let (once, reversed) = (Self.place(points), Self.place(points.reversed()))
        #expect((once.mean - reversed.mean).magnitude < 1e-9)
        let twice = Self.place(points + points)
        #expect(
            (once.mean - twice.mean).magnitude * (once.mean - twice.mean).magnitude < once.variance)
        #expect(twice.variance < once.variance)
    }

    @Test func `packets that are all alike are where they are`() {
        let place = Self.place((0..<50).map { (Double($0), 1e-3) })
        // To two bins.
        #expect((place.mean - 1e-3).magnitude < 8e-6 && place.variance.isFinite)
        #expect(place.clean >= ModePosterior.fewestClean)
    }

    @Test func `one that took a minute changes nothing`() {
        let points = Self.packets(seed: 4)
        let (without, with) = (Self.place(points), Self.place(points + [(-1, 60)]))
        #expect((without.mean - with.mean).magnitude < 1e-6)
    }

    /// Blurred by 100 µs: the lowest packet lies further below the rest than places are looked for.
    @Test func `a place beyond those looked at is not taken for one of them`() {
        var ends = 0
        for seed in 1...40 as ClosedRange<UInt64> {
            var random = Randomness(seed: seed << 32)
            let points = (0..<480).map { (Double($0) / 40, 1e-3 + 100e-6 * random.normal()) }
            if Self.place(points).isAtEnd { ends += 1 }
        }
        #expect(ends > 30, "\(ends) of 40")
    }
}
