import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `A room on its own` {
    let item = asset(1)
    let start = LocalInstant(nanoseconds: 0)
    let change = RateChange(itemFrame: 0, instant: GroupInstant(nanoseconds: 5), rate: 1)

    func machine() -> RoomMachine {
        RoomMachine(
            RoomConfiguration(
                room: room("kitchen"), instance: 1, outputLatency: .milliseconds(20),
                hasOutput: true), at: start)
    }

    func welcome(term: UInt64 = 7) -> LeaderToRoom {
        .welcome(
            Welcome(leaderName: "a", timePort: 1, mediaPort: 2, term: term, groupClockEpoch: term))
    }

    func state(_ change: RateChange?, phase: SessionPhase, sequence: UInt64 = 9) -> LeaderToRoom {
        .state(
            SessionState(
                term: 7, sequence: sequence, queue: [item, asset(2)], index: 0, change: change,
                phase: phase))
    }

    func commit(_ id: UInt64, _ change: RateChange, following: Bool = false) -> LeaderToRoom {
        .commit(
            Commit(id: id, index: 0, hash: item.hash, change: change, following: following))
    }

    func order(_ id: UInt64, _ change: RateChange? = nil) -> Preparation {
        Preparation(id: id, asset: item, itemFrame: 0, rate: 1, change: change)
    }

    func joined() -> RoomMachine {
        var room = machine()
        #expect(room.advance(to: start) == [.connect])
        _ = room.receive(.connected, at: start)
        _ = room.receive(.received(welcome()), at: start)
        _ = room.receive(.clock(.locked), at: start)
        return room
    }

    func playing() -> RoomMachine {
        var room = joined()
        _ = room.receive(.received(.prepare(order(1))), at: start)
        _ = room.receive(.fetched(item.hash, .done), at: start)
        _ = room.receive(.prepared(1, .ready(latency: .zero)), at: start)
        _ = room.receive(.received(commit(1, change)), at: start)
        return room
    }

    @Test func `a room without its card says that, whatever it plays or prepares`() {
        for make in [machine, joined, playing] {
            var room = make()
            let before = room.activity
            var report = RoomReport()
            report.isCardLost = true
            _ = room.receive(.report(report), at: start)
            #expect(room.activity == .cardLost)
            #expect(room.currentReport.activity == .cardLost)
            _ = room.receive(.report(RoomReport()), at: start)
            #expect(room.activity == before)
        }
    }

    @Test func `fetch, preroll, ready, commit, in this order`() {
        var room = joined()
        #expect(room.receive(.received(.prepare(order(1))), at: start) == [.fetch(item)])
        #expect(room.activity == .fetching)
        #expect(room.receive(.fetched(item.hash, .done), at: start) == [.prepare(order(1))])
        #expect(
            room.receive(.prepared(1, .ready(latency: .milliseconds(3))), at: start)
                == [.send(.ready(preparation: 1, latency: .milliseconds(3)))])
        guard
            case .apply(let applied)? = room.receive(.received(commit(1, change)), at: start).first
        else {
            Issue.record("not applied")
            return
        }
        #expect(applied.change == change)
        #expect(room.activity == .playing)
    }

    @Test func `a room without a good group clock is not ready however well prerolled`() {
        var room = joined()
        _ = room.receive(.clock(.none), at: start)
        _ = room.receive(.received(.prepare(order(1))), at: start)
        _ = room.receive(.fetched(item.hash, .done), at: start)
        #expect(room.receive(.prepared(1, .ready(latency: .zero)), at: start).isEmpty)
        #expect(room.receive(.clock(.acquiring), at: start).isEmpty)
        #expect(
            room.receive(.clock(.locked), at: start)
                == [.send(.ready(preparation: 1, latency: .zero))])
    }

    /// Offered the line that runs, and prerolled for it; the clock is not known yet.
    func joining(_ state: LeaderToRoom) -> RoomMachine {
        var room = joined()
        _ = room.receive(.clock(.acquiring), at: start)
        _ = room.receive(.received(state), at: start)
        _ = room.receive(.received(.prepare(order(1, change))), at: start)
        _ = room.receive(.fetched(item.hash, .done), at: start)
        _ = room.receive(.prepared(1, .ready(latency: .zero)), at: start)
        return room
    }

    @Test func `a room plays along with a running line as soon as it is ready`() {
        var room = joining(state(change, phase: .playing))
        let own = Commit(id: 1, index: 0, hash: item.hash, change: change, following: false)
        #expect(
            room.receive(.clock(.locked), at: start)
                == [.send(.ready(preparation: 1, latency: .zero)), .apply(own)])
        #expect(room.activity == .playing)
        // The leader says the same somewhat later, perhaps twice.
        #expect(room.receive(.received(.commit(own)), at: start).isEmpty)
        #expect(room.receive(.received(.commit(own)), at: start).isEmpty)
        // It had gone elsewhere before it heard of the room.
        #expect(
            room.receive(.received(.withdraw(preparation: 1)), at: start) == [.withdraw(1)])
        #expect(room.activity != .playing)
    }

    @Test func `a line that is offered twice is joined once`() {
        var room = joining(state(change, phase: .playing))
        _ = room.receive(.received(.prepare(order(2, change))), at: start)
        _ = room.receive(.prepared(2, .ready(latency: .zero)), at: start)
        let effects = room.receive(.clock(.locked), at: start)
        #expect(effects.contains { if case .apply(let own) = $0 { own.id == 1 } else { false } })
        // The leader knows of the later one only.
        #expect(room.receive(.received(commit(2, change)), at: start) == [.withdraw(2)])
        #expect(room.activity == .playing)
        #expect(
            room.receive(.received(.withdraw(preparation: 2)), at: start) == [.withdraw(1)])
    }

    @Test func `what is not the line in force waits to be told`() {
        let other = RateChange(itemFrame: 0, instant: GroupInstant(nanoseconds: 99), rate: 1)
        for state in [
            state(change, phase: .paused), state(other, phase: .playing),
            state(nil, phase: .preparing),
        ] {
            var room = joining(state)
            #expect(
                room.receive(.clock(.locked), at: start)
                    == [.send(.ready(preparation: 1, latency: .zero))])
        }
        // Nor does what follows the item that sounds here.
        var room = playing()
        _ = room.receive(.received(state(change, phase: .playing)), at: start)
        _ = room.receive(.received(.prepare(order(2, other))), at: start)
        #expect(
            room.receive(.prepared(2, .ready(latency: .zero)), at: start)
                == [.send(.ready(preparation: 2, latency: .zero))])
    }

    @Test func `a commit counts only for a preparation that is ready here`() {
        var room = joined()
        _ = room.receive(.received(.prepare(order(1))), at: start)
        for id in [1, 2] as [UInt64] {
            let effects = room.receive(.received(commit(id, change)), at: start)
            guard case .send(.notReady(preparation: id, _))? = effects.first else {
                Issue.record("\(effects)")
                continue
            }
            #expect(effects.count == 1)
        }
        _ = room.receive(.received(.withdraw(preparation: 1)), at: start)
        #expect(room.receive(.fetched(item.hash, .done), at: start).isEmpty)
    }

    @Test func `the line runs on without the leader and after the reconnect`() {
        var room = playing()
        let lost = room.receive(.closed(reason: "gone"), at: start)
        #expect(lost == [.disconnected(reason: "gone")])
        #expect(room.activity == .playing)
        let later = room.nextDeadline!
        #expect(room.advance(to: later) == [.connect])
        _ = room.receive(.connected, at: later)
        _ = room.receive(.received(welcome()), at: later)
        let effects = room.receive(.received(state(change, phase: .playing)), at: later)
        #expect(!effects.contains(.stop))
        #expect(
            room.receive(.received(.prepare(order(8, change))), at: later)
                == [.send(.ready(preparation: 8, latency: .zero))])
        #expect(room.receive(.received(commit(8, change)), at: later).isEmpty)
        // The shell still knows the voice by its first name.
        let pause = RateChange(itemFrame: 5, instant: GroupInstant(nanoseconds: 9), rate: 0)
        guard case .apply(let applied)? = room.receive(.received(commit(8, pause)), at: later).first
        else {
            Issue.record("no pause")
            return
        }
        #expect(applied.id == 1)
    }

    @Test func `a room that missed a pause or a seek falls silent when it is back`() {
        let moved = RateChange(itemFrame: 9, instant: GroupInstant(nanoseconds: 7), rate: 1)
        for missed in [state(nil, phase: .stopped), state(moved, phase: .playing)] {
            var room = playing()
            _ = room.receive(.closed(reason: "gone"), at: start)
            let later = room.nextDeadline!
            _ = room.advance(to: later)
            _ = room.receive(.connected, at: later)
            _ = room.receive(.received(welcome()), at: later)
            #expect(room.receive(.received(missed), at: later).contains(.stop))
        }
    }

    @Test func `another session ends what the old one played`() {
        var room = playing()
        _ = room.receive(.closed(reason: "gone"), at: start)
        let later = room.nextDeadline!
        _ = room.advance(to: later)
        _ = room.receive(.connected, at: later)
        #expect(room.receive(.received(welcome(term: 8)), at: later).first == .stop)
    }

    @Test func `attempts to connect come slower and never stop`() {
        var room = machine()
        var now = start
        var gaps: [Nanoseconds] = []
        for _ in 0..<8 {
            _ = room.advance(to: now)
            _ = room.receive(.closed(reason: "no"), at: now)
            gaps.append(room.nextDeadline! - now)
            now = room.nextDeadline!
        }
        let expected = [200, 400, 800, 1_600, 2_000, 2_000, 2_000, 2_000] as [Int64]
        #expect(gaps == expected.map { .milliseconds($0) })
    }

    @Test func `what a room does is told soon, and not oftener than every tenth of a second`() {
        var room = joined()
        func reports(until end: LocalInstant) -> [(RoomActivity, LocalInstant)] {
            var all: [(RoomActivity, LocalInstant)] = []
            while let due = room.nextDeadline, due <= end {
                for case .send(.report(let report)) in room.advance(to: due) {
                    all.append((report.activity, due))
                }
            }
            return all
        }
        let first = start + .milliseconds(100)
        #expect(reports(until: first).map(\.0) == [.idle])
        _ = room.receive(.received(.prepare(order(1))), at: first + .milliseconds(20))
        let fetching = reports(until: first + .milliseconds(300))
        #expect(fetching.map(\.0) == [.fetching])
        #expect(fetching.map(\.1) == [first + .milliseconds(100)])
        _ = room.receive(.fetched(item.hash, .done), at: first + .milliseconds(400))
        #expect(reports(until: first + .milliseconds(400)).map(\.0) == [.prerolling])
        // While the clock is measured, the path is left alone.
        _ = room.receive(.clock(.acquiring), at: first + .milliseconds(600))
        _ = room.receive(.prepared(1, .ready(latency: .zero)), at: first + .milliseconds(700))
        #expect(reports(until: first + .milliseconds(1_300)).isEmpty)
        _ = room.receive(.clock(.locked), at: first + .milliseconds(1_300))
        #expect(reports(until: first + .milliseconds(1_300)).map(\.0) == [.ready])
    }

    @Test func `a silent leader is given up and reports come once a second`() {
        var room = joined()
        var now = start
        var reports = 0
        while now < start + .seconds(5), let deadline = room.nextDeadline {
            now = deadline
            let effects = room.advance(to: now)
            if effects.contains(.disconnect) { break }
            reports += 1
        }
        #expect(now == start + .seconds(5))
        // The first after half a second.
        #expect(reports == 5)
    }

    @Test func `what is on its way is prepared at once, and what follows waits for all of it`() {
        var room = joined()
        _ = room.receive(.received(state(nil, phase: .preparing)), at: start)
        #expect(room.receive(.received(.prepare(order(1))), at: start) == [.fetch(item)])
        #expect(room.receive(.fetched(item.hash, .arriving), at: start) == [.prepare(order(1))])
        // A seek while it arrives.
        let again = room.receive(.received(.prepare(order(2))), at: start)
        #expect(again == [.prepare(order(2))])
        #expect(room.receive(.fetched(item.hash, .done), at: start) == [.fetch(asset(2))])
        #expect(room.receive(.received(.prepare(order(3))), at: start) == [.prepare(order(3))])
    }

    @Test func `a transfer that breaks off is tried anew by the next preparation`() {
        var room = joined()
        _ = room.receive(.received(.prepare(order(1))), at: start)
        _ = room.receive(.fetched(item.hash, .arriving), at: start)
        #expect(room.receive(.fetched(item.hash, .failed(reason: "torn")), at: start).isEmpty)
        let said = room.receive(.prepared(1, .failed(reason: "torn")), at: start)
        #expect(said == [.withdraw(1), .send(.notReady(preparation: 1, reason: "torn"))])
        #expect(room.receive(.received(.prepare(order(2))), at: start) == [.fetch(item)])
        // Nobody asked for it any more, or it was forgotten.
        var other = joined()
        #expect(other.receive(.fetched(item.hash, .arriving), at: start).isEmpty)
        #expect(other.receive(.received(.prepare(order(1))), at: start) == [.fetch(item)])
    }

    @Test func `a line that cannot go on is offered again`() {
        var room = playing()
        let effects = room.receive(.itemFailed(1, reason: "torn"), at: start)
        #expect(effects == [.withdraw(1), .send(.notReady(preparation: 1, reason: "torn"))])
        #expect(room.activity != .playing)
        // Its bytes may be what is wrong.
        let again = room.receive(.received(.prepare(order(9, change))), at: start)
        #expect(again == [.fetch(item)])
        #expect(room.receive(.itemFailed(1, reason: "torn"), at: start).isEmpty)
    }

    @Test func `one that was ready and cannot go on says so`() {
        var room = joined()
        _ = room.receive(.received(.prepare(order(1))), at: start)
        _ = room.receive(.fetched(item.hash, .arriving), at: start)
        _ = room.receive(.prepared(1, .ready(latency: .zero)), at: start)
        let effects = room.receive(.itemFailed(1, reason: "torn"), at: start)
        #expect(effects == [.withdraw(1), .send(.notReady(preparation: 1, reason: "torn"))])
    }

    @Test func `the next item is loaded while this one plays`() {
        var room = playing()
        #expect(
            room.receive(.received(state(change, phase: .playing)), at: start)
                .contains(.fetch(asset(2))))
    }

    @Test func `a file that went away is fetched anew, and the preparation goes on`() {
        var room = joined()
        _ = room.receive(.received(state(nil, phase: .preparing)), at: start)
        _ = room.receive(.received(.prepare(order(1))), at: start)
        _ = room.receive(.fetched(item.hash, .done), at: start)
        #expect(room.receive(.missing(1), at: start) == [.withdraw(1), .fetch(item)])
        #expect(room.activity == .fetching)
        #expect(room.receive(.missing(1), at: start).isEmpty, "it is on its way")
        #expect(room.receive(.fetched(item.hash, .arriving), at: start) == [.prepare(order(1))])
        let ready = room.receive(.prepared(1, .ready(latency: .zero)), at: start)
        #expect(ready == [.send(.ready(preparation: 1, latency: .zero))])
        #expect(room.receive(.missing(1), at: start).isEmpty)
    }

    @Test func `what plays, is prepared or comes next is needed, and nothing else`() {
        var room = joined()
        #expect(room.needed.isEmpty)
        _ = room.receive(.received(.prepare(order(1))), at: start)
        #expect(room.needed == [item.hash])
        let queue = (1...9).map { asset($0) }
        func goOn(to index: Int) -> LeaderToRoom {
            .state(
                SessionState(
                    term: 7, sequence: UInt64(10 + index), queue: queue, index: index,
                    change: nil, phase: .playing))
        }
        _ = room.receive(.received(goOn(to: 0)), at: start)
        _ = room.receive(.fetched(item.hash, .done), at: start)
        _ = room.receive(.fetched(queue[1].hash, .arriving), at: start)
        #expect(room.needed == [item.hash, queue[1].hash])
        _ = room.receive(.received(goOn(to: 5)), at: start)
        #expect(room.needed == [item.hash, queue[5].hash, queue[6].hash])
        _ = room.receive(.received(.withdraw(preparation: 1)), at: start)
        #expect(room.needed == [queue[5].hash, queue[6].hash])
        // What was dropped on the way is asked for again.
        let back = Preparation(id: 2, asset: queue[1], itemFrame: 0, rate: 1, change: nil)
        #expect(room.receive(.received(.prepare(back)), at: start) == [.fetch(queue[1])])
        _ = room.receive(.received(goOn(to: 8)), at: start)
        #expect(room.needed == [queue[1].hash, queue[8].hash, queue[0].hash])
    }

    @Test func `the two largest items of a queue are found wherever they are`() {
        func item(_ number: UInt64, _ size: Int64) -> AssetDescriptor {
            try! AssetDescriptor(
                hash: ContentHash(words: (number, 0, 0, 0)), byteCount: size, sampleRate: 48_000,
                frameCount: 1, title: "", fileExtension: "")
        }
        func largest(_ queue: [AssetDescriptor]) -> [Int64] {
            SessionState(
                term: 1, sequence: 1, queue: queue, index: 0, change: nil, phase: .waiting
            ).largestItems
        }
        #expect(largest([]) == [])
        #expect(largest([item(1, 5)]) == [5])
        #expect(largest([item(1, 5), item(1, 5)]) == [5], "one file")
        let sizes: [(UInt64, Int64)] = [(1, 5), (2, 9), (3, 7), (2, 9), (4, 1)]
        for turn in 0..<sizes.count {
            let queue = (sizes[turn...] + sizes[..<turn]).map { item($0.0, $0.1) }
            #expect(largest(queue) == [9, 7])
        }
    }
}
