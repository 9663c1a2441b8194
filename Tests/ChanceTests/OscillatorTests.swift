import Testing
import TuttiChance

@Suite struct `An oscillator` {
    private static func wandering(_ seed: UInt64, memory: Int? = nil) -> Oscillator {
        Oscillator(
            ticksPerSecond: 48_000,
            shape: OscillatorShape(
                constant: 80, wander: 0.5, swing: .init(partsPerMillion: 2),
                frequencySteps: [.init(at: 3, partsPerMillion: -5)]),
            memory: memory, random: SplitMix64(seed: seed))
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `makes each tick when it has made it, and ticks only go forward`(seed: UInt64) {
        var crystal = Self.wandering(seed)
        var random = SplitMix64(seed: seed + 100)
        for _ in 0..<500 {
            let seconds = random.uniform(0, 600)
            let tick = crystal.ticks(at: seconds)
            #expect(abs(crystal.seconds(ofTick: tick) - seconds) < 1e-9)
            #expect(crystal.ticks(at: seconds + 1e-3) > tick)
        }
    }

    /// 10 s at 10 ppm are 4.8 ticks of 48 kHz; from the third second on it is 5 ppm.
    @Test func `runs ahead by what its shape says`() {
        var crystal = Oscillator(
            ticksPerSecond: 48_000,
            shape: OscillatorShape(
                constant: 10, frequencySteps: [.init(at: 3, partsPerMillion: -5)]),
            random: SplitMix64(seed: 1))
        #expect(abs(crystal.ticks(at: 10) - 480_000 - 0.048 * (3 * 10 + 7 * 5)) < 1e-6)
        #expect(abs(crystal.skew(at: 1) - 10e-6) < 1e-12)
        #expect(abs(crystal.skew(at: 5) - 5e-6) < 1e-12)
    }

    /// What looks into the past, or forgets it, is no other crystal.
    @Test func `is the same in whichever order it is asked, and with a short memory`() {
        var forward = Self.wandering(7)
        var backward = Self.wandering(7)
        var forgetful = Self.wandering(7, memory: 16)
        forgetful.reserve()
        let later = backward.ticks(at: 90)
        for step in 0..<90 {
            let seconds = Double(step)
            #expect(forward.ticks(at: seconds) == backward.ticks(at: seconds))
            #expect(forgetful.ticks(at: seconds) == backward.ticks(at: seconds))
        }
        #expect(forward.ticks(at: 90) == later)
    }

    /// A walk of 0.1 ppm/√s has 3.5 ppm after 1200 s; a swing of 1 ppm stays one.
    @Test func `swings about its rate and does not go away`() {
        let skews = (UInt64(1)...200).map { seed in
            var crystal = Oscillator(
                ticksPerSecond: 1,
                shape: OscillatorShape(swing: .init(partsPerMillion: 1, time: 60)),
                random: SplitMix64(seed: seed))
            return crystal.skew(at: 1_200) * 1e6
        }
        let sigma = (skews.reduce(0) { $0 + $1 * $1 } / 200).squareRoot()
        // The estimate of a sigma from 200 draws is good to 5 %; four of those.
        #expect(abs(sigma - 1) < 0.2, "σ = \(sigma) ppm")
    }
}
