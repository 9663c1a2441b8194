import Testing
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayout

/// Voices that play to other channels than the first two.
struct ChannelTests {
    /// Constant levels, one for each pair, on an output of so many channels; the last period of some.
    private func render(
        channels: Int, pairs: [Int], settings: (OutputPort) -> Void = { _ in }
    ) -> [Float] {
        let format = OutputFormat(
            sampleRate: 48_000, channelCount: channels, periodFrames: 480, bufferFrames: 1_920)
        let rig = Rig(format: format)
        let engine = rig.engine
        settings(engine.port)
        rig.run(.milliseconds(500))
        let voices = pairs.map { pair -> Voice in
            let voice = engine.port.makeVoice(sampleRate: 48_000, pair: pair)!
            var frames: [Float] = []
            for _ in 0..<9_600 { frames += [Float(pair + 1) / 16, -Float(pair + 1) / 32] }
            _ = frames.withUnsafeBufferPointer { voice.ring.write($0) }
            voice.start(
                Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(60)), clock: rig.clock)
            return voice
        }
        rig.run(.milliseconds(150))
        withExtendedLifetime(voices) {}
        return Array(rig.heard.suffix(channels))
    }

    private func expect(
        _ frame: [Float], _ levels: [Float], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(frame.count == levels.count, sourceLocation: sourceLocation)
        for (level, due) in zip(frame, levels) {
            #expect(abs(level - due) < 1e-4, "\(frame)", sourceLocation: sourceLocation)
        }
    }

    @Test func `each pair of voices goes to its own channels`() {
        expect(
            render(channels: 6, pairs: [0, 1, 2]),
            [1 / 16, -1 / 32, 2 / 16, -2 / 32, 3 / 16, -3 / 32])
        expect(render(channels: 6, pairs: [0]), [1 / 16, -1 / 32, 0, 0, 0, 0])
        expect(render(channels: 6, pairs: [0, 2]), [1 / 16, -1 / 32, 0, 0, 3 / 16, -3 / 32])
        expect(render(channels: 3, pairs: [0, 1]), [1 / 16, -1 / 32, 2 / 16])
    }

    @Test func `what has nowhere to go is not heard`() {
        expect(render(channels: 2, pairs: [0, 1, 2]), [1 / 16, -1 / 32])
        expect(render(channels: 1, pairs: [0, 3]), [1 / 64])
    }

    @Test func `the volume is that of all channels, and a part of an item has the first two alone`()
    {
        expect(
            render(channels: 4, pairs: [0, 1]) { $0.setGain(0.5) },
            [1 / 32, -1 / 64, 2 / 32, -2 / 64])
        expect(
            render(channels: 4, pairs: [0, 1]) { $0.setRole(.left) }, [1 / 16, 1 / 16, 0, 0])
    }

    @Test func `layouts have as many channels as the output, in ALSA's order`() {
        for count in 1...10 {
            let layout = ChannelLayout.usual(count)
            #expect(layout.channels.count == count && layout.pairCount == (count + 1) / 2)
            let named = layout.channels.filter { $0 != .unknown }
            #expect(Set(named).count == named.count)
        }
        let engine = OutputEngine(
            format: OutputFormat(
                sampleRate: 48_000, channelCount: 6, periodFrames: 480, bufferFrames: 1_920))
        #expect(engine.port.channelLayout == .usual(6))
        let own = ChannelLayout([
            .frontLeft, .frontRight, .frontCenter, .lowFrequency, .backLeft, .backRight,
        ])
        engine.port.setChannelLayout(own)
        #expect(engine.port.channelLayout == own)
        engine.port.setChannelLayout(.stereo)
        #expect(engine.port.channelLayout == .usual(6), "of another format")
    }
}
