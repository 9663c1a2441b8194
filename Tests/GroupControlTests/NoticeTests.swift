import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `Commits by datagram` {
    func notices(_ stage: Stage) -> [CommitDatagram] {
        stage.effects.compactMap {
            if case .notify(let notice, _, _) = $0 { notice } else { nil }
        }
    }

    @Test func `a start and a pause go as datagrams too, to rooms that take them`() {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "a", instance: 77, noticePort: 5_000)
        stage.hello(2, "b")
        stage.ready(1)
        stage.ready(2)
        stage.advance(by: .seconds(1), heard: [1, 2])
        stage.command(.pause)
        #expect(notices(stage).map(\.commit) == stage.commits(1))
        #expect(notices(stage).allSatisfy { $0.instance == 77 && $0.term == 7 })
        #expect(notices(stage).count == 2)
        let places = stage.effects.compactMap { effect -> [Int]? in
            if case .notify(_, let port, let link) = effect { [Int(port), link] } else { nil }
        }
        #expect(places == [[5_000, 1], [5_000, 1]])
    }

    // MARK: The room

    let start = LocalInstant(nanoseconds: 0)
    let change = RateChange(itemFrame: 0, instant: GroupInstant(nanoseconds: 5), rate: 1)

    func ready() -> RoomMachine {
        var room = RoomMachine(
            RoomConfiguration(
                room: GroupControlTests.room("a"), instance: 77, outputLatency: .zero,
                hasOutput: true), at: start)
        _ = room.advance(to: start)
        _ = room.receive(.connected, at: start)
        let welcome = Welcome(
            leaderName: "a", timePort: 1, mediaPort: 2, term: 7, groupClockEpoch: 7)
        _ = room.receive(.received(.welcome(welcome)), at: start)
        _ = room.receive(.clock(.locked), at: start)
        let order = Preparation(id: 1, asset: asset(1), itemFrame: 0, rate: 1, change: nil)
        _ = room.receive(.received(.prepare(order)), at: start)
        _ = room.receive(.fetched(asset(1).hash, .done), at: start)
        _ = room.receive(.prepared(1, .ready(latency: .zero)), at: start)
        return room
    }

    func commit(_ change: RateChange, id: UInt64 = 1) -> Commit {
        Commit(id: id, index: 0, hash: asset(1).hash, change: change, following: false)
    }

    func notice(_ commit: Commit, instance: UInt64 = 77, term: UInt64 = 7) -> RoomInput {
        .notified(CommitDatagram(instance: instance, term: term, commit: commit))
    }

    @Test func `another key for datagrams counts once the room is welcome`() {
        let key = DatagramKey(term: 9, secret: [], sender: 3)
        var room = ready()
        #expect(room.receive(.received(.datagramKey(key)), at: start) == [.datagramKey(key)])
        _ = room.receive(.closed(reason: "test"), at: start)
        #expect(room.receive(.received(.datagramKey(key)), at: start).isEmpty)
    }

    @Test func `whichever comes first is applied, and the other is no news`() {
        let pause = RateChange(itemFrame: 9, instant: GroupInstant(nanoseconds: 9), rate: 0)
        for isDatagramFirst in [true, false] {
            var room = ready()
            for change in [change, pause] {
                let inputs = [
                    notice(commit(change)), .received(.commit(commit(change))),
                    notice(commit(change)),
                ]
                let order = isDatagramFirst ? inputs : [inputs[1], inputs[0], inputs[1]]
                let effects = order.map { room.receive($0, at: start) }
                #expect(effects == [[.apply(commit(change))], [], []])
            }
            #expect(room.lines.isEmpty)
        }
    }

    @Test func `a notice of a stranger, of another session or too early does nothing`() {
        var room = ready()
        let before = room.lines
        for input in [
            notice(commit(change), instance: 78), notice(commit(change), term: 8),
            notice(commit(change, id: 2)),
            notice(commit(RateChange(itemFrame: -1, instant: change.instant, rate: 1))),
            notice(commit(RateChange(itemFrame: 0, instant: change.instant, rate: .nan))),
            notice(commit(RateChange(itemFrame: 0, instant: change.instant, rate: 0))),
        ] {
            #expect(room.receive(input, at: start).isEmpty)
        }
        #expect(room.lines == before)
        _ = room.receive(.closed(reason: ""), at: start)
        #expect(room.receive(notice(commit(change)), at: start).isEmpty)
    }

    @Test func `a notice that is long overdue does not bring back what was withdrawn`() {
        var room = ready()
        _ = room.receive(.received(.commit(commit(change))), at: start)
        _ = room.receive(.received(.stop), at: start)
        #expect(room.receive(notice(commit(change)), at: start).isEmpty)
    }
}
