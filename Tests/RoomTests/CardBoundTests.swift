import Testing
import TuttiDeviceOutput
import TuttiPlayout
import TuttiTiming

@testable import TuttiRoom

/// The card's part of what a room promises.
@Suite struct CardBoundTests {
    @Test func `a card that runs promises three deviations and half a frame`() {
        let card = OutputReport(cardUncertainty: .microseconds(2), cardClass: .fine)
        let bound = card.bound(in: .running, sampleRate: 50_000)
        #expect(bound == .microseconds(6) + .microseconds(10))
    }

    @Test func `nothing is promised of a card that is gone, closed or does not say where it is`() {
        let known = OutputReport(cardUncertainty: .microseconds(2), cardClass: .fine)
        let error = OutputError(
            operation: "snd_pcm_writei", code: -19, device: "alsa:hw:0", reason: "unplugged")
        #expect(known.bound(in: .lost(error), sampleRate: 48_000) == nil)
        #expect(known.bound(in: .closed, sampleRate: 48_000) == nil)
        let mute = OutputReport(cardUncertainty: .zero, cardClass: .unreadable)
        #expect(mute.bound(in: .running, sampleRate: 48_000) == nil)
    }
}
