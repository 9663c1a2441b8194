import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiDeviceOutput

/// A ring of 3 840 frames that is kept filled, as PulseAudio and PipeWire were seen to report it.
@Suite struct CardPlaceTests {
    private func at(_ milliseconds: Int64) -> LocalInstant {
        LocalInstant(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds)
    }

    @Test func `a card of the kernel is believed from its first frame on`() {
        var place = CardPlace(bufferFrames: 3_840, cardFrames: 3_840)
        let before = place.look(written: 3_840, delay: 3_840, room: 0, at: at(0))
        #expect(before == nil)
        let first = place.look(written: 3_840, delay: 3_839, room: 1, at: at(1))
        #expect(first?.heard == 1 && first?.ahead == 0)
        #expect(!place.needsRenewal)
    }

    @Test(arguments: [0, 4_800, 96_000])
    func `what is behind the ring is told apart from what is in it`(behind: Int) {
        var place = CardPlace(bufferFrames: 3_840, cardFrames: 3_840)
        let look = place.look(written: 9_600, delay: 2_880 + behind, room: 960, at: at(0))
        #expect(look?.heard == Int64(9_600 - 2_880 - behind))
        #expect(look?.ahead == behind)
        // Two periods of 960 frames are left in the ring above the one that it may come down to.
        let due = place.instant(whenDownTo: 960, written: 9_600, sampleRate: 48_000)
        #expect(due == at(40))
    }

    @Test func `a delay that counts down while nothing is taken is not believed`() {
        var place = CardPlace(bufferFrames: 3_840, cardFrames: 3_840)
        for step in 0..<90 {
            let delay = max(0, 3_840 - step * 48)
            let look = place.look(written: 3_840, delay: delay, room: 0, at: at(Int64(step)))
            #expect(look == nil)
        }
        #expect(!place.needsRenewal)
        // It moves, and its time stands still: another stream says more.
        let stuck = place.look(written: 3_840, delay: 0, room: 960, at: at(1_900))
        #expect(stuck == nil)
        #expect(place.needsRenewal)
        place.restart()
        #expect(!place.needsRenewal)
        let anew = place.look(written: 3_840, delay: 4_200, room: 960, at: at(1_930))
        #expect(anew?.ahead == 1_320)
    }

    @Test func `a delay that is never true is given up, and the ring is believed`() {
        var place = CardPlace(bufferFrames: 3_840, cardFrames: 3_840)
        var looks = 0
        while !place.needsRenewal {
            let look = place.look(written: 9_600, delay: 0, room: 960, at: at(0))
            #expect(look == nil)
            looks += 1
        }
        #expect(looks < 20)
        place.ignoresDelay = true
        let look = place.look(written: 9_600, delay: 0, room: 960, at: at(0))
        #expect(look?.heard == 6_720)
        // For as long as the card is open.
        place.restart()
        #expect(place.ignoresDelay)
    }

    /// PipeWire takes 1 024 frames at once, and says in between what is heard.
    @Test func `a pointer that moves in lumps may lie behind what is heard`() {
        var place = CardPlace(bufferFrames: 3_840, cardFrames: 3_840)
        let look = place.look(written: 12_480, delay: 2_247, room: 576, at: at(212))
        #expect(look?.heard == 10_233)
        #expect(look?.ahead == 0)
        #expect(!place.needsRenewal)
    }
}
