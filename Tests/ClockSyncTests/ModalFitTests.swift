import Testing

@testable import ClockSync

struct ModalFitTests {
    private static let skew = 12e-6
    private static let offset = 0.25

    /// Twenty seconds of exchanges, 40 a second, at time 0; the leader's clock is `offset` ahead
    /// then.
    ///
    /// - Parameter delay: one way, seconds.
    private func samples(
        seed: UInt64, delay: (inout Randomness, _ isOutward: Bool) -> Double
    ) -> [OffsetSample] {
        var random = Randomness(seed: seed)
        return (0..<800).map { number in
            let time = Double(number - 800) / 40
            let (out, home) = (delay(&random, true), delay(&random, false))
            return OffsetSample(
                time: time, offset: Self.offset + Self.skew * time + (out - home) / 2,
                delay: out + home)
        }
    }

    /// Emulated air as recorded: one packet in eight meets nobody, and stamps blur that by 25 µs.
    private func air(_ random: inout Randomness) -> Double {
        let blur = 60e-6 + 25e-6 * max(-2.4, random.normal())
        return 300e-6 + blur + (random.chance(0.12) ? 0 : random.gamma(1.6, 1.2e-3))
    }

    private func readings(_ samples: [OffsetSample]) -> [EnvelopeFit] {
        var fit = ModalFit()
        return fit.readings(
            samples, at: 0, skew: Self.skew + 1.5e-6, deviation: 1.5e-6, floor: 600e-6)
    }

    @Test func `where a share of the packets meets nobody the clock is where most of them agree`() {
        var (count, squares, claims, beyond) = (0.0, 0.0, 0.0, 0)
        for seed in 1...100 {
            for reading in readings(samples(seed: UInt64(seed)) { random, _ in air(&random) }) {
                let error = reading.offset - Self.offset
                count += 1
                squares += error * error
                claims += reading.error * reading.error
                if error.magnitude > 3 * reading.error { beyond += 1 }
                let slope = reading.skew - Self.skew
                #expect(slope.magnitude < 4 * reading.skewSpread + 1e-7)
            }
        }
        #expect(count > 100, "of two windows a seed")
        // A quarter of the blur, and no more than is claimed.
        #expect(squares / count < 8e-6 * 8e-6, "rms \((squares / count).squareRoot())")
        #expect(squares < claims)
        #expect(Double(beyond) < 0.01 * count + 1)
    }

    @Test func `delays without a crest say nothing`() {
        for seed in 1...20 {
            let flat = samples(seed: UInt64(seed)) { random, _ in 300e-6 + 5e-3 * random.unit() }
            #expect(readings(flat).isEmpty, "seed \(seed)")
        }
        #expect(readings([]).isEmpty)
        #expect(readings(Array(samples(seed: 1) { _, _ in 1e-3 }.prefix(6))).isEmpty)
    }

    @Test func `two crests in one direction say nothing`() {
        for seed in 1...20 {
            let two = samples(seed: UInt64(seed)) { random, isOutward in
                300e-6 + 10e-6 * random.unit() + (isOutward && random.chance(0.5) ? 250e-6 : 0)
            }
            #expect(readings(two).isEmpty, "seed \(seed)")
        }
    }

    @Test func `a crest that stands higher in one direction is doubtful by half of that`() throws {
        let lopsided = samples(seed: 3) { random, isOutward in
            300e-6 + (isOutward ? 100e-6 * (random.chance(0.02) ? 0 : 1) : 0) + 5e-6 * random.unit()
        }
        let reading = try #require(readings(lopsided).first)
        let error = (reading.offset - Self.offset).magnitude
        #expect(error > 40e-6, "nobody can see which direction is right")
        // Edges are looked for along slopes that are 1.4 widths apart at the window's end.
        let tilt = 0.7 * ModalFit.width
        #expect(reading.error > error - tilt)
    }
}
