import Testing

@testable import TuttiClockSync

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
        // By luck the second lies close; or it is what gave the line its slope.
        for second in [0.0, 0.001, 10] {
            var other = smooth
            other[1] = second
            #expect(EnvelopeNoise.scatter(met, other) > 50)
            #expect(EnvelopeNoise.scatter(other, met) > 50)
        }
    }

    /// Under samples that come at random an edge is off by as much as they lie apart.
    @Test(arguments: UInt64(1)...4) func `chance is seldom taken for a floor`(seed: UInt64) {
        var random = Randomness(seed: seed)
        /// - Parameter contacts: which the line touches.
        func residuals(_ contacts: Int) -> [Double] {
            var value = 0.0
            return (0..<EnvelopeNoise.kept).map { index in
                if index >= contacts { value += random.exponential(100) }
                return value
            }
        }
        let tries = 4_000
        let sharp = (0..<tries).count { _ in
            EnvelopeNoise.scatter(residuals(2), residuals(1)) < 10
        }
        // For that a gap must be below 1.7 (one in 60), or two below 12 (one in 150), three below
        // 27 (one in 400): one in 40 in all, of each direction. Four times as often is allowed;
        // counting contacts of both together, it was one in a hundred.
        #expect(sharp < 4 * tries / (40 * 40), "\(sharp) of \(tries)")
    }
}
