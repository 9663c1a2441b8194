import Testing
import TuttiChance

@Suite struct SplitMix64Tests {
    @Test func `the first numbers are those of the published generator`() {
        // Reference values for seed 1234567 from the authors' C code.
        var random = SplitMix64(seed: 1_234_567)
        #expect(random.next() == 6_457_827_717_110_365_317)
        #expect(random.next() == 3_203_168_211_198_807_973)
        #expect(random.next() == 9_817_491_932_198_370_423)
    }

    @Test func `means and spreads are those of the distributions`() {
        var random = SplitMix64(seed: 9)
        let count = 20_000
        func mean(_ draw: () -> Double) -> Double {
            (0..<count).reduce(0) { sum, _ in sum + draw() } / Double(count)
        }
        // Five standard errors each: σ/√20000.
        #expect(abs(mean { random.uniform() } - 0.5) < 5 * 0.289 / 141)
        #expect(abs(mean { random.exponential(mean: 3) } - 3) < 5 * 3 / 141)
        #expect(abs(mean { random.normal() }) < 5 / 141.0)
        #expect(abs(mean { random.gamma(shape: 2, scale: 1.5) } - 3) < 5 * 2.12 / 141)
        #expect(abs(mean { random.gamma(shape: 0.8, scale: 2.5) } - 2) < 5 * 2.24 / 141)
    }
}
