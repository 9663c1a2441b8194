import Testing
import TuttiChance
import TuttiTiming
@testable import TuttiSimulation

@Suite struct HostCrystalTests {
    private func crystal(ppm: Double, wander: Double, seed: UInt64 = 1) -> HostCrystal {
        HostCrystal(
            epoch: 987_654_321_000_000, partsPerMillion: ppm, wander: wander,
            random: SplitMix64(seed: seed))
    }

    @Test func `without wander the clock runs at its constant rate`() {
        var fast = crystal(ppm: 100, wander: 0)
        let start = fast.reading(at: TrueInstant(nanoseconds: 0))
        let later = fast.reading(at: TrueInstant(nanoseconds: 3_600_000_000_000))
        #expect(start.nanoseconds == 987_654_321_000_000)
        // An hour and 100 ppm of it; the sum of 36 000 knots rounds to far less than a nanosecond.
        #expect((later - start).count == 3_600_000_000_000 + 360_000_000)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `the instant of a reading is the first that reads as much`(seed: UInt64) {
        var wandering = crystal(ppm: -80, wander: 0.5, seed: seed)
        var random = SplitMix64(seed: seed + 100)
        for _ in 0..<200 {
            let instant = TrueInstant(nanoseconds: Int64(random.next() % 600_000_000_000) + 2)
            let reading = wandering.reading(at: instant)
            let found = wandering.instant(of: reading)
            #expect(found <= instant)
            #expect(wandering.reading(at: found) >= reading)
            #expect(wandering.reading(at: found - Nanoseconds(1)) < reading)
        }
    }

    @Test func `wander grows with the square root of time`() {
        // Random-walk frequency noise of 1 ppm/√s is 10 ppm (one sigma) after 100 s.
        let skews = (UInt64(1)...200).map { seed in
            var clock = crystal(ppm: 0, wander: 1, seed: seed)
            let a = clock.reading(at: TrueInstant(nanoseconds: 100_000_000_000))
            let b = clock.reading(at: TrueInstant(nanoseconds: 100_100_000_000))
            return Double((b - a).count - 100_000_000) / 100
        }
        let sigma = (skews.reduce(0) { $0 + $1 * $1 } / 200).squareRoot()
        // The estimate of a sigma from 200 draws is itself good to 5 %; four of those.
        #expect(abs(sigma - 10) < 2, "σ = \(sigma) ppm")
    }
}
