import Testing
import TuttiPlayout
import TuttiSimulation

/// What leaves a card, held against the line that it should be on: the output thread's own code on
/// simulated cards.
@Suite struct CardTrialTests {
    private static func model(_ name: String, _ seed: UInt64) -> CardModel {
        var model = CardModel.standard.first { $0.name == name }!
        // Another crystal with each seed, ±120 ppm.
        model.partsPerMillion = Double(Int64(seed &* 7919 % 241) - 120)
        return model
    }

    /// Limits in µs, half a frame and a frame, and what the engine must take the card for.
    private static let limits: [(name: String, p99: Double, cardClass: CardClass)] = [
        ("fine", 10.4, .fine), ("hda", 10.4, .fine), ("batch", 20.8, .batch),
        ("usb", 20.8, .coarse),
    ]

    @Test(arguments: limits.indices, 1...4 as ClosedRange<UInt64>)
    func `every kind of card keeps its line to a frame through a change of its rate`(
        index: Int, seed: UInt64
    ) {
        let (name, p99, cardClass) = Self.limits[index]
        // 2 ppm at once in the middle: in 50 s the 99th percentile leaves out the worst half
        // second, so it measures the recovery.
        var model = Self.model(name, seed)
        model.stepSeconds = 30
        let result = CardTrial.run(model, seconds: 60, seed: seed)
        #expect(result.cardClass == cardClass)
        // One a period, but for the first seconds.
        #expect(result.errors.count > 57 * model.sampleRate / model.periodFrames)
        #expect(result.p99 < p99, "\(name): \(result.p99)")
        #expect(result.median < p99 / 2, "\(name): \(result.median)")
        #expect((result.secondsToTwenty ?? .infinity) < 3, "\(name)")
        // 10 ppm/s in steady state; after the change of rate, and young, up to sixteen times that.
        #expect(result.largestStep < 1.6, "\(name): \(result.largestStep)")
    }

    /// The mean error must not depend on the pointer's steps: that would be an offset between rooms
    /// for good. Half a step is 83, 5 000 and 500 µs.
    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `rooms with different cards agree in the mean`(seed: UInt64) {
        for (name, _, _) in Self.limits {
            var model = Self.model(name, seed)
            model.step = 0
            let result = CardTrial.run(model, seconds: 40, seed: seed)
            // A quarter of a frame. A batch card's interrupt is late, and nobody can tell by how
            // much.
            #expect(result.mean.magnitude < 5.2, "\(name): \(result.mean)")
            #expect(result.p99AboutMean < 10.4, "\(name): \(result.p99AboutMean)")
        }
    }

    /// A third of a period, an odd rate, long and short periods: nothing depends on the numbers of
    /// the standard models.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `the steps of a pointer may have any size`(seed: UInt64) {
        let pointers: [CardModel.Pointer] = [
            .bursts(frames: 2), .bursts(frames: 16), .bursts(frames: 64), .bursts(frames: 160),
        ]
        for pointer in pointers {
            var model = CardModel(name: "\(pointer)", pointer: pointer)
            model.sampleRate = seed % 2 == 0 ? 44_100 : 96_000
            model.periodFrames = seed % 3 == 0 ? 256 : 480
            model.partsPerMillion = Double(Int64(seed % 5) * 100 - 200)
            model.step = 0
            let result = CardTrial.run(model, seconds: 20, seed: seed)
            #expect(result.p99 < 10.4, "\(model.name): \(result.p99)")
        }
    }

    /// Two periods of 20 ms at a wake-up, and a look from one to the next where there are steps; of
    /// 10 ms with two looks between them where the steps are large.
    @Test(arguments: zip(limits.indices, [25.0, 50, 300, 300]))
    func `the thread wakes no more often than a settled card needs`(index: Int, expected: Double) {
        let result = CardTrial.run(Self.model(Self.limits[index].name, 3), seconds: 20, seed: 3)
        #expect((0.9...1.1).contains(result.wakeUps / expected), "\(result.wakeUps)")
    }

    /// Seeds at which the first edges lay so close together by chance that a wrong rate was
    /// believed.
    @Test(arguments: [("usb", 32), ("batch", 4)] as [(String, UInt64)])
    func `a lucky beginning does not nail down a wrong rate`(name: String, seed: UInt64) {
        var model = Self.model(name, seed)
        model.partsPerMillion = 120
        let result = CardTrial.run(model, seconds: 30, seed: seed)
        #expect(result.worst < 20.8, "\(result.worst)")
    }

    @Test func `the same seed is the same trial and another is not`() {
        let model = Self.model("usb", 1)
        let first = CardTrial.run(model, seconds: 15, seed: 1)
        #expect(first == CardTrial.run(model, seconds: 15, seed: 1))
        #expect(first != CardTrial.run(model, seconds: 15, seed: 2))
    }

    /// 500 ppm, four times what a crystal may be off: the rate is found all the same.
    @Test(arguments: limits.indices, [-500.0, 500])
    func `a card that is 500 ppm off is followed`(index: Int, partsPerMillion: Double) {
        var model = Self.model(Self.limits[index].name, 1)
        model.partsPerMillion = partsPerMillion
        model.step = 0
        let result = CardTrial.run(model, seconds: 20, seed: 5)
        #expect(result.p99 < Self.limits[index].p99, "\(model.name): \(result.p99)")
    }
}

@Suite struct CardComparisonTests {
    @Test
    func `the table has a row for each kind of card, and the worst is not better than the mean`() {
        let comparison = CardComparison(seconds: 16, seeds: 2)
        #expect(comparison.rows.map(\.name) == CardModel.standard.map(\.name))
        #expect(comparison.rows.map(\.cardClass) == ["fine", "fine", "batch", "coarse"])
        for row in comparison.rows {
            #expect(row.worstP99 >= row.p99 && row.p99 >= row.median)
            #expect(row.secondsToTwenty != nil)
        }
        #expect(comparison.description.split(separator: "\n").count == 5)
    }
}
