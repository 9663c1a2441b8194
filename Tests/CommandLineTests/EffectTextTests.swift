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

    @Test func `where nothing is heard of it, the item that next goes to is named`() {
        var effect = CommandEffect(phase: .paused, title: "Arabesque", positionSeconds: 0)
        #expect(EffectText(effect).linesOfItem == ["is at \"Arabesque\", and stays paused"])
        effect.phase = .playing
        #expect(EffectText(effect).linesOfItem == EffectText(effect).lines)
    }

    @Test func `who stops what does not play is told so`() {
        #expect(EffectText(CommandEffect(phase: .stopped, title: "A")).lines == ["stopped"])
        #expect(
            EffectText(CommandEffect(phase: .stopped, title: "")).lines == ["nothing was playing"])
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

    private func queue(
        _ count: Int, current: Int? = 0, phase: SessionPhase = .playing, coming: Int = 0,
        leftOut: [String] = [], count leftOutCount: UInt64 = 0
    ) -> QueueListing {
        QueueListing(
            revision: 1, count: count, coming: coming, current: count == 0 ? nil : current,
            phase: phase, repeats: .off, first: 0, items: [], leftOut: leftOut,
            leftOutCount: leftOutCount)
    }

    @Test func `an empty queue is called empty, whatever is to be done with it`() {
        #expect(QueueText.cleared(from: queue(0), to: queue(0)) == "the queue was empty already")
        #expect(
            QueueText.cleared(from: queue(1), to: queue(1)) == "removed nothing: what plays stays")
        #expect(
            QueueText.cleared(from: queue(5), to: queue(1)) == "removed 4 items: what plays stays")
        #expect(
            QueueText.cleared(from: queue(5, phase: .stopped), to: queue(0))
                == "removed 5 items: the queue is empty")
        #expect(QueueText.shuffled(queue(0)).contains("empty"))
        #expect(QueueText.shuffled(queue(2)).contains("fewer than two"))
        #expect(QueueText.shuffled(queue(3)) == "shuffled what comes next")
        #expect(QueueText.shuffled(queue(3, current: 1)).contains("fewer than two"))
        #expect(
            QueueText.shuffled(queue(2, current: 1, phase: .ended)) == "shuffled what comes next")
        // What was stopped keeps its place.
        #expect(
            QueueText.shuffled(queue(3, current: 2, phase: .stopped)).contains("fewer than two"))
    }

    @Test func `what is left out since a listing is said, line by line`() {
        let before = queue(1, leftOut: ["old: is none"], count: 1)
        let now = queue(1, leftOut: ["old: is none", "a: is empty", "b: is none"], count: 3)
        #expect(
            QueueText.leftOut(from: before, to: now)
                == ["tutti: skipped a: is empty", "tutti: skipped b: is none"])
        #expect(QueueText.leftOut(from: now, to: now).isEmpty)
        let many = queue(1, leftOut: ["z: is none"], count: 40)
        #expect(
            QueueText.leftOut(from: now, to: many)
                == ["tutti: skipped 36 more", "tutti: skipped z: is none"])
        // Another leader has counted less.
        #expect(QueueText.leftOut(from: many, to: before) == ["tutti: skipped old: is none"])
    }

    @Test func `a rate that nothing plays at yet is said`() {
        func text(_ phase: SessionPhase, _ rate: Double, at place: Double? = nil) -> String {
            EffectText(CommandEffect(phase: phase, title: "Arabesque", positionSeconds: place))
                .lines(atRate: rate).joined(separator: "\n")
        }
        #expect(text(.stopped, 1.25) == "nothing plays; what begins next plays 1.25 times as fast")
        #expect(text(.ended, 1) == "nothing plays; what begins next plays as recorded")
        #expect(text(.paused, 0.5, at: 83).hasSuffix(", and goes on 0.5 times as fast"))
        #expect(text(.playing, 2, at: 83).hasPrefix("plays \"Arabesque\""))
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (18, "18 bytes"), (999, "999 bytes"), (1_000, "1 kB"),
            (1_499, "1 kB"), (1_500, "2 kB"), (999_499, "999 kB"), (999_500, "1 MB"),
            (1_500_000, "2 MB"), (34_400_000, "34 MB"), (Int64.max, "9223372036855 MB"),
        ] as [(Int64, String)])
    func `a number of bytes is said in the unit that fits`(count: Int64, text: String) {
        #expect(count.bytesText == text)
    }

    @Test func `what was left out for a while is marked, and plays again`() {
        var listing = queue(3)
        listing.items = [
            .init(id: 1, title: "a", state: .known, durationSeconds: 60),
            .init(id: 2, title: "b", state: .known, durationSeconds: 61, reason: "bath is away"),
            .init(id: 3, title: "c", state: .unread, reason: "bath is away"),
        ]
        let lines = QueueView(listing).lines(width: 80)
        #expect(lines.filter { $0.contains("✗") }.count == 2)
        #expect(lines.contains { $0.contains("✗ 1:01") })
        #expect(
            lines.suffix(2) == ["2 was left out: bath is away", "3 was left out: bath is away"])
    }
}
