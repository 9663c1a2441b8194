import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `A queue that is edited while it plays` {
    /// Items 1 to `count` of 20 s each, the first of which plays.
    private func playing(_ count: UInt64, loops: Bool = false, links: [LinkID] = [1]) -> Stage {
        Stage.playing(
            configuration(queue: (1...count).map { asset($0, seconds: 20) }, loops: loops),
            links: links)
    }

    private func entries(_ ids: ClosedRange<UInt64>) -> [QueueEntry] {
        ids.map { QueueEntry(id: $0, name: "file \($0)") }
    }

    @Test func `nothing that sounds is touched by an edit of what comes later`() {
        var stage = playing(5)
        stage.advance(by: .seconds(3), heard: [1])
        let (line, sent) = (stage.leader.session.change, stage.sent.count)
        let ids = stage.ids
        #expect(stage.command(.queue(.move(ids[4], to: 1))) == .accepted)
        #expect(stage.command(.queue(.remove([ids[2]]))) == .accepted)
        #expect(stage.command(.queue(.reorder(seed: 3))) == .accepted)
        #expect(stage.command(.queue(.move(ids[0], to: 3))) == .accepted)
        #expect(stage.leader.session.change == line)
        #expect(stage.leader.session.current == asset(1, seconds: 20))
        #expect(stage.leader.session.phase == .playing)
        for (message, _) in stage.sent[sent...] {
            if case .queue = message { continue }
            Issue.record("\(message)")
        }
        #expect(stage.roomsQueue == stage.leader.session)
    }

    @Test func `an item that is put next is joined without a gap, in place of the one before it`() {
        var stage = playing(3)
        let end = stage.leader.session.endInstant!
        stage.advance(by: .seconds(15), heard: [1])
        stage.ready(1)
        let planned = stage.commits(1).last!
        #expect(planned.following && planned.hash == asset(2, seconds: 20).hash)
        #expect(stage.command(.queue(.move(stage.ids[2], to: 1))) == .accepted)
        #expect(stage.withdrawn(1).contains(planned.id))
        stage.ready(1)
        let next = stage.commits(1).last!
        #expect(next.following && next.hash == asset(3, seconds: 20).hash)
        #expect(next.change == RateChange(itemFrame: 0, instant: end, rate: 1))
        stage.advance(by: .seconds(10), heard: [1])
        #expect(stage.leader.session.current == asset(3, seconds: 20))
        #expect(stage.leader.session.index == 1)
    }

    /// Rooms could not open another one in time: a hole would be heard.
    @Test func `what is about to begin begins, whatever is put before it`() {
        var stage = playing(3)
        let end = stage.leader.session.endInstant!
        stage.advance(by: .seconds(15), heard: [1])
        stage.ready(1)
        let planned = stage.commits(1).last!
        stage.advance(by: end - stage.now - .milliseconds(700), heard: [1])
        #expect(stage.command(.queue(.move(stage.ids[2], to: 1))) == .accepted)
        stage.list(entries(7...7), at: .next)
        stage.read(7, as: asset(9))
        #expect(!stage.withdrawn(1).contains(planned.id))
        #expect(
            stage.leader.session.queue.map(\.title) == ["item 1", "item 2", "item 9", "item 3"])
        stage.advance(by: .seconds(1), heard: [1])
        #expect(stage.leader.session.current == asset(2, seconds: 20))
    }

    @Test func `the playing item is removed: the next one begins`() {
        var stage = playing(3)
        stage.advance(by: .seconds(3), heard: [1])
        #expect(stage.command(.queue(.remove([stage.ids[0]]))) == .accepted)
        #expect(stage.sent.contains { if case .stop = $0.message { true } else { false } })
        #expect(stage.leader.session.queue.count == 2)
        stage.ready(1)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.leader.session.current == asset(2, seconds: 20))
        #expect(stage.leader.session.index == 0)
        #expect(stage.roomsQueue == stage.leader.session)
    }

    @Test func `everything is removed: it is silent, and what is added plays`() {
        var stage = playing(2)
        #expect(stage.command(.queue(.remove(stage.ids))) == .accepted)
        #expect(stage.leader.session.phase == .stopped)
        #expect(stage.leader.session.queue.isEmpty && stage.leader.session.index == 0)
        #expect(!stage.effects.contains(.ended), "who empties it is about to fill it")
        #expect(stage.effects.contains { if case .removed = $0 { true } else { false } })
        #expect(stage.command(.play) != .accepted)
        stage.list(entries(7...8), at: .end)
        stage.read(7, as: asset(7))
        stage.ready(1)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.leader.session.current == asset(7))
    }

    @Test func `clear leaves what plays`() {
        var stage = playing(4)
        stage.command(.next)
        stage.ready(1)
        let line = stage.leader.session.change
        #expect(stage.command(.queue(.clear)) == .accepted)
        #expect(stage.leader.session.queue == [asset(2, seconds: 20)])
        #expect(stage.leader.session.index == 0 && stage.leader.session.change == line)
    }

    @Test func `one item is repeated until somebody goes on`() {
        var stage = playing(2)
        #expect(stage.command(.queue(.repeating(.one))) == .accepted)
        for _ in 0..<3 {
            let end = stage.leader.session.endInstant!
            stage.advance(by: end - stage.now - .seconds(5), heard: [1])
            stage.ready(1)
            stage.advance(by: .seconds(6), heard: [1])
            #expect(stage.leader.session.index == 0)
            #expect(stage.leader.session.change?.instant == end)
        }
        stage.command(.next)
        stage.ready(1)
        #expect(stage.leader.session.index == 1)
    }

    @Test func `repeating the queue begins anew behind its last item, and off ends there`() {
        for mode in [RepeatMode.all, .off] {
            var stage = playing(2, loops: mode == .off)
            stage.command(.next)
            stage.ready(1)
            stage.command(.queue(.repeating(mode)))
            stage.advance(by: .seconds(15), heard: [1])
            stage.ready(1)
            stage.advance(by: .seconds(10), heard: [1])
            #expect(stage.leader.session.phase == (mode == .all ? .playing : .ended))
            #expect(stage.leader.session.index == (mode == .all ? 0 : 1))
        }
    }

    @Test func `an item that cannot be played is listed with its reason and left out`() {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        stage.list(entries(1...3), at: .end)
        stage.read(1, as: asset(1, seconds: 20))
        stage.ready(1)
        #expect(stage.leader.session.phase == .playing)
        stage.unplayable(2, "is no audio")
        stage.read(3, as: asset(3))
        #expect(stage.leader.session.queue == [asset(1, seconds: 20), asset(3)])
        let listing = stage.leader.listing(from: 0, count: 10)
        #expect(listing.items.map(\.state) == [.known, .unplayable, .known])
        #expect(listing.items[1].reason == "is no audio" && listing.items[1].title == "file 2")
        #expect(listing.current == 0 && listing.count == 3)
        stage.advance(by: .seconds(15), heard: [1])
        stage.ready(1)
        #expect(stage.commits(1).last?.hash == asset(3).hash)
        #expect(stage.command(.queue(.play(2))) != .accepted)
    }

    @Test func `the next item is waited for while it is read, and not one behind it played`() {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        stage.list(entries(1...3), at: .end)
        #expect(stage.leader.wanted(ahead: 24, most: 8) == [1, 2, 3])
        stage.read(1, as: asset(1, seconds: 5))
        stage.ready(1)
        stage.read(3, as: asset(3))
        stage.advance(by: .seconds(8), heard: [1])
        #expect(stage.leader.session.phase == .preparing)
        #expect(stage.leader.wanted(ahead: 24, most: 8) == [2])
        stage.read(2, as: asset(2))
        stage.ready(1)
        #expect(stage.leader.session.current == asset(2))
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `an item that is waited for and removed is not waited for any more`() {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        stage.list(entries(1...3), at: .end)
        stage.command(.queue(.remove([1, 2])))
        stage.read(3, as: asset(3))
        stage.ready(1)
        #expect(stage.leader.session.current == asset(3))
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `a queue that has been played goes on with what is added`() {
        var stage = playing(1)
        stage.advance(by: .seconds(25), heard: [1])
        #expect(stage.leader.session.phase == .ended)
        stage.list(entries(5...6), at: .end)
        stage.read(5, as: asset(5))
        stage.ready(1)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.leader.session.index == 1)
    }

    @Test func `an item that is not there any more is refused and changes nothing`() {
        var stage = playing(3)
        let before = stage.leader.listing(from: 0, count: 9)
        #expect(stage.command(.queue(.remove([stage.ids[1], 999]))) != .accepted)
        #expect(stage.command(.queue(.move(999, to: 0))) != .accepted)
        #expect(stage.command(.queue(.play(999))) != .accepted)
        #expect(stage.leader.listing(from: 0, count: 9) == before)
    }

    /// Whatever is asked, and however much rooms are behind: rooms have the leader's queue, what
    /// sounds is changed by nothing but its own removal and the transport, and what follows is what
    /// the queue says.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `random edits keep rooms and queue together`(seed: UInt64) {
        var chance = SplitMix64(seed: seed)
        var stage = playing(4, loops: seed % 2 == 0, links: [1, 2])
        var next: UInt64 = 100
        for _ in 0..<150 {
            stage.advance(
                by: .milliseconds(Int64.random(in: 0...4_000, using: &chance)), heard: [1, 2])
            let before = stage.leader.session
            let ids = stage.ids
            let some = ids.randomElement(using: &chance) ?? 0
            var mayInterrupt = false
            switch Int.random(in: 0..<12, using: &chance) {
            case 0:
                mayInterrupt = some == stage.currentID
                stage.command(.queue(.remove([some])))
            case 1, 2:
                stage.command(
                    .queue(.move(some, to: Int.random(in: 0...ids.count, using: &chance))))
            case 3: stage.command(.queue(.reorder(seed: chance.next())))
            case 4:
                stage.command(
                    .queue(.repeating(RepeatMode.allCases.randomElement(using: &chance)!)))
            case 5, 6, 7:
                let place: QueuePlace = [
                    .end, .next, .position(Int.random(in: 0...ids.count, using: &chance)),
                ].randomElement(using: &chance)!
                stage.list(entries(next...next + 1), at: place)
                stage.read(next, as: asset(next, seconds: 6))
                if Bool.random(using: &chance) {
                    stage.read(next + 1, as: asset(next + 1, seconds: 3))
                } else {
                    stage.unplayable(next + 1, "is no audio")
                }
                next += 2
            case 8:
                mayInterrupt = true
                stage.command(.queue(.play(some)))
            case 9:
                mayInterrupt = true
                stage.command([.next, .pause, .play].randomElement(using: &chance)!)
            default: break
            }
            let after = stage.leader.session
            if !mayInterrupt, before.phase == .playing, stage.leader.pending == nil {
                #expect(after.change == before.change && after.current == before.current)
            }
            for link in [1, 2] where Int.random(in: 0..<4, using: &chance) > 0 {
                stage.answerAll(link)
            }
            #expect(stage.roomsQueue == stage.leader.session)
            #expect(
                after.queue.isEmpty ? after.index == 0 : after.queue.indices.contains(after.index))
            if let follow = stage.leader.followUp {
                let isNear = follow.change.instant - stage.now < LeaderMachine.editLead
                #expect(
                    isNear
                        || stage.leader.queue.successor(of: stage.leader.session.index)
                            == .item(follow.index)
                )
            }
        }
        // It is not stuck: with something in the queue it plays, or plays again when asked to.
        stage.list(entries(9_000...9_000), at: .end)
        stage.read(9_000, as: asset(9_000))
        stage.command(.queue(.play(9_000)))
        for _ in 0..<3 { for link in [1, 2] { stage.answerAll(link) } }
        stage.advance(by: .seconds(1), heard: [1, 2])
        #expect(stage.leader.session.current == asset(9_000))
        #expect(stage.leader.session.phase == .playing)
    }
}

extension Stage {
    /// Of all items, in order.
    var ids: [QueueEntry.ID] { leader.listing(from: 0, count: 500).items.map(\.id) }

    var currentID: QueueEntry.ID? { leader.playingID }

    /// What a room makes of everything that the first link was told.
    var roomsQueue: SessionState? {
        var state: SessionState?
        for (message, link) in sent where link == 1 {
            switch message {
            case .state(let sent): state = sent
            case .queue(let change): state = state?.with(change)
            case .progress(let progress): state = state?.with(progress)
            default: break
            }
        }
        // A silence is told by itself, the rest of it with what is gone to next.
        return state
    }

    mutating func list(_ entries: [QueueEntry], at place: QueuePlace) {
        take(.listed(entries, at: place, coming: 0))
    }

    mutating func read(_ id: QueueEntry.ID, as asset: AssetDescriptor) {
        take(.read(id, as: asset))
    }

    mutating func unplayable(_ id: QueueEntry.ID, _ reason: String) {
        take(.unplayable(id, reason: reason))
    }

    /// Says ready to whatever the room was asked and has not answered.
    mutating func answerAll(_ link: LinkID) {
        for order in preparations(link).suffix(6) {
            receive(.ready(preparation: order.id, latency: .milliseconds(20)), from: link)
        }
    }
}

@Suite struct `Requests to a queue` {
    /// A message to a leader has 16 KiB.
    @Test func `however much is added, each part fits a message, and all of it is in its order`() {
        let locations = (0..<3_000).map { "/music/some folder/a longer name of a track \($0).flac" }
        for place in [QueuePlace.end, .next, .position(3)] {
            let parts = QueueAddition(locations: locations, place: place).parts
            #expect(parts.count > 1)
            for part in parts {
                #expect(part.locations.reduce(0) { $0 + $1.utf8.count } <= QueueAddition.mostBytes)
                #expect(part.locations.count <= QueueAddition.mostLocations)
            }
            var queue: [String] = []
            for part in parts {
                queue.insert(contentsOf: part.locations, at: place == .end ? queue.count : 0)
            }
            #expect(queue == locations)
        }
    }
}
