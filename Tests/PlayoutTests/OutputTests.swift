import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@Suite struct OutputTests {
    /// A constant, so that each sample shows the gain that was applied to it.
    private func play(
        channels: Int = 2, left: Float = 0.5, right: Float = -0.25,
        before: (OutputPort) -> Void = { _ in }, during: (OutputPort) -> Void = { _ in }
    ) -> Rig {
        var format = Rig.format
        format.channelCount = channels
        let rig = Rig(format: format)
        before(rig.engine.port)
        let voice = rig.voice { _ in (left, right) }
        voice.start(Line(itemFrame: 0, instant: rig.localAsGroup), clock: nil)
        rig.run(.milliseconds(250))
        during(rig.engine.port)
        rig.run(.milliseconds(100))
        return rig
    }

    private func last(_ rig: Rig) -> [Float] {
        rig.heard.suffix(rig.engine.format.channelCount)
    }

    private func near(_ a: [Float], _ b: [Float]) -> Bool {
        a.count == b.count && zip(a, b).allSatisfy { ($0 - $1).magnitude < 1e-5 }
    }

    @Test func `roles choose what a room plays`() {
        let expected: [(ChannelRole, [Float])] = [
            (.stereo, [0.5, -0.25]), (.left, [0.5, 0.5]), (.right, [-0.25, -0.25]),
            (.mono, [0.125, 0.125]),
        ]
        for (role, samples) in expected {
            #expect(near(last(play(before: { $0.setRole(role) })), samples), "\(role)")
        }
    }

    @Test func `one channel gets the mix or the chosen side, more than two stay silent beyond`() {
        #expect(near(last(play(channels: 1)), [0.125]))
        #expect(near(last(play(channels: 1, before: { $0.setRole(.right) })), [-0.25]))
        for channels in 3...8 {
            let silent = [Float](repeating: 0, count: channels - 2)
            #expect(near(last(play(channels: channels)), [0.5, -0.25] + silent))
        }
    }

    @Test func `volume, mute and role ramp for 20 ms without a step`() {
        for change in [
            { (port: OutputPort) in port.setGain(0) }, { $0.setGain(0.1) }, { $0.setRole(.right) },
        ] {
            let rig = play(during: change)
            let x = rig.channel().dropFirst(12_000)
            let steepest = zip(x, x.dropFirst()).map { ($1 - $0).magnitude }.max()!
            // From 0.5 to at most −0.25 in 960 frames.
            #expect(steepest > 0 && steepest < 0.75 / 960 * 1.05)
            let changed = x.filter {
                ($0 - x.first!).magnitude > 1e-4 && ($0 - x.last!).magnitude > 1e-4
            }
            #expect((900...960).contains(changed.count))
        }
    }

    @Test func `nonsense gains are harmless`() {
        for gain in [-1, Float.nan] {
            #expect(last(play(before: { $0.setGain(gain) })).allSatisfy { $0 == 0 })
        }
        #expect(last(play(before: { $0.setGain(.infinity) })).allSatisfy { $0.isFinite })
    }

    @Test func `so many voices, and a slot is free again once the thread has seen the release`() {
        let rig = Rig()
        let port = rig.engine.port
        let limit = OutputPort.voiceLimit
        var voices = (0..<limit).compactMap { _ in port.makeVoice(sampleRate: 48_000) }
        #expect(voices.count == limit)
        #expect(port.makeVoice(sampleRate: 48_000) == nil)
        // Never started: the thread does not know it.
        voices[0].cancel()
        let again = port.makeVoice(sampleRate: 44_100)
        #expect(again != nil)
        // Started: the thread must let go first. Dropping the handle releases it.
        voices[1].start(Line(itemFrame: 0, instant: rig.groupNow), clock: rig.clock)
        rig.run(.milliseconds(200))
        voices.remove(at: 1)
        #expect(port.makeVoice(sampleRate: 48_000) == nil)
        rig.run(.milliseconds(50))
        let third = port.makeVoice(sampleRate: 48_000)
        #expect(third != nil)
        #expect(third?.report == VoiceReport())
        #expect(third?.ring.endFrame == 0)
    }

    @Test func `a released voice obeys no more, and lines that cannot be played are refused`() {
        let rig = Rig()
        let voice = rig.voice()
        for rate in [0, -1, .nan, 17] {
            let line = Line(itemFrame: 0, instant: rig.groupNow, rate: rate)
            #expect(!voice.start(line, clock: rig.clock))
        }
        #expect(!voice.start(Line(itemFrame: .nan, instant: rig.groupNow), clock: nil))
        voice.release()
        #expect(!voice.start(Line(itemFrame: 0, instant: rig.groupNow), clock: rig.clock))
        #expect(!voice.stop(at: nil))
    }

    @Test func `without a thread the queue fills and says so`() {
        let rig = Rig()
        let voice = rig.voice()
        let line = Line(itemFrame: 0, instant: rig.groupNow)
        let limit = OutputPort.commandLimit
        let accepted = (0..<2 * limit).filter { _ in voice.start(line, clock: nil) }.count
        #expect(accepted == limit)
        // The release is owed, and delivered when there is room.
        voice.release()
        rig.run(.milliseconds(30))
        _ = (1..<OutputPort.voiceLimit).map { _ in rig.engine.port.makeVoice(sampleRate: 48_000)! }
        rig.run(.milliseconds(30))
        #expect(rig.engine.port.makeVoice(sampleRate: 48_000) != nil)
    }

    @Test func `a voice without a usable clock waits for one`() {
        let rig = Rig()
        var none = rig.clock.load()
        let usable = none
        none.quality = .none
        rig.clock.store(none)
        let voice = rig.voice { _ in (0.5, 0.5) }
        let line = Line(itemFrame: 0, instant: rig.groupNow)
        voice.start(line, clock: rig.clock)
        rig.run(.milliseconds(300))
        #expect(voice.report.state == .armed)
        #expect(rig.heard.allSatisfy { $0 == 0 })
        rig.clock.store(usable)
        rig.run(.milliseconds(100))
        #expect(voice.report.state == .playing)
        #expect(rig.lateness(of: voice, on: line)!.magnitude < 1e-6)
    }

    @Test func `a card that never says where it is plays all the same`() {
        let engine = OutputEngine(format: Rig.format)
        let voice = engine.port.makeVoice(sampleRate: 48_000)!
        let ones = [Float](repeating: 0.5, count: 100_000)
        _ = ones.withUnsafeBufferPointer { voice.ring.write($0) }
        voice.start(Line(itemFrame: 0, instant: GroupInstant(nanoseconds: 0)), clock: nil)
        var period = [Float](repeating: 0, count: 960)
        for i in 0..<60 as Range<Int64> {
            engine.render(into: &period, now: LocalInstant(nanoseconds: i * 10_000_000))
        }
        #expect(voice.report.state == .playing)
        #expect((period[0] - 0.5).magnitude < 1e-3)
    }
}
