import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `Pause, seek, next and stop` {
    @Test func `pause and play are common instants and lose no frame`() {
        var stage = Stage.playing(links: [1, 2])
        stage.advance(by: .seconds(3), heard: [1, 2])
        stage.command(.pause)
        let pause = stage.commits(1).last!
        #expect(pause.isPause)
        #expect(pause.id == stage.commits(1)[0].id)
        #expect(pause.change.instant > stage.now)
        #expect(pause.change.instant - stage.now < .milliseconds(80))
        // The paused frame lies on the line that was running, to half a frame.
        let line = stage.commits(1)[0].change
        let there = line.itemFrame(at: pause.change.instant, sampleRate: 44_100)
        #expect((there - Double(pause.change.itemFrame)).magnitude < 0.5)
        #expect(stage.commits(2).last?.change == pause.change)

        // Rooms preroll there at once, so that play is immediate.
        #expect(stage.preparations(1).last?.itemFrame == pause.change.itemFrame)
        stage.ready(1)
        stage.ready(2)
        #expect(stage.commits(1).count == 2)
        stage.advance(by: .seconds(1), heard: [1, 2])
        stage.command(.play)
        let resume = stage.commits(1).last!
        #expect(stage.commits(1).count == 3)
        #expect(resume.change.itemFrame == pause.change.itemFrame)
        #expect(resume.change.instant - stage.now < .milliseconds(80))
        #expect(resume.change.instant > stage.now)
    }

    @Test func `play right after pause never starts before the pause`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(3), heard: [1])
        stage.command(.pause)
        stage.ready(1, latency: .zero)
        stage.command(.play)
        let commits = stage.commits(1)
        #expect(commits.count == 3)
        #expect(commits[2].change.instant >= commits[1].change.instant)
    }

    @Test func `a seek leaves the line running until every room is ready`() {
        var stage = Stage.playing(links: [1, 2])
        let line = stage.leader.session.change
        stage.advance(by: .seconds(2), heard: [1, 2])
        stage.command(.seek(seconds: 30))
        #expect(stage.leader.session.change == line)
        stage.ready(1)
        #expect(stage.leader.session.change == line)
        stage.ready(2)
        let change = stage.commits(1).last!.change
        #expect(change.itemFrame == 1_323_000)
        #expect(change.instant > stage.now)
        #expect(stage.commits(2).last?.change == change)
        #expect(stage.leader.session.change == change)
    }

    @Test func `of several seeks only the newest is committed`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(2), heard: [1])
        var old: [UInt64] = []
        for seconds in [10.0, 20, 40] {
            stage.command(.seek(seconds: seconds))
            old.append(stage.preparations(1).last!.id)
        }
        // Late answers to the first two.
        for id in old { stage.receive(.ready(preparation: id, latency: .zero), from: 1) }
        #expect(stage.commits(1).map(\.change.itemFrame) == [0, 40 * 44_100])
        #expect(stage.withdrawn(1) == Array(old.dropLast()))
    }

    @Test func `a seek while paused stays paused at the new place`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(2), heard: [1])
        stage.command(.pause)
        stage.command(.seek(seconds: 12))
        stage.ready(1)
        #expect(stage.leader.session.phase == .paused)
        #expect(stage.commits(1).count == 2)
        #expect(stage.leader.status(at: stage.now + .seconds(9)).positionSeconds == 12)
        stage.command(.play)
        #expect(stage.commits(1).last?.change.itemFrame == 529_200)
    }

    @Test func `pause during a seek stands by at the target`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(2), heard: [1])
        stage.command(.seek(seconds: 30))
        stage.command(.pause)
        #expect(stage.commits(1).last?.isPause == true)
        stage.ready(1)
        #expect(stage.commits(1).count == 2)
        #expect(stage.leader.session.phase == .paused)
        stage.command(.play)
        #expect(stage.commits(1).last?.change.itemFrame == 1_323_000)
    }

    /// The far edge is a second before the end: 60 × 44 100 − 44 100.
    @Test(arguments: [-5, 1e9, 59.99])
    func `a seek outside of the item goes to its edge`(seconds: Double) {
        let frame: Int64 = seconds < 0 ? 0 : 2_601_900
        var stage = Stage.playing()
        stage.command(.seek(seconds: seconds))
        #expect(stage.preparations(1).last?.itemFrame == frame)
    }

    @Test func `commands that cannot be done are refused and change nothing`() {
        var stage = Stage.playing()
        let session = stage.leader.session
        let count = stage.effects.count
        for command in [
            .seek(seconds: .nan), .seek(seconds: .infinity), .next,
            .volume(room: nil, percent: 101), .volume(room: nil, percent: -1),
            .volume(room: room("nowhere"), percent: 5), .mute(room: room("nowhere"), muted: true),
        ] as [GroupCommand] {
            guard case .refused(let reason) = stage.command(command) else {
                Issue.record("\(command) was accepted")
                continue
            }
            #expect(!reason.isEmpty)
        }
        #expect(stage.leader.session == session)
        #expect(stage.effects.count == count)
        guard case .refused(let reason) = stage.command(.volume(room: room("x"), percent: 5)) else {
            return
        }
        #expect(reason.contains("room 1"), "names the rooms there are")
    }

    @Test func `repeating a command is accepted and says nothing new to the rooms`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(1), heard: [1])
        for command in [.play, .pause, .stop] as [GroupCommand] {
            stage.command(command)
            let count = stage.effects.count
            #expect(stage.command(command) == .accepted)
            #expect(stage.effects.count == count, "\(command)")
        }
    }

    @Test func `next while playing switches at a common instant and cuts the old item off`() {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2)]))
        stage.command(.next)
        #expect(stage.leader.session.index == 0)
        stage.ready(1)
        #expect(stage.leader.session.index == 1)
        let commit = stage.commits(1).last!
        #expect(commit.hash == asset(2).hash)
        #expect(!commit.following)
        #expect(commit.change.instant > stage.now)
    }

    @Test func `a command needs the bytes of the item that it goes to, or none`() {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2)]))
        func needed(_ command: GroupCommand) -> AssetDescriptor? {
            stage.leader.needed(for: command, at: stage.now)
        }
        let seeks = [GroupCommand.seek(seconds: 1), .seekBy(seconds: 1), .seekTo(share: 0.5)]
        for seek in seeks { #expect(needed(seek) == asset(1)) }
        #expect(needed(.previous) == asset(1))
        // One that cannot be played is passed over.
        for command in [GroupCommand.next, .play, .pause, .stop] { #expect(needed(command) == nil) }
        stage.command(.next)
        for seek in seeks { #expect(needed(seek) == asset(2), "where it is about to be") }
        #expect(needed(.previous) == asset(1))
        stage.ready(1)
        stage.advance(by: .seconds(5), heard: [1])
        #expect(needed(.previous) == asset(2))
        stage.command(.stop)
        for command in seeks + [.previous, .play] { #expect(needed(command) == nil) }
        var single = Stage.playing()
        single.command(.stop)
        #expect(single.leader.needed(for: .play, at: single.now) == asset(1))
    }

    /// Who stands by has the bytes; who failed at it would be silent while others play.
    @Test func `play after a pause needs the bytes where a room does not stand by`() {
        var stage = Stage.playing(links: [1, 2])
        stage.advance(by: .seconds(3), heard: [1, 2])
        stage.command(.pause)
        func needed() -> AssetDescriptor? { stage.leader.needed(for: .play, at: stage.now) }
        #expect(needed() == asset(1), "nobody has answered yet")
        stage.ready(1)
        stage.ready(2)
        #expect(needed() == nil)
        stage.command(.seek(seconds: 9))
        stage.ready(1)
        let offer = stage.preparations(2).last!
        stage.receive(.notReady(preparation: offer.id, reason: "its file is gone"), from: 2)
        #expect(needed() == asset(1))
        // The file is back: whoever failed is asked again, and nobody starts without it.
        stage.command(.play)
        let again = stage.preparations(2).last!
        #expect(again.id != offer.id && again.itemFrame == offer.itemFrame)
        #expect(stage.leader.session.phase != .playing, "the others wait for it")
        stage.ready(2)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.commits(1).last?.change == stage.commits(2).last?.change)
    }

    @Test func `stop silences everybody, and play begins the same item at its beginning`() {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2), asset(3)]))
        stage.command(.next)
        stage.ready(1)
        stage.advance(by: .seconds(5), heard: [1])
        stage.command(.stop)
        #expect(stage.sent.contains { $0.message == .stop })
        #expect(stage.leader.session.change == nil)
        #expect(stage.command(.pause) != .accepted)
        #expect(stage.command(.seek(seconds: 1)) != .accepted)
        let (status, listing) = (
            stage.leader.status(at: stage.now), stage.leader.listing(from: 0, count: 9)
        )
        #expect(status.index == 1 && status.title == "item 2" && status.positionSeconds == 0)
        #expect(listing.current == 1 && listing.phase == .stopped)
        #expect(stage.leader.destination(of: .play, at: stage.now) == asset(2))
        stage.command(.play)
        #expect(stage.preparations(1).last?.asset == asset(2))
        #expect(stage.preparations(1).last?.itemFrame == 0)
        stage.ready(1)
        #expect(stage.leader.session.phase == .playing && stage.leader.session.index == 1)
    }

    @Test func `what is heard is the current one until the next one is`() {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2)]))
        stage.command(.next)
        #expect(stage.leader.listing(from: 0, count: 9).current == 0, "it is being prepared")
        stage.ready(1)
        stage.advance(by: .seconds(5), heard: [1])
        #expect(stage.leader.listing(from: 0, count: 9).current == 1)
    }

    @Test func `the place in the queue stays through a stop, whatever is edited meanwhile`() {
        var stage = Stage.playing(configuration(queue: (1...4).map { asset($0) }))
        stage.command(.queue(.play(stage.ids[2])))
        stage.ready(1)
        stage.command(.stop)
        stage.list([QueueEntry(id: 9, name: "next")], at: .next)
        stage.command(.queue(.remove([stage.ids[0]])))
        stage.read(9, as: asset(9))
        #expect(
            stage.leader.session.queue.map(\.title) == ["item 2", "item 3", "item 9", "item 4"])
        stage.command(.queue(.reorder(seed: 5)))
        #expect(stage.leader.session.queue.prefix(2).map(\.title) == ["item 2", "item 3"])
        stage.command(.play)
        #expect(stage.preparations(1).last?.asset == asset(3))
        stage.ready(1)
        // Where it is removed, what comes behind it is begun.
        stage.command(.stop)
        let behind = stage.leader.session.queue[2]
        stage.command(.queue(.remove([stage.ids[1]])))
        stage.command(.play)
        #expect(stage.preparations(1).last?.asset == behind)
    }

    @Test(arguments: [
        (0, "this is the last item; use stop to end it"),
        (1, "the only item after this one cannot be played; tutti queue says why"),
        (2, "none of the 2 items after this one can be played; tutti queue says why"),
    ])
    func `next says whether nothing comes, or nothing that can be played`(
        bad: Int, reason: String
    ) {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        stage.list((0...bad).map { QueueEntry(id: UInt64($0 + 1), name: "\($0)") }, at: .end)
        stage.read(1, as: asset(1))
        stage.ready(1)
        for id in 0..<bad { stage.unplayable(UInt64(id + 2), "is no audio") }
        #expect(stage.command(.next) == .refused(reason: reason))
    }

    @Test func `what a pause is to go on with, and is still read, is what next went to`() {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        stage.list((1...2).map { QueueEntry(id: $0, name: "file \($0)") }, at: .end)
        stage.read(1, as: asset(1))
        stage.ready(1)
        stage.command(.pause)
        stage.command(.next)
        let effect = stage.leader.effect(of: .next, at: stage.now)
        #expect(effect.phase == .paused && effect.title == "file 2" && effect.instant == nil)
        stage.read(2, as: asset(2))
        #expect(stage.leader.effect(of: .next, at: stage.now).title == asset(2).title)
    }

    @Test func `an empty queue is called empty, whatever is asked of it`() {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        for command in [.play, .pause, .next, .previous, .seek(seconds: 1)] as [GroupCommand] {
            #expect(
                stage.command(command)
                    == .refused(reason: "the queue is empty; add something with tutti add FILE"))
        }
        // One of which nothing can be played is not.
        stage.list([QueueEntry(id: 1, name: "a")], at: .end)
        stage.unplayable(1, "is no audio")
        guard case .refused(let reason) = stage.command(.play) else {
            Issue.record("there is nothing to play")
            return
        }
        #expect(reason.hasPrefix("nothing in the queue can be played"))
    }

    @Test func `after a queue that was played to its end, and after a failure, it begins anew`() {
        var stage = Stage.playing(
            configuration(queue: [asset(1, seconds: 3), asset(2, seconds: 3)]))
        stage.ready(1)
        stage.advance(by: .seconds(20), heard: [1])
        #expect(stage.leader.session.phase == .ended && stage.leader.session.index == 1)
        stage.command(.stop)
        stage.command(.play)
        #expect(stage.preparations(1).last?.asset == asset(1, seconds: 3))
    }

    @Test func `volume survives a reconnect and reaches rooms that come later`() throws {
        var stage = Stage.playing(links: [1, 2])
        stage.command(.volume(room: nil, percent: 30))
        stage.command(.volume(room: room("room 1"), percent: 55))
        stage.command(.mute(room: room("room 1"), muted: true))
        stage.close(1)
        stage.hello(3, "room 1")
        stage.hello(4, "attic")
        let settings = { (link: LinkID) in
            stage.sent.compactMap {
                if case .settings(let value) = $0.message, $0.link == link { value } else { nil }
            }.last
        }
        #expect(settings(3) == (try RoomSettings(volume: 55, muted: true, groupVolume: 30)))
        #expect(stage.leader.status(at: stage.now).volume == 30)
        #expect(settings(4) == (try RoomSettings(volume: 100, muted: false, groupVolume: 30)))
    }
}
