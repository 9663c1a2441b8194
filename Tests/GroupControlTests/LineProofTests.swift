import Testing
import TuttiTiming

@testable import TuttiGroupControl

/// A room that plays one line, and what its card is said to play.
private struct Listener {
    let item = asset(1)
    let begin = GroupInstant(nanoseconds: 10_000_000_000)
    /// Group time minus local time.
    static let lead = Nanoseconds.seconds(100)
    /// From rendering to hearing.
    static let queue = Nanoseconds.milliseconds(80)

    var proof = LineProof()
    var now: LocalInstant

    init() {
        now = LocalInstant(nanoseconds: 9_900_000_000) - Self.lead
        proof.begin(commit(1, at: begin), voice: 1, of: item, at: now)
    }

    func commit(
        _ id: UInt64, at instant: GroupInstant, frame: Int64 = 0, following: Bool = false
    ) -> Commit {
        Commit(
            id: id, index: 0, hash: item.hash,
            change: RateChange(itemFrame: frame, instant: instant, rate: 1), following: following)
    }

    /// When what is rendered now leaves the card.
    var until: GroupInstant {
        GroupInstant(nanoseconds: (now + Self.lead).nanoseconds) + Self.queue
    }

    /// What a voice says that is so late on the line of a commit.
    func voice(
        _ number: UInt64? = 1, source: UInt64? = nil, on commit: Commit? = nil,
        late: Nanoseconds = .zero,
        knows: Nanoseconds = .zero, isSupplied: Bool = true, hash: ContentHash? = nil
    ) -> HeardVoice {
        let line = (commit ?? self.commit(1, at: begin)).change
        return HeardVoice(
            voice: number, source: source, hash: hash ?? item.hash, isSupplied: isSupplied,
            itemFrame: line.itemFrame(at: until - late, sampleRate: item.sampleRate), at: until,
            knownError: knows)
    }

    mutating func look(_ voices: [HeardVoice]?) -> LineProof.Verdict {
        proof.judge(OutputLook(until: until, voices: voices), at: now)
    }

    /// Looks for so long.
    mutating func looks(
        for span: Nanoseconds, _ voices: (Listener) -> [HeardVoice]?
    ) -> [LineProof.Verdict] {
        let end = now + span
        var verdicts: [LineProof.Verdict] = []
        while now < end {
            now += LineProof.interval
            let verdict = look(voices(self))
            if verdict != .unchanged { verdicts.append(verdict) }
        }
        return verdicts
    }
}

@Suite struct `What leaves the card, against what was committed` {
    @Test func `a voice on its line is on it, with what it knows to be off`() {
        var listener = Listener()
        for known in [Nanoseconds.zero, .microseconds(40), .milliseconds(-4)] {
            let verdicts = listener.looks(for: .seconds(3)) {
                [$0.voice(late: known, knows: known)]
            }
            #expect(verdicts.isEmpty)
            #expect(listener.proof.finding == .onLine)
            let deviation = listener.proof.deviation ?? .seconds(1)
            #expect((deviation - known).magnitude <= Nanoseconds(2))
        }
    }

    /// The faults that were heard: from the beginning after a seek; 39 ms early; 0.67 s too soon.
    @Test(arguments: [-83.0, -0.039, -0.67, 0.002, 12])
    func `another place than the committed one is an alarm within a second`(late: Double) throws {
        var listener = Listener()
        _ = listener.looks(for: .seconds(2)) { [$0.voice()] }
        let wrongSince = listener.now
        let span = Nanoseconds(seconds: late)
        // Its own line is met exactly.
        var raised: [LineProof.Verdict] = []
        while raised.isEmpty, listener.now - wrongSince < .seconds(5) {
            raised = listener.looks(for: LineProof.interval) { [$0.voice(late: span)] }
        }
        #expect(listener.now - wrongSince <= .seconds(1))
        guard case .raised(.off(let by), let line?, isNews: true)? = raised.first else {
            Issue.record("\(raised)")
            return
        }
        #expect((by - span).magnitude < .microseconds(1))
        #expect(line.voice == 1)
        #expect(listener.proof.finding.isAlarm)
        // Back where it should be.
        #expect(listener.looks(for: .seconds(1)) { [$0.voice()] } == [.cleared])
    }

    @Test func `an error that is known is none until it should have been jumped over`() {
        var listener = Listener()
        func late(_ span: Nanoseconds) -> [LineProof.Verdict] {
            listener.looks(for: .seconds(1)) { [$0.voice(late: span, knows: span)] }
        }
        #expect(late(.milliseconds(5)).isEmpty)
        #expect(!late(.milliseconds(7)).isEmpty)
    }

    @Test func `another item is an alarm, also at the right place`() {
        var listener = Listener()
        let verdicts = listener.looks(for: .seconds(1)) { [$0.voice(hash: asset(2).hash)] }
        guard case .raised(.otherItem, _, _)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
    }

    @Test func `silence where a line has begun is an alarm, and none before its instant`() throws {
        var listener = Listener()
        // 100 ms before the instant, and as long as a command takes.
        #expect(listener.look([]) == .unchanged)
        let verdicts = listener.looks(for: .seconds(1)) { _ in [] }
        guard case .raised(.silent, let line?, _)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
        #expect(line.id == 1)
    }

    /// None of them lasts as long as a line is given to begin.
    @Test func `silence through a queue of short items is an alarm, and one look between two none`()
        throws
    {
        var listener = Listener()
        let item = asset(1, seconds: 0.02)
        var ids: [UInt64] = []
        func add(_ listener: inout Listener) {
            let id = UInt64(ids.count + 2)
            let commit = Commit(
                id: id, index: 0, hash: item.hash,
                change: RateChange(
                    itemFrame: 0, instant: listener.begin + .milliseconds(20) * Int64(ids.count),
                    rate: 1),
                following: !ids.isEmpty)
            listener.proof.begin(commit, voice: id, of: item, at: listener.now)
            ids.append(id)
        }
        var verdicts: [LineProof.Verdict] = []
        let begin = listener.now
        for step in 0..<10 {
            listener.now = begin + LineProof.interval * Int64(step)
            while listener.begin + .milliseconds(20) * Int64(ids.count)
                < listener.until + .milliseconds(200)
            { add(&listener) }
            let due = listener.proof.spans.last { $0.change.instant <= listener.until }
            let heard = due.map {
                HeardVoice(
                    voice: $0.voice, hash: item.hash, isSupplied: true,
                    itemFrame: $0.change.itemFrame(
                        at: listener.until, sampleRate: item.sampleRate),
                    at: listener.until, knownError: .zero)
            }
            // Between two of them once, then never again.
            let isHeard = step < 4 && step != 2
            let verdict = listener.look(isHeard ? heard.map { [$0] } ?? [] : [])
            if verdict != .unchanged { verdicts.append(verdict) }
            if step == 4 { #expect(verdicts.isEmpty) }
        }
        guard case .raised(.silent, _?, _)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
    }

    @Test func `who joins late is given time to sound`() {
        var listener = Listener()
        listener.now += .seconds(20)
        listener.proof.begin(
            listener.commit(2, at: listener.begin), voice: 2, of: listener.item, at: listener.now)
        #expect(listener.look([]) == .unchanged)
        listener.now += .milliseconds(200)
        #expect(listener.look([]) == .unchanged)
        let after = listener.looks(for: .seconds(1)) { [$0.voice(2)] }
        #expect(after.isEmpty && listener.proof.finding == .onLine)
    }

    @Test func `a voice without frames is an alarm that preparing does not mend`() {
        var listener = Listener()
        let verdicts = listener.looks(for: .seconds(1)) { [$0.voice(isSupplied: false)] }
        guard case .raised(.starved, _, _)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
    }

    @Test func `a card that is gone or a clock that is not known is no alarm of this kind`() {
        var listener = Listener()
        #expect(listener.looks(for: .seconds(9)) { _ in nil }.isEmpty)
        #expect(listener.proof.finding == .nothing)
        #expect(listener.proof.deviation == nil)
    }

    @Test func `one look in the middle of a jump proves nothing`() {
        var listener = Listener()
        for _ in 0..<20 {
            _ = listener.looks(for: LineProof.interval) { [$0.voice(late: .milliseconds(80))] }
            _ = listener.looks(for: LineProof.interval) { [$0.voice()] }
        }
        #expect(listener.proof.alarm == nil)
    }

    @Test func `a pause is silence that was asked for, and sound after it is not`() {
        var listener = Listener()
        _ = listener.looks(for: .seconds(3)) { [$0.voice()] }
        listener.proof.stop(1, at: listener.until)
        #expect(listener.looks(for: .seconds(3)) { _ in [] }.isEmpty)
        var other = Listener()
        _ = other.looks(for: .seconds(3)) { [$0.voice()] }
        other.proof.stop(1, at: other.until)
        let verdicts = other.looks(for: .seconds(1)) { [$0.voice()] }
        guard case .raised(.stray, _, _)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
    }

    @Test func `after a seek the old place is off, and the new one on the line`() {
        var listener = Listener()
        _ = listener.looks(for: .seconds(3)) { [$0.voice()] }
        let seek = listener.commit(2, at: listener.until + .milliseconds(100), frame: 1_000_000)
        listener.proof.begin(seek, voice: 2, of: listener.item, at: listener.now)
        // Until the instant the old place is right.
        #expect(listener.look([listener.voice()]) == .unchanged)
        #expect(listener.proof.finding == .onLine)
        let verdicts = listener.looks(for: .seconds(2)) { [$0.voice(2, on: seek)] }
        #expect(verdicts.isEmpty && listener.proof.finding == .onLine)
        // The new voice from the beginning of the item, as a late item load left it.
        let from = listener.commit(2, at: seek.change.instant)
        let wrong = listener.looks(for: .seconds(1)) { [$0.voice(2, on: from)] }
        guard case .raised(.off, let line?, _)? = wrong.first else {
            Issue.record("\(wrong)")
            return
        }
        #expect(line.id == 2)
    }

    @Test func `one item after the other is on the line throughout`() {
        var listener = Listener()
        let second = listener.commit(
            2, at: listener.begin + .seconds(60), following: true)
        listener.now += .seconds(58)
        listener.proof.begin(second, voice: 2, of: listener.item, at: listener.now)
        let verdicts = listener.looks(for: .seconds(5)) { listener in
            listener.until < second.change.instant
                ? [listener.voice()] : [listener.voice(2, on: second)]
        }
        #expect(verdicts.isEmpty)
        #expect(listener.proof.finding == .onLine)
        // A next item that begins too soon is heard before its instant.
        var other = Listener()
        other.now += .seconds(58)
        other.proof.begin(second, voice: 2, of: other.item, at: other.now)
        let early = other.looks(for: .seconds(1)) {
            [$0.voice(), $0.voice(2, on: second, late: .milliseconds(-670))]
        }
        guard case .raised(.off, let line?, _)? = early.first else {
            Issue.record("\(early)")
            return
        }
        #expect(line.voice == 2)
    }

    @Test func `sound that goes on after a stop is an alarm, until it ends`() {
        var listener = Listener()
        _ = listener.looks(for: .seconds(3)) { [$0.voice()] }
        listener.proof.forgetAll()
        #expect(listener.proof.isWatching)
        let verdicts = listener.looks(for: .seconds(1)) { [$0.voice(nil)] }
        #expect(verdicts.first == .raised(.stray, nil, isNews: true))
        #expect(listener.looks(for: .seconds(3)) { _ in [] } == [.cleared])
        #expect(!listener.proof.isWatching)
    }

    /// Twenty seeks a second: at each look the voice of another one is on its way out, known or not.
    @Test(arguments: [true, false])
    func `voices on their way out are no alarm, however many follow one another`(isKnown: Bool) {
        var listener = Listener()
        _ = listener.looks(for: .seconds(2)) { [$0.voice()] }
        var sounding: (voice: UInt64, commit: Commit)?
        for seek in 1...40 as ClosedRange<UInt64> {
            let commit = listener.commit(
                seek + 1, at: listener.until, frame: Int64(seek) * 1_000)
            listener.proof.begin(
                commit, voice: seek + 1, of: listener.item, at: listener.now)
            if let sounding { listener.proof.forget(sounding.voice) }
            let verdicts = listener.looks(for: LineProof.interval) { listener in
                let old = sounding.map {
                    listener.voice(
                        isKnown ? $0.voice : nil, source: $0.voice, on: $0.commit)
                }
                return [listener.voice(seek + 1, source: seek + 1, on: commit)]
                    + (old.map { [$0] } ?? [])
            }
            #expect(verdicts.isEmpty)
            sounding = (seek + 1, commit)
        }
        #expect(listener.proof.alarm == nil && listener.proof.finding == .onLine)
    }

    @Test func `a voice that stays after it was withdrawn is an alarm within a second`() {
        var listener = Listener()
        _ = listener.looks(for: .seconds(2)) { [$0.voice(source: 8)] }
        let since = listener.now
        listener.proof.forget(1)
        var verdicts: [LineProof.Verdict] = []
        while verdicts.isEmpty, listener.now - since < .seconds(5) {
            // Others come and go beside it, and the room has forgotten it by then.
            let other = UInt64(bitPattern: listener.now.nanoseconds)
            let isForgotten = listener.now - since > .milliseconds(400)
            verdicts = listener.looks(for: LineProof.interval) {
                [$0.voice(nil, source: other), $0.voice(isForgotten ? nil : 1, source: 8)]
            }
        }
        #expect(verdicts.first == .raised(.stray, nil, isNews: true) || verdicts.count == 1)
        #expect(listener.now - since <= .seconds(1))
    }

    @Test func `a voice that nobody holds is an alarm`() {
        var listener = Listener()
        let verdicts = listener.looks(for: .seconds(1)) { [$0.voice(), $0.voice(nil)] }
        guard case .raised(.stray, nil, _)? = verdicts.first else {
            Issue.record("\(verdicts)")
            return
        }
    }
}

/// What the room does about it.
@Suite struct `A room that plays something else` {
    private let rig = `A room on its own`()

    /// With the session that says which item is needed.
    private func playing() -> RoomMachine {
        var room = rig.playing()
        _ = room.receive(
            .received(rig.state(rig.change, phase: .playing)), at: rig.start)
        return room
    }

    /// Looks at the room's deadlines for a while; what it plays is so late.
    private func listen(
        _ room: inout RoomMachine, from start: LocalInstant, for span: Nanoseconds,
        voice: UInt64, late: Nanoseconds
    ) -> [RoomEffect] {
        var effects: [RoomEffect] = []
        var now = start
        while let deadline = room.nextDeadline, deadline < start + span {
            now = max(now, deadline)
            // The group's clock is the room's here.
            let until = GroupInstant(nanoseconds: now.nanoseconds) + .milliseconds(80)
            let frame = rig.change.itemFrame(at: until - late, sampleRate: rig.item.sampleRate)
            let heard = HeardVoice(
                voice: voice, hash: rig.item.hash, isSupplied: true, itemFrame: frame, at: until,
                knownError: .zero)
            effects += room.receive(.heard(OutputLook(until: until, voices: [heard])), at: now)
            effects += room.advance(to: now)
            effects += room.receive(.received(.alive), at: now)
        }
        return effects
    }

    private func reports(_ effects: [RoomEffect]) -> [RoomReport] {
        effects.compactMap { if case .send(.report(let report)) = $0 { report } else { nil } }
    }

    @Test func `it says so within a second, gives the voice up and asks for the line again`() {
        var room = playing()
        let right = listen(&room, from: rig.start, for: .seconds(3), voice: 1, late: .zero)
        #expect(reports(right).last?.line == .onLine)
        let since = rig.start + .seconds(3)
        let wrong = listen(
            &room, from: since, for: .seconds(1), voice: 1, late: .milliseconds(-39))
        #expect(wrong.contains(.withdraw(1)))
        #expect(
            wrong.contains { if case .send(.notReady(1, _)) = $0 { true } else { false } },
            "the leader offers the line again")
        #expect(
            wrong.contains {
                if case .lineAlarm(.off, preparesAnew: true) = $0 { true } else { false }
            })
        #expect(reports(wrong).last?.line.isAlarm == true)
        #expect(room.lines.isEmpty)
        // Offered again, and right: the alarm is over.
        let now = since + .seconds(1)
        _ = room.receive(.received(.prepare(rig.order(9, rig.change))), at: now)
        _ = room.receive(.prepared(9, .ready(latency: .zero)), at: now)
        _ = room.receive(.received(rig.commit(9, rig.change)), at: now)
        let back = listen(&room, from: now, for: .seconds(2), voice: 9, late: .zero)
        #expect(back.contains(.lineAlarm(.onLine, preparesAnew: false)))
        #expect(reports(back).last?.line == .onLine)
    }

    @Test func `one that is wrong each time is silent in the end`() {
        var room = playing()
        var now = rig.start
        var voice: UInt64 = 1
        var times = 0
        while times < 10 {
            let effects = listen(
                &room, from: now, for: .seconds(1), voice: voice, late: .milliseconds(500))
            if effects.contains(.withdraw(voice)) { times += 1 }
            now += .seconds(1)
            voice += 1
            let answer = room.receive(.received(.prepare(rig.order(voice, rig.change))), at: now)
            guard answer == [.prepare(rig.order(voice, rig.change))] else { break }
            _ = room.receive(.prepared(voice, .ready(latency: .zero)), at: now)
            _ = room.receive(.received(rig.commit(voice, rig.change)), at: now)
        }
        #expect(times == RoomMachine.mostStrikes)
        #expect(room.currentReport.line.isAlarm)
        // Another line begins from nothing.
        let seek = RateChange(
            itemFrame: 7, instant: GroupInstant(nanoseconds: now.nanoseconds), rate: 1)
        let order = rig.order(voice + 1, seek)
        #expect(room.receive(.received(.prepare(order)), at: now) == [.prepare(order)])
    }

    @Test func `a leader hears of it once, and once that it is over`() {
        var stage = Stage.playing()
        func tell(_ line: LineFinding) {
            var report = stage.report
            report.line = line
            for _ in 0..<3 { stage.receive(.report(report), from: 1) }
        }
        tell(.onLine)
        tell(.off(by: .milliseconds(-39)))
        let room = stage.leader.status(at: stage.now).rooms[0]
        #expect(room.sync?.alarm == true && room.sync?.boundMicroseconds == nil)
        #expect(room.promiseObstacle?.contains("39.0 ms early") == true)
        tell(.onLine)
        let news = stage.effects.compactMap { effect -> LineFinding? in
            if case .news(.line(let finding), _) = effect { finding } else { nil }
        }
        #expect(news == [.off(by: .milliseconds(-39)), .onLine])
    }
}
