import Playout
import Testing
import Timing

/// A start that is due at once is heard behind what is queued: the less the better, as long as
/// nothing sounds.
@Suite struct ExpectationTests {
    /// In periods, of which the rig's cards hold four.
    private func queued(
        _ rig: Rig, for span: Nanoseconds = .milliseconds(400)
    ) -> (least: Double, most: Double) {
        var least = Double.infinity
        var most = 0.0
        rig.runAsPlanned(span) { frames in
            let periods = Double(frames) / Double(Rig.format.periodFrames)
            least = min(least, periods)
            most = max(most, periods)
        }
        return (least, most)
    }

    @Test func `half of the queue is kept while a start is expected, and all of it otherwise`() {
        let rig = Rig(partsPerMillion: 80, hostPartsPerMillion: -30)
        rig.runAsPlanned(.seconds(2))
        // Two periods are rendered at once while two are heard.
        #expect(queued(rig).most > 3.9)

        let voice = rig.voice { _ in (0.5, 0.5) }
        rig.runAsPlanned(.milliseconds(50))
        let expecting = queued(rig)
        #expect(expecting.most < 2.1 && expecting.least > 1.9, "\(expecting)")

        // The line runs already: what sounds first stands right behind the queue.
        let begin = rig.heard.count / 2 + rig.card.queuedFrames
        #expect(
            voice.start(
                Line(itemFrame: 0, instant: rig.groupNow - .milliseconds(300)), clock: rig.clock))
        rig.runAsPlanned(.milliseconds(100))
        let first = rig.channel().firstIndex { $0.magnitude > 1e-4 }!
        #expect(first >= begin)
        #expect(first - begin < Rig.format.periodFrames)
        #expect(queued(rig).most > 3.9)
        #expect(rig.card.restarts == 0)

        // What sounds has all of it, whatever else is prepared.
        let next = rig.voice()
        rig.runAsPlanned(.milliseconds(50))
        #expect(queued(rig).most > 3.9)
        voice.release()
        next.cancel()
        rig.runAsPlanned(.milliseconds(50))
        #expect(queued(rig).most > 3.9)
    }

    @Test func `an expected voice that is given back is expected no longer`() {
        let rig = Rig()
        rig.runAsPlanned(.seconds(2))
        let voice = rig.voice()
        rig.runAsPlanned(.milliseconds(50))
        #expect(queued(rig).most < 2.1)
        voice.cancel()
        rig.runAsPlanned(.milliseconds(50))
        #expect(queued(rig).most > 3.9)
    }
}
