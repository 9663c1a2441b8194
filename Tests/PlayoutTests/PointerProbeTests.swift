import Testing
import TuttiTiming

@testable import TuttiPlayout

/// What a card's first readings say of its pointer.
@Suite struct PointerProbeTests {
    private let start = LocalInstant(nanoseconds: 5_000_000_000)

    /// A card of 48 kHz whose pointer is rounded down to `step`, looked at every 0.5 to 1.5 ms.
    private func clock(step: Int, partsPerMillion: Double = 80, for seconds: Double) -> CardClock {
        var clock = CardClock(sampleRate: 48_000, periodFrames: 480)
        var scatter = 0.0
        var t = 0.0
        while t < seconds {
            scatter += 0.618_033_988_749_895
            if scatter >= 1 { scatter -= 1 }
            t += 1e-3 * (0.5 + scatter)
            let frames = Int(t * 48_000 * (1 + partsPerMillion * 1e-6))
            clock.observe(
                CardReading(
                    framesHeard: Double(frames / step * step),
                    instant: start + Nanoseconds(seconds: t), resolution: 1))
        }
        return clock
    }

    @Test(arguments: [
        (1, CardClass.fine), (2, .fine), (8, .fine), (16, .coarse), (48, .coarse), (64, .coarse),
        (256, .coarse), (480, .batch), (960, .batch),
    ])
    func `the pointer's steps decide the class within 0.2 s`(step: Int, cardClass: CardClass) {
        // Twenty steps of a batch card.
        let seconds = max(0.2, Double(20 * step) / 48_000)
        #expect(clock(step: step, for: seconds).cardClass == cardClass)
    }

    @Test(arguments: [1, 48, 960])
    func `a card that says nothing after a restart goes on as it went, but is not settled`(
        step: Int
    ) {
        var clock = clock(step: step, for: 2)
        clock.restart()
        #expect(!clock.isUsable)
        clock.assume(framesHeard: 960, at: start + .seconds(10))
        #expect(clock.cardClass == .unreadable)
        #expect(clock.isUsable && !clock.isSettled)
        // 80 ppm of a second are 4 frames; in two seconds a batch pointer tells half of that.
        let frames = clock.frames(at: start + .seconds(11))
        #expect((frames - 960 - 48_003.84).magnitude < 2, "\(frames)")
    }

    @Test func `nothing is said of a card that was looked at for 50 ms`() {
        #expect(clock(step: 48, for: 0.05).cardClass == .probing)
        #expect(!clock(step: 48, for: 0.05).isSettled)
    }

    /// The packets of a USB card at 44.1 kHz have 44 or 45 frames: no common divisor, and still
    /// steps.
    @Test func `steps of changing size are coarse`() {
        var clock = CardClock(sampleRate: 44_100, periodFrames: 441)
        for look in 0..<300 {
            let t = Double(look) * 1.1e-3 + Double(look * 7 % 11) * 0.9e-4
            let packets = Int(t * 1000)
            clock.observe(
                CardReading(
                    framesHeard: Double(Int(Double(packets) * 44.1)),
                    instant: start + Nanoseconds(seconds: t), resolution: 1))
        }
        #expect(clock.cardClass == .coarse)
    }

    /// Where the pointer is at an edge of its steps the card is; between two it is ahead. So the
    /// answer for every step is the same card.
    @Test(arguments: [1, 8, 48, 480]) func `the steps do not move the card`(step: Int) {
        let clock = clock(step: step, for: 4)
        let truth = 4 * 48_000 * (1 + 80e-6)
        let frames = clock.frames(at: start + .seconds(4))
        // 400 looks in a window meet the edge to step/400 frames; two of these, and a quarter of a
        // frame. Over the 4 s the same is √12 · step/400/48 000/4 s: 0.045 ppm a frame; twice that.
        let grain = Double(step)
        #expect((frames - truth).magnitude < 0.25 + grain / 200, "\(frames - truth) frames")
        #expect((clock.skew * 1e6 - 80).magnitude < 2 + 0.09 * grain, "\(clock.skew)")
    }

    @Test func `a card that counts frames is looked at densely until it is settled`() {
        let rig = Rig(partsPerMillion: 80, pointerGranularity: 1)
        let period = Nanoseconds.milliseconds(10)
        var periods = 0
        while !rig.engine.port.report.cardSettled, periods < 100 {
            rig.run(period)
            periods += 1
        }
        #expect(rig.engine.port.report.cardSettled)
        #expect(rig.engine.port.report.cardClass == .fine)
        // Some nine a period at first, then one and now and then another.
        #expect(rig.looks > 5 * periods, "\(rig.looks) looks in \(periods) periods")
        rig.run(period * 10)
        let before = rig.looks
        rig.run(period * 100)
        #expect(rig.looks - before < 300, "\(rig.looks - before) looks in 100 periods")
    }
}
