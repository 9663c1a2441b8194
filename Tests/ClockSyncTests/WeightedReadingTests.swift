import Testing

@testable import TuttiClockSync

struct WeightedReadingTests {
    private func opinions(_ values: [Double], errors: [Double]) -> [WeightedReading] {
        zip(values, errors).map { WeightedReading(value: $0, error: $1) }
    }

    @Test func `the mean counts each by the square of its error`() {
        let mean = opinions([0, 10], errors: [1, 3]).mean
        #expect((mean - 1).magnitude < 1e-12)
    }

    @Test func `those that agree outvote one that claims as much and is far off`() {
        let four = opinions([-0.5, 0.5, 0, 30], errors: [5, 5, 5, 5])
        #expect(four.mean > 7)
        #expect(four.consensus.magnitude < 1)
    }

    @Test func `the surest decides, also against many that doubt`() {
        let all = opinions([0, 40, 41, 39, 42], errors: [1, 30, 30, 30, 30])
        #expect(all.consensus.magnitude < 1)
    }

    @Test func `where all agree it is the mean`() {
        let all = opinions([1.01, 0.99, 1.02, 0.98], errors: [1, 1, 2, 2])
        #expect((all.consensus - all.mean).magnitude < 1e-3)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `it lies among the opinions, moves with them, and their order is nothing`(seed: UInt64) {
        var random = Randomness(seed: seed)
        let count = Int.random(in: 1...13, using: &random)
        let values = (0..<count).map { _ in Double.random(in: -50...50, using: &random) }
        let errors = (0..<count).map { _ in Double.random(in: 0.5...40, using: &random) }
        let consensus = opinions(values, errors: errors).consensus
        #expect(values.min() ?? 0 <= consensus + 1e-9 && consensus - 1e-9 <= values.max() ?? 0)
        let moved = opinions(values.map { $0 + 1000 }, errors: errors).consensus
        #expect((moved - 1000 - consensus).magnitude < 1e-6)
        let turned = opinions(values.reversed(), errors: errors.reversed()).consensus
        #expect((turned - consensus).magnitude < 1e-9)
    }
}
