import Testing
import TuttiGroupControl
import TuttiTiming

@testable import tutti

@Suite struct EffectTextTests {
    @Test func `a seek says where and when`() {
        let effect = CommandEffect(
            phase: .playing, title: "Arabesque", instant: GroupInstant(nanoseconds: 1),
            delay: .milliseconds(243), positionSeconds: 83.5)
        #expect(EffectText(effect).lines == ["plays \"Arabesque\" from 1:23.5 in 0.25 s"])
    }

    @Test func `what was so before has no delay`() {
        let effect = CommandEffect(
            phase: .paused, title: "Arabesque", instant: GroupInstant(nanoseconds: 1),
            delay: .seconds(-4), positionSeconds: 3)
        #expect(EffectText(effect).lines == ["paused at 0:03.0"])
    }

    @Test func `what plays already is at a place`() {
        let effect = CommandEffect(
            phase: .playing, title: "Arabesque", instant: GroupInstant(nanoseconds: 1),
            delay: .seconds(-4), positionSeconds: 4)
        #expect(EffectText(effect).lines == ["plays \"Arabesque\", at 0:04.0"])
    }

    @Test func `what was done to the queue is said`() {
        func queue(_ count: Int, coming: Int = 0) -> QueueListing {
            QueueListing(
                revision: 1, count: count, coming: coming, current: nil, phase: .playing,
                repeats: .off, first: 0,
                items: (0..<count).map {
                    QueueListing.Item(id: UInt64($0), title: "item \($0)", state: .known)
                })
        }
        #expect(QueueText.added(from: queue(3), to: queue(4)) == "added 1 item: the queue has 4")
        #expect(
            QueueText.added(from: queue(3), to: queue(9, coming: 2))
                == "added 6 items, and is still looking: the queue has 9")
        #expect(QueueText.removed([queue(1).items[0]]) == "removed \"item 0\"")
        #expect(QueueText.removed(queue(2).items) == "removed 2 items")
        #expect(QueueText.moved(queue(5).items[4], in: queue(9)) == "\"item 4\" is at 5")
    }

    @Test func `what the rooms still prepare is no promise`() {
        for phase in [SessionPhase.preparing, .playing] {
            let lines = EffectText(CommandEffect(phase: phase, title: "Arabesque")).lines
            #expect(lines.count == 1 && lines[0].hasPrefix("prepares \"Arabesque\""))
        }
    }

    @Test func `loudness is a line for each room`() {
        let effect = CommandEffect(
            phase: .playing, title: "Arabesque",
            rooms: [
                CommandEffect.Loudness(room: "attic", volume: 40, isMuted: false),
                CommandEffect.Loudness(room: "bath\u{1B}", volume: 7, isMuted: true),
            ])
        let lines = EffectText(effect).lines
        #expect(lines[0] == "attic: 40 %")
        #expect(lines[1].hasSuffix(": muted, 7 %") && !lines[1].contains("\u{1B}"))
    }
}
