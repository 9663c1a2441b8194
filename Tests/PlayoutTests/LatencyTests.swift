import Testing
import TuttiPlayout
import TuttiTiming

/// Cards behind which something holds the sound back: Bluetooth, a receiver, a DSP, a sound server.
@Suite struct LatencyTests {
    private static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 960, bufferFrames: 3_840)

    /// Starts a voice as early as it can be heard, lets the card settle, and judges by the truth.
    private func play(
        latency: Nanoseconds, then later: Nanoseconds? = nil, granularity: Int = 0,
        format: OutputFormat = format
    ) -> (lateness: [Double], restarts: Int) {
        let rig = Rig(format: format, partsPerMillion: 60, pointerGranularity: granularity)
        rig.latency = latency
        let voice = rig.voice()
        rig.runAsPlanned(.milliseconds(700))
        let line = Line(
            itemFrame: 0, instant: rig.groupNow + latency + .milliseconds(150))
        voice.start(line, clock: rig.clock)
        rig.runAsPlanned(.seconds(4))
        if let later {
            rig.latency = later
            // Until the jump is believed, and the voice has followed it.
            rig.runAsPlanned(.seconds(6))
        }
        var lateness: [Double] = []
        rig.runAsPlanned(.seconds(4)) { _ in
            if let late = rig.lateness(of: voice, on: line) { lateness.append(late) }
        }
        return (lateness, rig.card.restarts)
    }

    /// The queue holds 80 ms: all of these are longer than half of it, and the last is as long as
    /// any.
    @Test(arguments: [50, 100, 300, 1_000, 2_000], [0, 48])
    func `a card that is heard later than its ring runs dry never does, and plays in step`(
        milliseconds: Int64, granularity: Int
    ) {
        let (lateness, restarts) = play(
            latency: .milliseconds(milliseconds), granularity: granularity)
        #expect(restarts == 0)
        #expect(lateness.count > 100)
        // As without the latency, and 2 s of a rate that is known to some ppm.
        let worst = lateness.map(\.magnitude).max() ?? 1
        #expect(worst < 60e-6, "\(worst)")
    }

    @Test(arguments: [(100, 300), (300, 100), (0, 2_000), (2_000, 0)] as [(Int64, Int64)])
    func `a latency that changes is followed without a gap in the ring`(
        first: Int64, second: Int64
    ) {
        let (lateness, restarts) = play(
            latency: .milliseconds(first), then: .milliseconds(second))
        #expect(restarts == 0)
        #expect(lateness.count > 100)
        let worst = lateness.map(\.magnitude).max() ?? 1
        #expect(worst < 60e-6, "\(worst)")
    }

    @Test(arguments: [1, 250, 2_000] as [Int64])
    func `what is held back is part of the queue's length`(milliseconds: Int64) {
        let rig = Rig(format: Self.format)
        rig.latency = .milliseconds(milliseconds)
        rig.runAsPlanned(.seconds(2))
        let report = rig.engine.port.report
        #expect(report.framesAhead == Int(milliseconds) * 48)
        let held = Double(report.queuedFrames) - Double(milliseconds) * 48
        #expect(held > 0 && held <= Double(Self.format.bufferFrames) + 48)
    }
}
