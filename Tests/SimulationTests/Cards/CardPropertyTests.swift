import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiSimulation

/// What must hold on every card, with every crystal, for every seed. `TUTTI_SEEDS=N` tries N times
/// as many.
@Suite struct CardPropertyTests {
    /// Any pointer, rate, period and crystal, a thread that is late now and then.
    private static func draw(seed: UInt64) -> CardModel {
        var random = SplitMix64(seed: seed, "drawn card")
        let pointer: CardModel.Pointer =
            switch random.next() % 4 {
            case 0: .fine
            case 1: .bursts(frames: [2, 4, 8, 16, 32, 64][Int(random.next() % 6)])
            case 2: .batch(meanLateness: random.uniform(5e-6, 30e-6))
            default: .milliseconds
            }
        var model = CardModel(name: "drawn \(seed)", pointer: pointer)
        model.sampleRate = [44_100, 48_000, 96_000][Int(random.next() % 3)]
        if random.chance(0.3) { model.periodFrames = model.sampleRate / 100 }
        model.partsPerMillion = random.uniform(-300, 300)
        model.walk = random.uniform(0, 0.03)
        // Half of them change their rate while they are watched.
        model.step = random.chance(0.5) ? random.uniform(-2, 2) : 0
        model.stepSeconds = 14
        model.wakeLateness = random.uniform(5e-6, 60e-6)
        model.preempted = random.uniform(0, 0.03)
        return model
    }

    @Test(arguments: ClockDraw.blocks(400, of: 25))
    func `any card is on its line, without a step, after ten seconds`(seeds: Range<UInt64>) {
        for seed in seeds {
            let model = Self.draw(seed: seed)
            let result = CardTrial.run(model, seconds: 18, seed: seed)
            let frame = 1e6 / Double(model.sampleRate)
            // A frame, or two at 48 kHz where the pointer moves by more.
            let (limit, expected): (Double, CardClass) =
                switch model.pointer {
                case .fine: (max(frame, 20.8), .fine)
                case .bursts(let frames): (max(frame, 20.8), frames < 16 ? .fine : .coarse)
                case .batch: (41.7, .batch)
                case .milliseconds: (41.7, .coarse)
                }
            let what: Comment = "seed \(seed), \(model.pointer), \(model.sampleRate) Hz"
            #expect(result.cardClass == expected, what)
            #expect(result.worst < limit, "\(what): \(result.worst) µs")
            #expect(result.largestStep < 1.6, "\(what): \(result.largestStep) ppm")
            #expect(result.kept >= 0.99, "\(what): \(result.kept) of the promises")
            // And not lazily: half a frame is what nobody can know.
            #expect(result.bound < limit + frame / 2, "\(what): \(result.bound) µs promised")
            #expect(result.secondsToTwenty.map { $0 < 10 } ?? (limit > 20.8), what)
        }
    }

    /// An edge is met no sooner than the thread wakes. That much is lasting, and no reading tells
    /// it: it has to be in the promise.
    @Test(arguments: ClockDraw.blocks(200, of: 25))
    func `a thread that is late at least by something promises no less`(seeds: Range<UInt64>) {
        for seed in seeds {
            var random = SplitMix64(seed: seed, "wake floor")
            var model = Self.draw(seed: seed)
            model.wakeFloor = random.uniform(20e-6, 100e-6)
            let result = CardTrial.run(model, seconds: 18, seed: seed)
            let frame = 1e6 / Double(model.sampleRate)
            let floor = model.pointer == .fine ? 0 : model.wakeFloor * 1e6
            let what: Comment = "seed \(seed), \(model.pointer), \(floor) µs"
            #expect(result.worst < max(frame, 41.7) + floor, "\(what): \(result.worst) µs")
            #expect(result.kept >= 0.99, "\(what): \(result.kept) of the promises")
            #expect(
                result.bound < max(frame, 41.7) + 2 * floor + frame / 2,
                "\(what): \(result.bound) µs promised")
        }
    }
}
