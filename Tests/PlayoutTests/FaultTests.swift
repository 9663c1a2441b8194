import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

import func Glibc.sin

/// Breaks, and what is heard of them.
@Suite struct FaultTests {
    private static let sample = 1 / 48_000.0
    private static let w = 2 * Double.pi * 700 / 48_000
    private static func tone(_ k: Int64) -> (Float, Float) {
        let x = Float(0.5 * sin(w * Double(k)))
        return (x, x)
    }
    /// The second difference of the tone is at most 0.5·w² = 4.2e-3; two of them in phase, in a
    /// cross-fade of equal power, have √2 of that, and the slopes of the gains add less than 1e-3.
    /// An edge of the tone has up to 0.5.
    private static let crossing: Float = 1.4143 * 4.2e-3 + 1e-3

    private func roughness(_ x: some Collection<Float>) -> Float {
        var worst: Float = 0
        var (a, b): (Float, Float) = (0, 0)
        for (i, c) in x.enumerated() {
            if i >= 2 { worst = max(worst, (a - 2 * b + c).magnitude) }
            (a, b) = (b, c)
        }
        return worst
    }

    /// A rig that has played for a while.
    private func playing(
        partsPerMillion: Double = 60
    ) -> (rig: Rig, voice: Voice, line: Line) {
        let rig = Rig(partsPerMillion: partsPerMillion)
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(400))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(50))
        voice.start(line, clock: rig.clock, fadeIn: true)
        rig.run(.milliseconds(600))
        return (rig, voice, line)
    }

    /// The clock that the room is told jumps: later by `span`.
    private func shift(_ rig: Rig, by span: Nanoseconds) {
        var clock = rig.clock.load()
        clock.map = ClockMap(
            from: rig.now, to: rig.groupNow + span, skew: rig.truth.skew)
        rig.clock.store(clock)
    }

    @Test(arguments: [-200, -40, -6, 6, 40, 200] as [Int64])
    func `a jump of 5 ms to a second is one cross-fade, without a gap`(milliseconds: Int64) {
        let (rig, voice, line) = playing()
        let before = rig.channel().count
        shift(rig, by: .milliseconds(milliseconds))
        rig.run(.milliseconds(200))
        let late = rig.lateness(of: voice, on: line)!
        #expect((late + Double(milliseconds) * 1e-3).magnitude < 0.05 * Self.sample, "\(late)")
        #expect(voice.report.starvedFrames == 0)
        #expect(voice.report.state == .playing)
        let heard = rig.channel()[(before - 2_000)...]
        #expect(roughness(heard) < Self.crossing, "\(roughness(heard))")
        // The sound is never gone: in each 5 ms (3.5 turns of the tone) it is there. In anti-phase
        // two tones leave |cos − sin| of one, which is 0 only for a moment.
        let frames = Array(heard)
        var softest: Float = 1
        for i in stride(from: 0, to: frames.count - 240, by: 60) {
            softest = min(softest, frames[i..<i + 240].map(\.magnitude).max()!)
        }
        #expect(softest > 0.05, "\(softest)")
    }

    @Test func `a jump beyond a second is a dip of 10 ms`() {
        let (rig, voice, line) = playing()
        let before = rig.channel().count
        shift(rig, by: .milliseconds(-1_500))
        rig.run(.milliseconds(300))
        // The place is no longer in the ring: silence, and no click on the way there.
        #expect(roughness(rig.channel()[(before - 2_000)...]) < Self.crossing)
        #expect(voice.report.state == .starved)
        shift(rig, by: .zero)
        rig.run(.milliseconds(300))
        #expect(voice.report.state == .playing)
        #expect(rig.lateness(of: voice, on: line)!.magnitude < 0.05 * Self.sample)
        #expect(roughness(rig.channel()[(before - 2_000)...]) < Self.crossing)
    }

    @Test func `a stop in the middle of a cross-fade fades both`() {
        let (rig, voice, _) = playing()
        let before = rig.channel().count
        shift(rig, by: .milliseconds(50))
        rig.run(.milliseconds(1))
        voice.stop(at: nil)
        rig.run(.milliseconds(150))
        #expect(voice.report.state == .stopped)
        #expect(rig.channel().suffix(480).allSatisfy { $0 == 0 })
        #expect(roughness(rig.channel()[(before - 2_000)...]) < Self.crossing + 7e-4)
    }

    @Test func `one reading that is a period off moves nothing`() {
        let (rig, voice, line) = playing()
        for fault in [-480.0, 480, -4_800] {
            rig.pointerFault = fault
            rig.run(.milliseconds(9))
            rig.pointerFault = 0
            rig.run(.milliseconds(300))
            let late = rig.lateness(of: voice, on: line)!
            #expect(late.magnitude < 0.1 * Self.sample, "\(fault): \(late)")
        }
        #expect(roughness(rig.channel()[30_000...]) < 4.2e-3 + 1e-4)
    }

    @Test func `a pointer that goes back by a period for good is followed, without a gap`() {
        let (rig, voice, line) = playing()
        let before = rig.channel().count
        rig.pointerFault = -480
        rig.run(.milliseconds(500))
        // The card says that it plays 10 ms later; so the item is placed 10 ms earlier.
        let late = rig.lateness(of: voice, on: line)!
        #expect((late + 0.01).magnitude < 0.2 * Self.sample, "\(late)")
        #expect(voice.report.starvedFrames == 0)
        #expect(roughness(rig.channel()[(before - 2_000)...]) < Self.crossing)
    }

    @Test func `without a break no frame is inserted, dropped or repeated`() {
        let (rig, voice, _) = playing(partsPerMillion: -120)
        var position = voice.report.itemFrame
        rig.run(.seconds(4)) {
            let report = voice.report
            let moved = report.itemFrame - position
            position = report.itemFrame
            // The ratio goes linearly from the last period's to this one's: up to 1.6 ppm of 480.
            let expected = 480 * (1 + report.ratioPartsPerMillion * 1e-6)
            #expect((moved - expected).magnitude < 480 * 1.6e-6, "\(moved - expected)")
        }
        #expect(voice.report.starvedFrames == 0)
        #expect(roughness(rig.channel()[40_000...]) < 4.2e-3 + 1e-4)
    }

    @Test func `a card that was opened anew may be another, and the voice comes back on its line`()
    {
        let (rig, voice, line) = playing()
        rig.reopen(partsPerMillion: -90)
        #expect(rig.engine.port.report.framesWritten > 0)
        rig.run(.milliseconds(60))
        #expect(rig.engine.port.report.cardClass == .probing)
        rig.run(.milliseconds(600))
        #expect(voice.report.state == .playing)
        #expect(rig.lateness(of: voice, on: line)!.magnitude < 0.2 * Self.sample)
        #expect((rig.engine.port.report.cardPartsPerMillion + 90).magnitude < 3)
    }

    @Test func `a card that does not say where it is plays, and nothing is promised of it`() {
        let rig = Rig(partsPerMillion: 60)
        rig.isMute = true
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(600))
        #expect(rig.engine.port.report.cardClass == .unreadable)
        #expect(!rig.engine.port.report.cardSettled)
        #expect(rig.engine.port.report.cardUncertainty == .zero, "nobody knows")
        voice.start(Line(itemFrame: 0, instant: rig.groupNow), clock: rig.clock)
        rig.run(.milliseconds(300))
        #expect(voice.report.state == .playing)
        // A word now and then is not worth more than the assumption.
        for _ in 0..<3 {
            rig.isMute = false
            rig.run(.milliseconds(10))
            rig.isMute = true
            rig.run(.milliseconds(200))
            #expect(rig.engine.port.report.cardClass == .unreadable)
            #expect(voice.report.state == .playing)
        }
        // It finds its tongue.
        rig.isMute = false
        rig.run(.milliseconds(900))
        let report = rig.engine.port.report
        #expect(report.cardClass == .fine)
        #expect(report.cardSettled && report.cardUncertainty > .zero)
        #expect((report.cardPartsPerMillion - 60).magnitude < 10)
        #expect(voice.report.state == .playing)
    }

    @Test func `a card that says nothing any more after it ran dry plays on`() {
        let (rig, voice, _) = playing()
        rig.isMute = true
        rig.stall(.milliseconds(200))
        rig.run(.milliseconds(1_500))
        #expect(rig.engine.port.report.cardClass == .unreadable)
        #expect(rig.engine.port.report.cardUncertainty == .zero)
        #expect(voice.report.state == .playing)
    }

    @Test func `while the clock is being found and may be a millisecond off a voice waits`() {
        let rig = Rig()
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(400))
        var clock = rig.clock.load()
        clock.quality = .acquiring
        clock.uncertainty = .milliseconds(4)
        rig.clock.store(clock)
        voice.start(Line(itemFrame: 0, instant: rig.groupNow), clock: rig.clock)
        rig.run(.milliseconds(100))
        #expect(voice.report.state == .armed)
        clock.uncertainty = .microseconds(300)
        rig.clock.store(clock)
        rig.run(.milliseconds(50))
        #expect(voice.report.state == .playing)
    }

    /// The leader died, or the path is congested: the bound grows, the line is as good as ever.
    @Test func `a voice that sounds plays on whatever the bound, and holdover lets voices in`() {
        let (rig, voice, _) = playing()
        for quality in [SharedClock.Quality.holdover, .acquiring, .none] {
            var clock = rig.clock.load()
            clock.quality = quality
            clock.uncertainty = .milliseconds(80)
            rig.clock.store(clock)
            rig.run(.milliseconds(200)) { #expect(voice.report.state == .playing) }
        }
        #expect(roughness(rig.channel()[30_000...]) < 4.2e-3 + 1e-4)
        var clock = rig.clock.load()
        clock.quality = .holdover
        rig.clock.store(clock)
        let other = rig.voice(Self.tone)
        other.start(Line(itemFrame: 0, instant: rig.groupNow), clock: rig.clock)
        rig.run(.milliseconds(50))
        #expect(other.report.state == .playing)
    }
}
