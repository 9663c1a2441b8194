import CTuttiAllocations
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

private let start = LocalInstant(nanoseconds: 3_000_000_000)

@Suite struct CrystalTests {
    @Test(arguments: [-300.0, 0, 80]) func `a crystal without wander ticks at its rate`(
        partsPerMillion: Double
    ) {
        var crystal = Crystal(nominalRate: 48_000, partsPerMillion: partsPerMillion)
        #expect(crystal.frames(at: start) == 0)
        let ticks = crystal.frames(at: start + .seconds(100))
        #expect((ticks / (4_800_000 * (1 + partsPerMillion * 1e-6)) - 1).magnitude < 1e-12)
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `instant is the inverse of frames, and ticks only go forward`(seed: UInt64) {
        var crystal = Crystal(nominalRate: 44_100, partsPerMillion: 50, wander: 2, seed: seed)
        crystal.start(at: start)
        var last = -1.0
        for step in 0..<200 as Range<Int64> {
            let at = start + Nanoseconds(step * 61_234_567)
            let ticks = crystal.frames(at: at)
            #expect(ticks > last)
            last = ticks
            let (instant, fraction) = crystal.instant(ofFrame: ticks)
            #expect((Double((instant - at).count) + fraction).magnitude < 0.01)
            #expect(fraction >= 0 && fraction < 1)
        }
    }

    @Test func `the same seed ticks the same and another does not`() {
        func ticks(_ seed: UInt64) -> Double {
            var crystal = Crystal(nominalRate: 48_000, partsPerMillion: 0, wander: 1, seed: seed)
            crystal.start(at: start)
            return crystal.frames(at: start + .seconds(50))
        }
        #expect(ticks(4) == ticks(4))
        #expect(ticks(4) != ticks(5))
    }

    @Test func `wander has the deviation it was asked for`() {
        // Rates of 400 independent crystals at their start: mean 0 ± 0.1, deviation 2 ± 0.2 ppm (3
        // σ: 2/√800 × 3 = 0.21).
        var sum = 0.0
        var squares = 0.0
        for seed in 1...400 as ClosedRange<UInt64> {
            var crystal = Crystal(nominalRate: 1_000_000, partsPerMillion: 0, wander: 2, seed: seed)
            crystal.start(at: start)
            let rate = crystal.frames(at: start + .milliseconds(100)) * 10 - 1_000_000
            sum += rate
            squares += rate * rate
        }
        #expect((sum / 400).magnitude < 0.3)
        #expect(((squares / 400).squareRoot() - 2).magnitude < 0.22)
    }
}

@Suite struct VirtualCardTests {
    private let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 480, bufferFrames: 1_440)

    private func period(_ value: Float) -> [Float] { .init(repeating: value, count: 960) }

    private func write(_ card: inout VirtualCard, _ value: Float, at now: LocalInstant) {
        period(value).withUnsafeBufferPointer { card.write($0, now: now) }
    }

    @Test func `what was written leaves in order at the crystal's pace`() {
        var card = VirtualCard(
            format: format, crystal: Crystal(nominalRate: 48_000, partsPerMillion: 0))
        for value in 1...3 { write(&card, Float(value), at: start) }
        #expect(card.isRunning && card.writableFrames == 0)
        var heard: [Float] = []
        #expect(card.advance(to: start + .milliseconds(15)) { s, _ in heard += s } == .writable)
        #expect(heard == period(1) + period(2).prefix(480))
        #expect(card.reading(at: start + .milliseconds(15))?.framesHeard == 720)
        #expect(card.queuedFrames == 720)
        write(&card, 4, at: start + .milliseconds(15))
        #expect(card.advance(to: start + .milliseconds(40)) { s, _ in heard += s } == .writable)
        #expect(heard == [1, 2, 3, 4].flatMap { period($0) })
    }

    @Test func `a dry card stands still, says so once and counts from zero again`() {
        var card = VirtualCard(
            format: format, crystal: Crystal(nominalRate: 48_000, partsPerMillion: 0))
        for _ in 0..<3 { write(&card, 1, at: start) }
        #expect(card.advance(to: start + .milliseconds(31)) == .restarted)
        #expect(card.restarts == 1 && card.framesEmitted == 1_440)
        #expect(card.reading(at: start + .milliseconds(31)) == nil)
        #expect(card.advance(to: start + .milliseconds(40)) == .writable)
        for _ in 0..<3 { write(&card, 1, at: start + .milliseconds(50)) }
        let reading = card.reading(at: start + .milliseconds(60))
        #expect((reading!.framesHeard - 480).magnitude < 1e-6)
    }
}

@Suite struct CardClockTests {
    /// Readings every 10 ms of a card that is off by `ppm`, with noise of up to ± `noise` seconds.
    private func readings(
        _ ppm: Double, count: Int, noise: Double, seed: UInt64 = 1
    ) -> [CardReading] {
        var random = seed
        return (0..<count).map { i in
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let error = (Double(random >> 11) * 0x1p-52 - 1) * noise
            let t = Double(i) * 0.01
            return CardReading(
                framesHeard: ((t + error) * (1 + ppm * 1e-6) + 0.5) * 48_000,
                instant: start + Nanoseconds(seconds: t))
        }
    }

    @Test(arguments: [-300.0, -20, 120], [1, 2, 3] as [UInt64])
    func `rate and phase are found from noisy readings, and the stated deviation is honest`(
        partsPerMillion: Double, seed: UInt64
    ) {
        var card = CardClock(sampleRate: 48_000)
        #expect(!card.isAnchored && !card.isSettled)
        // ± 50 µs uniform, deviation 29 µs. A line through 500 points over 5 s: slope known to
        // 29e-6 × √12 / √500 / 5 = 0.9 ppm; three of these.
        for reading in readings(partsPerMillion, count: 500, noise: 50e-6, seed: seed) {
            card.observe(reading)
        }
        #expect(card.isSettled)
        #expect((card.skew * 1e6 - partsPerMillion).magnitude < 2.7)
        let n = (5.0 * (1 + partsPerMillion * 1e-6) + 0.5) * 48_000
        let error = (card.instant(ofFrame: n) - (start + .seconds(5))).seconds
        #expect(card.uncertaintySeconds < 10e-6)
        #expect(error.magnitude < 4 * card.uncertaintySeconds + 1e-7)
        #expect((card.frames(at: card.instant(ofFrame: n)) - n).magnitude < 1e-4)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `of a pointer that moves by the millisecond the freshest looks count`(seed: UInt64) {
        // 5 looks in 10 ms, 200 in a window: the freshest is 5 µs late on average, were they
        // independent. The mean of all would be 500 µs late.
        var crystal = Crystal(nominalRate: 48_000, partsPerMillion: 100, wander: 0, seed: seed)
        crystal.start(at: start)
        var card = CardClock(sampleRate: 48_000)
        var random = seed
        var at = start
        while at < start + .seconds(12) {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            at += Nanoseconds(1_000_000 + Int64(random >> 42))
            let ticks = crystal.frames(at: at)
            card.observe(
                CardReading(framesHeard: Double(Int64(ticks / 48) * 48), instant: at))
        }
        let error = card.frames(at: at) - crystal.frames(at: at)
        #expect((error / 48_000).magnitude < 30e-6, "\(error / 48_000)")
        #expect((card.skew * 1e6 - 100).magnitude < 5)
    }

    @Test func `a late look does not tear the line`() {
        var card = CardClock(sampleRate: 48_000)
        let all = readings(50, count: 600, noise: 5e-6)
        for reading in all { card.observe(reading) }
        let before = card.instant(ofFrame: 400_000)
        var late = readings(50, count: 601, noise: 5e-6)[600]
        late.framesHeard -= 48 * 5  // 5 ms
        card.observe(late)
        #expect((card.instant(ofFrame: 400_000) - before).magnitude < .microseconds(5))
    }

    @Test func `a card that jumped is followed, one whose count began anew keeps its rate`() {
        var card = CardClock(sampleRate: 48_000)
        for reading in readings(50, count: 500, noise: 5e-6) { card.observe(reading) }
        for var reading in readings(50, count: 560, noise: 5e-6).suffix(60) {
            reading.framesHeard += 4_800
            card.observe(reading)
        }
        let at = start + .milliseconds(5_590)
        let truth = (5.59 * (1 + 50e-6) + 0.5) * 48_000 + 4_800
        #expect((card.frames(at: at) - truth).magnitude < 2)
        card.restart()
        #expect(!card.isAnchored)
        #expect((card.skew * 1e6 - 50).magnitude < 3)
        for reading in readings(50, count: 600, noise: 5e-6).suffix(10) { card.observe(reading) }
        #expect((card.skew * 1e6 - 50).magnitude < 5)
    }
}

/// A debug build allocates for closures and tuples in generic code that an optimised one does not.
private var isOptimised: Bool {
    #if DEBUG
    false
    #else
    true
    #endif
}

@Suite(
    .enabled(
        if: countsAllocations() == 1 && isOptimised, "this build does not count allocations"))
struct CardAllocationTests {
    /// A virtual card runs on the output thread. Ten minutes, past every turn of its crystal's
    /// memory.
    @Test func `a virtual card allocates nothing after it was made`() {
        let format = OutputFormat(
            sampleRate: 8_000, channelCount: 1, periodFrames: 800, bufferFrames: 3_200)
        var card = VirtualCard(
            format: format,
            crystal: Crystal(nominalRate: 8_000, partsPerMillion: 90, wander: 1))
        let period = [Float](repeating: 0.1, count: 800)
        let before = allocationsOfThisThread() + releasesOfThisThread()
        var now = start
        period.withUnsafeBufferPointer { period in
            for _ in 0..<6_000 {
                _ = card.advance(to: now)
                while card.writableFrames >= 800 { card.write(period, now: now) }
                _ = card.reading(at: now)
                _ = card.instant(ofFrame: 10)
                now += .milliseconds(95)
            }
        }
        #expect(allocationsOfThisThread() + releasesOfThisThread() - before == 0)
        #expect(card.framesEmitted > 4_000_000)
    }
}
