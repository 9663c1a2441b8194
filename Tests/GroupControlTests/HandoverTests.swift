import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `One leader after another` {
    let items = [asset(1, seconds: 60), asset(2, seconds: 30)]
    let start = LocalInstant(nanoseconds: 1_000_000_000)

    /// Two rooms play; the second is asked to lead.
    func handing(_ change: (inout Stage) -> Void = { _ in }) -> Stage {
        var stage = Stage.playing(configuration(queue: items, rooms: 2), links: [1, 2])
        stage.advance(by: .seconds(2), heard: [1, 2])
        change(&stage)
        #expect(stage.command(.handOver(to: room("room 2"))) == .accepted)
        return stage
    }

    func asked(_ stage: Stage) -> Handover? {
        for case .send(.lead(let handover), to: 2) in stage.effects { return handover }
        return nil
    }

    func next() -> NextLeader { NextLeader(name: room("room 2"), host: "10.0.0.2", port: 7_431) }

    /// The leader that goes on where this one is.
    func resumed(_ stage: Stage, term: UInt64 = 8) throws -> Stage {
        let handover = try #require(asked(stage))
        var next = Stage(configuration(queue: [], term: term))
        var settings = configuration(queue: [], term: term)
        settings.groupClockOrigin = 7
        next.now = stage.now
        next.leader = LeaderMachine(
            settings, resuming: stage.leader.session, handover, at: stage.now)
        return next
    }

    // MARK: The queue

    @Test func `the whole queue goes over, with what nobody has read and what cannot be played`()
        throws
    {
        let stage = handing { stage in
            stage.list((7...9).map { QueueEntry(id: $0, name: "file \($0)") }, at: .end)
            stage.read(8, as: asset(8))
            stage.unplayable(9, "is no audio")
        }
        let before = stage.leader.entries.map(QueueListing.Item.init)
        var next = try resumed(stage)
        #expect(next.leader.entries.map(QueueListing.Item.init) == before)
        #expect(next.leader.wanted(ahead: 24, most: 8) == [7])
        // The leader before reads on.
        next.read(7, as: asset(7))
        #expect(
            next.leader.session.queue.map(\.title) == ["item 1", "item 2", "item 7", "item 8"])
    }

    @Test func `a queue that does not fit the session is the session's`() throws {
        let stage = handing()
        var handover = try #require(asked(stage))
        let known = handover.items
        #expect(known.count == 2)
        for wrong in [[], Array(known.prefix(1)), known + known.prefix(1)] {
            handover.items = wrong
            let next = LeaderMachine(
                configuration(queue: [], term: 8), resuming: stage.leader.session, handover,
                at: stage.now)
            #expect(next.entries.map(\.asset) == items)
        }
    }

    /// Rooms hear of the assets at once, and of the whole queue some time later: what was read, moved or
    /// removed in between changes nothing for the others.
    @Test(arguments: 0...3)
    func `what was listed a moment before keeps its place and its identity`(change: Int) throws {
        let stage = handing { stage in
            stage.list((7...9).map { QueueEntry(id: $0, name: "file \($0)") }, at: .end)
            stage.read(8, as: asset(8))
        }
        let handover = try #require(asked(stage))
        let (first, second) = (handover.items[0].id, handover.items[1].id)
        var session = stage.leader.session
        var expected: [QueueEntry.ID] = [first, second, 7, 8, 9]
        switch change {
        case 0: session.queue.insert(asset(7), at: 2)
        case 1: session.queue.append(asset(9))
        case 2:
            session.queue.swapAt(0, 1)
            // What nobody has read stays behind the second.
            expected = [second, 7, first, 8, 9]
        default:
            session.queue.remove(at: 0)
            expected.removeFirst()
        }
        let next = LeaderMachine(
            configuration(queue: [], term: 8), resuming: session, handover, at: stage.now)
        #expect(next.entries.map(\.id) == expected)
        #expect(next.entries.compactMap(\.asset) == session.queue)
        #expect(next.entries.count { $0.state == .unread } == (change < 2 ? 1 : 2))
    }

    @Test func `a volume that was set just before the leader went is not taken back`() throws {
        var settings = configuration(queue: items, rooms: 2)
        settings.ownInstance = 3
        var stage = Stage(settings)
        join(&stage, 1...2)
        stage.command(.volume(room: room("room 2"), percent: 70))
        stage.advance(by: .seconds(1), heard: [1, 2])
        let before = stage.leader.handover
        let heard = try RoomSettings(volume: 20, muted: false, groupVolume: 50)
        var next = Stage(configuration(queue: [], term: 8))
        next.leader = LeaderMachine(
            configuration(queue: [], term: 8), resuming: stage.leader.session, before,
            waitingFor: LeaderMachine.handoverLimit, at: next.now)
        func volumes() -> [Int]? {
            let hello = Hello(
                room: room("room 2"), instance: 2, outputLatency: .zero, hasOutput: true,
                settings: heard)
            next.receive(.hello(hello), from: 2)
            for case .send(.settings(let told), to: 2) in next.effects.reversed() {
                return [told.volume, told.groupVolume]
            }
            return nil
        }
        #expect(volumes() == [20, 50])
        next.command(.volume(room: room("room 2"), percent: 30))
        next.command(.volume(room: nil, percent: 80))
        #expect(volumes() == [30, 80])
    }

    @Test func `while folders are looked through, or an item is waited for, nobody takes over`() {
        for coming in [0, 1] {
            var stage = Stage.playing(configuration(queue: items, rooms: 2), links: [1, 2])
            stage.advance(by: .seconds(2), heard: [1, 2])
            stage.take(.listed([QueueEntry(id: 7, name: "x")], at: .end, coming: coming))
            if coming == 0 { #expect(stage.command(.queue(.play(7))) == .accepted) }
            guard case .refused = stage.command(.handOver(to: room("room 2"))) else {
                Issue.record("handed over")
                continue
            }
        }
    }

    // MARK: The leader before

    @Test func `every room is told where the next leader is, and its link ends then`() throws {
        var stage = handing()
        stage.receive(.lead(.leads(port: 7_431)), from: 2)
        let isHandedOver = stage.effects.contains {
            $0 == .handOver(to: room("room 2"), port: 7_431, at: 2)
        }
        #expect(isHandedOver)
        let farewell = stage.leader.handedOver(to: next())
        for link in [1, 2] {
            let told = try #require(farewell.firstIndex(of: .send(.follow(next()), to: link)))
            let closed = try #require(farewell.firstIndex(of: .close(link)))
            #expect(told < closed)
        }
        #expect(!farewell.contains { if case .send(.stop, _) = $0 { true } else { false } })
        #expect(!farewell.contains { if case .send(.goodbye, _) = $0 { true } else { false } })
    }

    @Test func `who has handed over sends rooms and people on, and ends nothing`() {
        var stage = handing()
        _ = stage.leader.handedOver(to: next())
        stage.effects = []
        stage.advance(by: .seconds(200))
        #expect(!stage.effects.contains(.ended))
        guard case .refused(let reason) = stage.command(.pause) else {
            Issue.record("not refused")
            return
        }
        #expect(reason.contains("room 2"))
        stage.hello(9, "late")
        #expect(stage.effects.suffix(2) == [.send(.follow(next()), to: 9), .close(9)])
    }

    @Test(arguments: ["", "10.0.0.2", "fe80::1%eth0", "a, port 3"], ["attic", "a \"b\" (c)"])
    func `the refusal of who led before says where to go`(host: String, name: String) {
        let next = NextLeader(name: room(name), host: host, port: 7_431)
        #expect(NextLeader(refusal: next.refusal) == next)
        #expect(!NextLeader.isSoon(next.refusal))
        #expect(NextLeader.isSoon(NextLeader.refusal(before: room(name))))
        for other in ["", "the queue is empty", NextLeader.refusal(before: room(name))] {
            #expect(NextLeader(refusal: other) == nil)
        }
    }

    @Test func `who asked for a hand-over hears what came of it`() {
        let command = GroupCommand.handOver(to: room("room 2"))
        var stage = handing()
        #expect(stage.leader.settledEffect(of: command, at: stage.now) == nil)
        #expect(stage.leader.failure(of: command) == nil)
        stage.receive(.lead(.cannot(reason: "its port is taken")), from: 2)
        #expect(stage.leader.failure(of: command)?.contains("its port is taken") == true)
        #expect(stage.command(command) == .accepted)
        #expect(stage.leader.failure(of: command) == nil)
        stage.receive(.lead(.leads(port: 7_431)), from: 2)
        _ = stage.leader.handedOver(to: next())
        #expect(stage.leader.settledEffect(of: command, at: stage.now) != nil)
    }

    @Test func `while a room is asked to lead, nothing else changes the session`() {
        var stage = handing()
        let session = stage.leader.session
        for command in [
            GroupCommand.pause, .next, .seek(seconds: 3), .handOver(to: room("room 1")),
        ] {
            guard case .refused = stage.command(command) else {
                Issue.record("\(command) was not refused")
                continue
            }
        }
        #expect(stage.leader.session == session)
    }

    @Test(arguments: [0, 1, 2])
    func `a room that does not take over leaves everything as it was`(how: Int) {
        var stage = handing()
        switch how {
        case 0: stage.receive(.lead(.cannot(reason: "its port is taken")), from: 2)
        case 1: stage.close(2)
        default: stage.advance(by: .seconds(6), heard: [1, 2])
        }
        #expect(
            stage.effects.contains {
                if case .news(.declined, let name) = $0 { name == room("room 2") } else { false }
            })
        #expect(stage.command(.pause) == .accepted)
        // Too late: the group has gone on.
        stage.receive(.lead(.leads(port: 7_431)), from: 2)
        #expect(
            !stage.effects.contains { if case .handOver = $0 { true } else { false } })
        // It is told that it follows.
        if how != 1 {
            let here = NextLeader(name: room("attic"), host: "", port: 7_431)
            #expect(stage.effects.last == .send(.follow(here), to: 2))
        }
    }

    @Test func `the lead is not handed to nobody, to a stranger, or in the middle of a start`() {
        var stage = Stage.playing(configuration(queue: items, rooms: 2), links: [1, 2])
        func isRefused(_ name: String) -> Bool {
            if case .refused = stage.command(.handOver(to: room(name))) { true } else { false }
        }
        #expect(isRefused("nobody"))
        stage.command(.seek(seconds: 20))
        #expect(isRefused("room 2"))
        stage.ready(1)
        stage.ready(2)
        stage.describe([], coming: 3)
        #expect(isRefused("room 2"))
        stage.describe([], coming: 0)
        #expect(!isRefused("room 2"))
    }

    // MARK: The next leader

    @Test func `the next leader has the session, the volumes and a higher term`() throws {
        let stage = handing { stage in
            stage.command(.volume(room: room("room 1"), percent: 30))
            stage.command(.volume(room: nil, percent: 55))
            stage.command(.volume(room: room("room 1"), percent: 31))
        }
        var next = try resumed(stage)
        let before = stage.leader.session
        let after = next.leader.session
        #expect(after.term == 8 && after.isNewer(than: before))
        #expect(after.queue == before.queue && after.index == before.index)
        #expect(after.change == before.change && after.phase == .playing)
        for (link, percent) in [(1, 31), (2, 100), (3, 100)] {
            next.hello(link, "room \(link)")
            for case .send(.settings(let settings), to: link) in next.leaderEffects(of: link) {
                #expect(settings.volume == percent && settings.groupVolume == 55)
            }
        }
    }

    @Test func `a room that plays the line is told at once that it does`() throws {
        var next = try resumed(handing())
        next.hello(5, "room 1")
        let order = try #require(next.preparations(5).first)
        #expect(order.change == next.leader.session.change)
        next.ready(5)
        #expect(next.commits(5).map(\.change) == [next.leader.session.change])
        // Numbers of the leader before are not used again.
        #expect(order.id > 1 << 40)
    }

    @Test func `an item that ends while nobody is back yet is followed by the next`() throws {
        let stage = handing { stage in
            // All but half a second.
            stage.advance(by: .seconds(57), heard: [1, 2])
        }
        let end = try #require(stage.leader.session.endInstant)
        var next = try resumed(stage)
        next.advance(by: end - stage.now + .milliseconds(10))
        #expect(next.leader.session.index == 1)
        #expect(next.leader.session.change == RateChange(itemFrame: 0, instant: end, rate: 1))
    }

    @Test func `a pause stays one, and play goes on at its frame`() throws {
        let stage = handing { stage in
            stage.command(.pause)
            stage.ready(1)
            stage.ready(2)
        }
        var next = try resumed(stage)
        let frame = try #require(stage.leader.session.change?.itemFrame)
        #expect(next.leader.session.phase == .paused)
        next.hello(1, "room 1")
        next.ready(1)
        #expect(next.commits(1).isEmpty)
        next.command(.play)
        #expect(next.commits(1).map(\.change.itemFrame) == [frame])
    }

    // MARK: A leader that is lost

    /// A leader with a room of its own and two others, and who goes on when it is gone.
    private func lost(
        _ queue: [AssetDescriptor], _ change: (inout Stage) -> Void
    ) throws -> Stage {
        var settings = configuration(queue: queue, rooms: 3)
        settings.ownInstance = 1
        var stage = Stage(settings)
        change(&stage)
        stage.advance(by: .seconds(1), heard: [1, 2, 3])
        let told = stage.sent.compactMap {
            if case .succession(let next) = $0.message { next } else { nil }
        }
        let succession = try #require(told.last)
        #expect(succession.handover.rooms == 2)
        var next = Stage(configuration(queue: [], term: 8))
        next.now = stage.now
        next.leader = LeaderMachine(
            configuration(queue: [], term: 8), resuming: stage.leader.session,
            succession.handover, waitingFor: LeaderMachine.handoverLimit, at: stage.now)
        return next
    }

    private func join(_ stage: inout Stage, _ links: ClosedRange<Int>) {
        for link in links {
            stage.hello(link, "room \(link)", doorPort: link == 1 ? 0 : 7_430)
            stage.receive(.report(stage.report), from: link)
        }
    }

    /// - Parameter back: who comes to the next leader.
    @Test(arguments: [2...3, 2...2])
    func `a start that was being prepared begins with the rooms that are left`(
        back: ClosedRange<Int>
    ) throws {
        var next = try lost(items) { join(&$0, 1...3) }
        #expect(next.leader.session.phase == .waiting || next.leader.session.phase == .preparing)
        join(&next, back)
        for link in back { next.ready(link) }
        let isWhole = back.count == 2
        #expect(next.commits(2).isEmpty != isWhole)
        next.advance(by: LeaderMachine.handoverLimit, heard: Array(back))
        #expect(next.commits(2).map(\.index) == [0])
        #expect(next.leader.session.phase == .playing)
    }

    @Test func `what was wanted before anything was read is wanted from the next leader too`()
        throws
    {
        var next = try lost([]) { stage in
            join(&stage, 1...3)
            stage.list([QueueEntry(id: 4, name: "a"), QueueEntry(id: 5, name: "b")], at: .end)
        }
        join(&next, 2...3)
        #expect(next.leader.awaitedID == 4)
        next.unplayable(4, "its file went")
        next.read(5, as: asset(5))
        for link in 2...3 { next.ready(link) }
        #expect(next.commits(2).map(\.hash) == [asset(5).hash])
    }

    @Test func `an item that is over is not played again while the next one is being read`() throws
    {
        var next = try lost([asset(1, seconds: 30)]) { stage in
            join(&stage, 1...3)
            for link in 1...3 { stage.ready(link) }
            stage.list([QueueEntry(id: 4, name: "a")], at: .end)
            stage.advance(by: .seconds(35), heard: [1, 2, 3])
        }
        #expect(next.leader.session.phase == .preparing)
        #expect(next.leader.awaitedID == 4)
        join(&next, 2...3)
        #expect(next.preparations(2).isEmpty)
        next.read(4, as: asset(4))
        for link in 2...3 { next.ready(link) }
        #expect(next.commits(3).map(\.hash) == [asset(4).hash])
    }

    /// Another may lead by now, and what it did would be lost with its lead.
    @Test func `a leader that stood still does nothing until it can know who leads`() {
        for (gap, isRefused) in [(800, false), (901, true), (10_000, true)] {
            var stage = Stage.playing(configuration(queue: items, rooms: 2), links: [1, 2])
            stage.advance(by: .seconds(2), heard: [1, 2])
            stage.now += .milliseconds(Int64(gap))
            let outcome = stage.command(.pause)
            guard isRefused else {
                #expect(outcome == .accepted)
                continue
            }
            guard case .refused(let reason) = outcome, NextLeader.isSoon(reason) else {
                Issue.record("\(gap) ms: \(outcome)")
                continue
            }
            stage.advance(by: .seconds(1), heard: [1, 2])
            #expect(stage.command(.pause) == .accepted)
        }
        // Nobody else could lead where there is no other room.
        var settings = configuration(queue: items, rooms: 1)
        settings.ownInstance = 1
        var alone = Stage.playing(settings)
        alone.now += .seconds(3)
        #expect(alone.command(.pause) == .accepted)
    }

    // MARK: The rooms

    @Test func `a room plays on from one leader to the next without a new voice`() throws {
        var sound = `A room on its own`().playing()
        let lines = sound.lines
        let effects = sound.receive(.received(.follow(next())), at: start)
        #expect(effects == [.disconnect, .follow(next())])
        #expect(sound.nextDeadline.map { $0 <= start } ?? false)
        #expect(sound.advance(to: start) == [.connect])
        _ = sound.receive(.connected, at: start)
        let welcome = Welcome(
            leaderName: "b", timePort: 3, mediaPort: 4, term: 8, groupClockEpoch: 99,
            groupClockOrigin: 7)
        #expect(sound.receive(.received(.welcome(welcome)), at: start) == [.joined(welcome)])
        let session = SessionState(
            term: 8, sequence: 1, queue: [asset(1), asset(2)], index: 0, change: lines[0].change,
            phase: .playing)
        #expect(sound.receive(.received(.state(session)), at: start).first == .state(session))
        let order = Preparation(
            id: 1 << 41, asset: asset(1), itemFrame: 0, rate: 1, change: lines[0].change)
        #expect(
            sound.receive(.received(.prepare(order)), at: start)
                == [.send(.ready(preparation: order.id, latency: .zero))])
        let commit = Commit(
            id: order.id, index: 0, hash: asset(1).hash, change: lines[0].change, following: false)
        #expect(sound.receive(.received(.commit(commit)), at: start).isEmpty)
        #expect(sound.lines.map(\.voice) == lines.map(\.voice))
        #expect(sound.activity == .playing)
    }

    /// A leader of an older term that goes on, where two have met, goes on with the same clock.
    @Test(arguments: [
        (term: UInt64(8), origin: UInt64(8), ends: true), (term: 6, origin: 7, ends: false),
    ])
    func `another clock ends what sounds, and another term does not`(
        term: UInt64, origin: UInt64, ends: Bool
    ) {
        var sound = `A room on its own`().playing()
        _ = sound.receive(.received(.follow(next())), at: start)
        _ = sound.advance(to: start)
        _ = sound.receive(.connected, at: start)
        let welcome = Welcome(
            leaderName: "b", timePort: 3, mediaPort: 4, term: term, groupClockEpoch: 99,
            groupClockOrigin: origin)
        let effects = sound.receive(.received(.welcome(welcome)), at: start)
        #expect(effects.contains(.stop) == ends)
    }

    @Test func `a room that is asked to lead hands its node the session, and says what came of it`()
    {
        var sound = `A room on its own`().playing()
        let handover = Handover(repeats: .all, rooms: 3)
        // Without the session there is nothing to go on with.
        #expect(
            sound.receive(.received(.lead(handover)), at: start).contains {
                if case .send(.lead(.cannot)) = $0 { true } else { false }
            })
        let session = SessionState(
            term: 7, sequence: 9, queue: [asset(1)], index: 0, change: nil, phase: .playing)
        _ = sound.receive(.received(.state(session)), at: start)
        #expect(
            sound.receive(.received(.lead(handover)), at: start) == [.lead(handover, session)])
        #expect(
            sound.receive(.leads(.leads(port: 5)), at: start) == [.send(.lead(.leads(port: 5)))])
    }
}

extension Stage {
    func leaderEffects(of link: LinkID) -> [LeaderEffect] {
        effects.filter { if case .send(_, link) = $0 { true } else { false } }
    }
}
