import Testing

@testable import ClockSync

/// How sharp an edge is, by the samples that lie next to it; µs.
struct EnvelopeNoiseTests {
    /// Jitter that thins out: neighbours some 100 µs apart.
    private let smooth = [0.0, 90, 210, 300, 390, 520, 600, 710, 790, 900]

    @Test func `the distance of the lowest samples is the scale of smooth jitter`() {
        let scatter = EnvelopeNoise.scatter(smooth, smooth)
        // Six samples, five gaps, two directions.
        let expected = 2.0.squareRoot() * 520 / 5
        #expect((scatter - expected).magnitude < 1e-9)
    }

    @Test func `what every line under the samples touches is no evidence`() {
        var touched = smooth
        touched[1] = 0.01
        let scatter = EnvelopeNoise.scatter(touched, smooth)
        #expect(scatter > 100)
        #expect(EnvelopeNoise.scatter(smooth, touched) == scatter)
    }

    @Test func `a floor that both directions meet is sharp`() {
        let met = [0.0, 2, 3, 5, 6, 8, 400, 700, 900, 1_000]
        let scatter = EnvelopeNoise.scatter(met, met)
        #expect(scatter < 5)
        // As sharp as what lies there.
        let twice = EnvelopeNoise.scatter(met.map { 2 * $0 }, met.map { 2 * $0 })
        #expect((twice - 2 * scatter).magnitude < 1e-9)
    }

    @Test func `that one direction has met its floor says nothing of the other`() {
        let met = [0.0, 2, 3, 5, 6, 8, 400, 700, 900, 1_000]
        // By luck the second lies close; so it does in one of ten cases.
        let lucky = [0.0, 10, 190, 300, 420, 500, 610, 690, 800, 900]
        for scatter in [EnvelopeNoise.scatter(met, lucky), EnvelopeNoise.scatter(lucky, met)] {
            #expect(scatter > 50)
        }
    }

    /// Under samples that come at random an edge is off by as much as they lie apart.
    @Test(arguments: UInt64(1)...4) func `chance is seldom taken for a floor`(seed: UInt64) {
        var random = Randomness(seed: seed)
        func residuals() -> [Double] {
            var value = 0.0
            return (0..<EnvelopeNoise.kept).map { index in
                if index > 0 { value += random.exponential(100) }
                return value
            }
        }
        let tries = 4_000
        let sharp = (0..<tries).count { _ in
            EnvelopeNoise.scatter(residuals(), residuals()) < 10
        }
        // A gap is that small in one case of fifty, in each direction; a few gaps are tried, and
        // two ways to give the slope to one of them.
        #expect(sharp < tries * 2 * 4 / (50 * 50), "\(sharp) of \(tries)")
    }
}
