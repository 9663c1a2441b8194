import Testing
import TuttiPlayout
import TuttiTiming

/// A line that runs already is joined behind what is queued: the less the better, as long as nothing
/// sounds.
@Suite struct ExpectationTests {
    private static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 960, bufferFrames: 3_840)

    /// In periods, of which the card holds four.
    private func queued(
        _ rig: Rig, for span: Nanoseconds = .milliseconds(400)
    ) -> (least: Double, most: Double) {
        var least = Double.infinity
        var most = 0.0
        rig.runAsPlanned(span) { frames in
            let periods = Double(frames) / Double(rig.engine.format.periodFrames)
            least = min(least, periods)
            most = max(most, periods)
        }
        return (least, most)
    }

    @Test func `half of the queue is kept while a voice is about to join, and all of it otherwise`()
    {
        let rig = Rig(format: Self.format, partsPerMillion: 80, hostPartsPerMillion: -30)
        let port = rig.engine.port
        rig.runAsPlanned(.seconds(2))
        let voice = rig.voice { _ in (0.5, 0.5) }
        // Two periods are rendered at once while two are heard.
        #expect(queued(rig).most > 3.9)

        port.setExpectsJoin(true)
        rig.runAsPlanned(.milliseconds(100))
        let expecting = queued(rig)
        #expect(expecting.most < 2.1 && expecting.least > 1.9, "\(expecting)")

        // The line runs already: what sounds first stands right behind the queue.
        let begin = rig.heard.count / 2 + rig.card.queuedFrames
        #expect(
            voice.start(
                Line(itemFrame: 0, instant: rig.groupNow - .milliseconds(300)), clock: rig.clock))
        rig.runAsPlanned(.milliseconds(200))
        let first = rig.channel().firstIndex { $0.magnitude > 1e-4 }!
        #expect(first >= begin)
        #expect(first - begin < Self.format.periodFrames)
        // What sounds has all of it, whatever else is about to join.
        #expect(queued(rig).most > 3.9)
        #expect(rig.card.restarts == 0)
        voice.release()
        rig.runAsPlanned(.milliseconds(100))
        #expect(queued(rig).most < 2.1)
        port.setExpectsJoin(false)
        rig.runAsPlanned(.milliseconds(100))
        #expect(queued(rig).most > 3.9)
    }

    /// A busy machine holds a thread up for longer than half a queue of these.
    @Test func `a short queue stays whole`() {
        let rig = Rig()
        rig.engine.port.setExpectsJoin(true)
        rig.runAsPlanned(.seconds(2))
        #expect(queued(rig).most > 3.9)
    }
}
