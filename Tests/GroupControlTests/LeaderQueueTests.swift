import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `A queue that is still being read` {
    private func growing(
        _ known: [AssetDescriptor] = [], coming: Int, rooms: Int = 1, loops: Bool = false
    ) -> LeaderConfiguration {
        var configuration = configuration(queue: known, rooms: rooms, loops: loops)
        configuration.coming = coming
        return configuration
    }

    @Test func `rooms join before anything is known, and the first item starts it`() {
        var stage = Stage(growing(coming: 3, rooms: 2))
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        #expect(stage.leader.session.phase == .waiting)
        #expect(stage.leader.status(at: stage.now).detail == "the first item is still being read")
        #expect(stage.leader.status(at: stage.now).count == 3)
        #expect(stage.command(.seek(seconds: 3)) != .accepted)
        stage.describe([asset(1)], coming: 2)
        stage.ready(1)
        #expect(stage.leader.session.phase != .playing)
        stage.ready(2)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.leader.session.current == asset(1))
        #expect(stage.leader.status(at: stage.now).count == 3)
    }

    @Test func `every room has the queue that the leader has`() {
        var stage = Stage(growing(coming: 3))
        stage.hello(1, "kitchen")
        stage.describe([asset(1)], coming: 2)
        stage.describe([asset(2), asset(3)], coming: 0)
        var state: SessionState?
        for case .state(let sent) in stage.sent.map(\.message) { state = sent }
        for message in stage.sent.map(\.message) {
            if case .queue(let change) = message { state = state?.with(change) }
            if case .progress(let progress) = message { state = state?.with(progress) ?? state }
        }
        #expect(state?.queue == [asset(1), asset(2), asset(3)])
        #expect(state == stage.leader.session)
    }

    /// However late, if there is time to prepare it.
    @Test(arguments: [15_000, 6_000, 1_500, 300] as [Int64])
    func `an item that becomes known in time joins without a gap`(millisecondsLeft: Int64) {
        let first = asset(1, seconds: 20.000_01)
        var stage = Stage.playing(growing([first], coming: 1))
        let end = stage.leader.session.endInstant!
        stage.advance(by: end - stage.now - .milliseconds(millisecondsLeft), heard: [1])
        stage.describe([asset(2)], coming: 0)
        stage.advance(by: .milliseconds(max(1, millisecondsLeft - 10_000)), heard: [1])
        #expect(stage.preparations(1).last?.asset == asset(2))
        stage.ready(1)
        let next = stage.commits(1).last!
        #expect(next.following)
        #expect(next.change == RateChange(itemFrame: 0, instant: end, rate: 1))
        stage.advance(by: .seconds(16), heard: [1])
        #expect(stage.leader.session.index == 1)
        #expect(stage.leader.session.change == next.change)
    }

    @Test func `an item that becomes known too late is heard from its beginning`() {
        var stage = Stage.playing(growing([asset(1, seconds: 5)], coming: 1))
        let end = stage.leader.session.endInstant!
        stage.advance(by: end - stage.now - .milliseconds(20), heard: [1])
        stage.describe([asset(2)], coming: 0)
        stage.advance(by: .milliseconds(200), heard: [1])
        stage.ready(1)
        let next = stage.commits(1).last!
        #expect(next.index == 1)
        #expect(next.change.itemFrame == 0)
        #expect(next.change.instant > stage.now)
    }

    @Test func `the session waits for what is being read, and ends when nothing comes of it`() {
        for comes in [true, false] {
            var stage = Stage.playing(growing([asset(1, seconds: 5)], coming: 2))
            stage.advance(by: .seconds(20), heard: [1])
            #expect(stage.leader.session.phase == .preparing)
            #expect(!stage.effects.contains(.ended))
            let detail = stage.leader.status(at: stage.now).detail
            #expect(detail == "the next item is still being read")
            stage.describe([], coming: 1)
            #expect(!stage.effects.contains(.ended))
            stage.describe(comes ? [asset(3)] : [], coming: 0)
            if comes {
                stage.ready(1)
                #expect(stage.leader.session.phase == .playing)
                #expect(stage.leader.session.index == 1)
            } else {
                #expect(stage.leader.session.phase == .ended)
                #expect(stage.effects.count { $0 == .ended } == 1)
            }
        }
    }

    @Test func `a queue of which nothing is left has ended`() {
        var stage = Stage(growing(coming: 2))
        stage.hello(1, "kitchen")
        stage.describe([], coming: 1)
        #expect(!stage.effects.contains(.ended))
        stage.describe([], coming: 0)
        #expect(stage.leader.session.phase == .stopped)
        #expect(stage.effects.count { $0 == .ended } == 1)
    }

    @Test func `a loop begins again only behind the last item`() {
        var stage = Stage.playing(growing([asset(1, seconds: 5)], coming: 1, loops: true))
        stage.advance(by: .seconds(3), heard: [1])
        // Nothing of item 1 is prepared again while item 2 is being read.
        #expect(stage.preparations(1).count == 1)
        stage.describe([asset(2, seconds: 5)], coming: 0)
        stage.ready(1)
        stage.advance(by: .seconds(4), heard: [1])
        stage.ready(1)
        #expect(stage.preparations(1).map(\.asset.title) == ["item 1", "item 2", "item 1"])
    }

    @Test func `next waits for an item that is being read while the current one plays on`() {
        var stage = Stage.playing(growing([asset(1)], coming: 2))
        let line = stage.leader.session.change
        #expect(stage.command(.next) == .accepted)
        #expect(stage.leader.session.change == line)
        stage.describe([asset(2)], coming: 1)
        stage.ready(1)
        #expect(stage.leader.session.current == asset(2))
        #expect(stage.leader.session.phase == .playing)
        #expect(!stage.commits(1).last!.following)
    }

    @Test func `pause and play while the first item is being read`() {
        var stage = Stage(growing(coming: 1))
        stage.hello(1, "kitchen")
        #expect(stage.command(.pause) == .accepted)
        stage.describe([asset(1)], coming: 0)
        stage.ready(1)
        #expect(stage.leader.session.phase == .paused)
        #expect(stage.commits(1).isEmpty)
        stage.command(.play)
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `an item that no room can play is left behind also at the end of what is known`() {
        var stage = Stage(growing([asset(1)], coming: 1))
        stage.hello(1, "kitchen")
        for _ in 0..<LeaderMachine.mostAttempts {
            stage.receive(
                .notReady(preparation: stage.preparations(1).last!.id, reason: "bad"), from: 1)
            stage.advance(by: .seconds(3), heard: [1])
        }
        #expect(stage.skipped == [asset(1)])
        stage.describe([asset(2)], coming: 0)
        stage.ready(1)
        #expect(stage.leader.session.current == asset(2))
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `no more than the longest queue is taken`() {
        var stage = Stage(growing(coming: 20_000))
        stage.describe(Array(repeating: asset(1), count: 20_000), coming: 7)
        #expect(stage.leader.session.queue.count == SessionState.longestQueue)
        #expect(stage.leader.coming == 0)
    }
}

@Suite struct `An item whose file is written anew` {
    let queue = [asset(1, seconds: 60), asset(2, seconds: 60), asset(3, seconds: 60)]

    @Test func `it goes on in the new bytes where it was, in every room`() {
        var stage = Stage.playing(configuration(queue: queue, rooms: 2), links: [1, 2])
        let line = stage.leader.session.change!
        stage.advance(by: .seconds(20), heard: [1, 2])
        let anew = asset(9, seconds: 60, sampleRate: 48_000)
        let there = stage.leader.session.itemFrame(at: stage.now) / 44_100
        stage.change(queue[0].hash, to: anew)
        // What sounds goes on until the new bytes are there.
        #expect(stage.leader.session.change == line)
        stage.ready(1)
        stage.ready(2)
        for link in [1, 2] {
            let commit = stage.commits(link).last!
            #expect(commit.hash == anew.hash)
            #expect(abs(Double(commit.change.itemFrame) / 48_000 - there) < 0.001)
            #expect(commit.change == stage.leader.session.change)
        }
        #expect(stage.leader.session.queue == [anew, queue[1], queue[2]])
    }

    @Test func `without any sound in it all rooms go on with the next at once`() {
        var stage = Stage.playing(configuration(queue: queue, rooms: 2), links: [1, 2])
        stage.advance(by: .seconds(20), heard: [1, 2])
        stage.change(queue[0].hash, to: nil)
        for link in [1, 2] {
            #expect(stage.sent.contains { $0.message == .stop && $0.link == link })
            stage.ready(link)
        }
        #expect(stage.leader.session.queue == Array(queue[1...]))
        #expect(stage.leader.session.current == queue[1])
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `the next item is prepared again, and still joins without a gap`() {
        for anew in [asset(9), nil] {
            var stage = Stage.playing(configuration(queue: queue))
            stage.advance(by: .seconds(55), heard: [1])
            stage.ready(1)
            let old = stage.commits(1).last!
            #expect(old.hash == queue[1].hash)
            stage.change(queue[1].hash, to: anew)
            #expect(stage.withdrawn(1).contains(old.id))
            stage.ready(1)
            let next = stage.commits(1).last!
            #expect(next.hash == (anew ?? queue[2]).hash)
            #expect(next.following)
            #expect(next.change == old.change)
        }
    }

    @Test func `an item that is over or far away disturbs nothing`() {
        var stage = Stage.playing(configuration(queue: queue))
        stage.command(.next)
        stage.ready(1)
        let line = stage.leader.session.change
        let count = stage.preparations(1).count
        stage.change(queue[2].hash, to: asset(9))
        stage.change(queue[0].hash, to: nil)
        #expect(stage.leader.session.change == line)
        #expect(stage.leader.session.current == queue[1])
        #expect(stage.leader.session.queue == [queue[1], asset(9)])
        #expect(stage.preparations(1).count == count)
    }

    @Test func `while paused it stands by in the new bytes`() {
        var stage = Stage.playing(configuration(queue: queue))
        stage.advance(by: .seconds(20), heard: [1])
        stage.command(.pause)
        stage.ready(1)
        stage.change(queue[0].hash, to: asset(9, seconds: 60))
        let order = stage.preparations(1).last!
        #expect(order.asset == asset(9, seconds: 60))
        #expect(order.itemFrame > 19 * 44_100)
        stage.ready(1)
        #expect(stage.leader.session.phase == .paused)
        stage.command(.play)
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `the last item that goes ends the session`() {
        var stage = Stage.playing(configuration(queue: [asset(1)]))
        stage.change(asset(1).hash, to: nil)
        #expect(stage.leader.session.queue.isEmpty)
        #expect(stage.effects.count { $0 == .ended } == 1)
        #expect(stage.sent.contains { $0.message == .stop })
    }
}

/// A disk that goes while it is read from.
@Suite struct `An item that breaks off` {
    let queue = [asset(1, seconds: 60), asset(2, seconds: 60)]

    private func playing(_ queue: [AssetDescriptor]) -> Stage {
        var stage = Stage.playing(configuration(queue: queue, rooms: 2), links: [1, 2])
        stage.advance(by: .seconds(5), heard: [1, 2])
        return stage
    }

    /// The line breaks, and each preparation that it is offered again.
    private func breakLine(_ stage: inout Stage, of links: [LinkID]) {
        for _ in 0..<LeaderMachine.mostAttempts {
            for link in links {
                let line = stage.leader.members.first { $0.link == link }?.line
                guard let line, line.standing != .failed else { continue }
                stage.receive(
                    .notReady(preparation: line.id, reason: "cannot be read"), from: link)
            }
            stage.advance(by: .seconds(3), heard: [1, 2])
        }
    }

    @Test func `in every room is left, and counts as one that failed`() {
        var stage = playing(queue)
        breakLine(&stage, of: [1, 2])
        #expect(stage.skipped == [queue[0]])
        stage.ready(1)
        stage.ready(2)
        #expect(stage.leader.session.current == queue[1])
        #expect(stage.leader.session.phase == .playing)
        // What had failed is no word about what plays now.
        #expect(stage.leader.status(at: stage.now).detail == nil)
    }

    /// A laptop that sleeps now and then, a share that is away for a moment.
    @Test func `now and then, and is mended, goes on to its end`() {
        var stage = playing([asset(1, seconds: 3_600), queue[1]])
        let line = stage.leader.session.change
        for _ in 0..<2 * LeaderMachine.mostAttempts {
            for link in [1, 2] as [LinkID] {
                let broken = stage.leader.members.first { $0.link == link }?.line
                stage.receive(
                    .notReady(preparation: broken?.id ?? 0, reason: "cannot be read"), from: link)
            }
            stage.advance(by: .seconds(3), heard: [1, 2])
            for link in [1, 2] as [LinkID] { stage.ready(link) }
            stage.advance(by: .seconds(120), heard: [1, 2])
        }
        #expect(stage.skipped.isEmpty)
        #expect(stage.leader.session.change == line)
        #expect(stage.leader.members.allSatisfy { $0.isOnLine })
    }

    @Test func `while another one was asked for and is being read, waits for that`() {
        var stage = playing(queue)
        stage.take(.listed([QueueEntry(id: 77, name: "late")], at: .end, coming: 0))
        stage.command(.queue(.play(77)))
        breakLine(&stage, of: [1, 2])
        #expect(stage.skipped == [queue[0]])
        #expect(stage.leader.awaitedID == 77)
    }

    @Test func `in some rooms goes on in the others`() {
        var stage = playing(queue)
        let line = stage.leader.session.change
        breakLine(&stage, of: [2])
        #expect(stage.skipped.isEmpty)
        #expect(stage.leader.session.change == line)
    }

    @Test func `and was the last one ends the session, with its reason`() {
        var stage = playing([queue[0]])
        breakLine(&stage, of: [1, 2])
        #expect(stage.skipped == [queue[0]])
        #expect(stage.effects.count { $0 == .ended } == 1)
        #expect(stage.leader.session.phase == .ended)
        #expect(stage.leader.status(at: stage.now).detail?.contains("cannot be read") == true)
    }
}
