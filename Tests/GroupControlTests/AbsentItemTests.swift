import Testing
import TuttiTiming

@testable import TuttiGroupControl

/// What another machine put into the queue, while that machine is away.
@Suite struct `Items whose machine is away` {
    private static let gone = "who put it into the queue is gone, and no room has all of it"

    private func items(_ stage: Stage) -> [QueueListing.Item] {
        stage.leader.listing(from: 0, count: 9).items
    }

    /// Three items of 20 s, the first of which plays; no room can fetch the second.
    private func withoutSecond() -> Stage {
        var stage = Stage.playing(
            configuration(queue: (1...3).map { asset($0, seconds: 20) }))
        stage.command(.next)
        for _ in 0..<LeaderMachine.mostAttempts {
            stage.receive(
                .notReady(
                    preparation: stage.preparations(1).last!.id, reason: "item 2: \(Self.gone)"),
                from: 1)
            stage.advance(by: .seconds(3), heard: [1])
        }
        return stage
    }

    @Test func `one that no room could fetch is listed with the reason, and the others are not`() {
        let stage = withoutSecond()
        #expect(stage.preparations(1).last?.asset == asset(3, seconds: 20))
        #expect(items(stage).map(\.reason) == [nil, Self.gone, nil])
        #expect(items(stage).map(\.state) == [.known, .known, .known])
    }

    @Test func `it plays when its machine is back, and is marked no more`() {
        var stage = withoutSecond()
        stage.ready(1)
        #expect(stage.leader.session.current == asset(3, seconds: 20))
        let revision = stage.leader.queueRevision
        #expect(stage.command(.queue(.play(stage.ids[1]))) == .accepted)
        stage.ready(1)
        #expect(stage.leader.session.current == asset(2, seconds: 20))
        #expect(stage.leader.session.phase == .playing)
        #expect(items(stage).map(\.reason) == [nil, nil, nil])
        #expect(stage.leader.queueRevision > revision, "who looks again sees it")
    }

    @Test func `the mark goes over to the next leader`() {
        let stage = withoutSecond()
        let next = LeaderMachine(
            configuration(queue: [], term: 8), resuming: stage.leader.session,
            stage.leader.handover, at: stage.now)
        #expect(next.listing(from: 0, count: 9).items.map(\.reason) == [nil, Self.gone, nil])
    }

    @Test func `one that plays and starves is left for the next, and can be gone back to`() {
        var stage = Stage.playing(
            configuration(queue: (1...2).map { asset($0, seconds: 20) }))
        let first = stage.ids[0]
        stage.take(.absent([first], reason: "its file went with bath"))
        #expect(stage.sent.contains { $0.message == .stop })
        stage.ready(1)
        #expect(stage.leader.session.current == asset(2, seconds: 20))
        #expect(items(stage)[0].reason == "its file went with bath")
        #expect(stage.command(.queue(.play(first))) == .accepted)
        stage.ready(1)
        #expect(stage.leader.session.current == asset(1, seconds: 20))
    }

    /// Only that machine can read it.
    @Test func `one that nobody has read is passed over until its machine has read it`() {
        var stage = Stage(configuration(queue: []))
        stage.hello(1, "kitchen")
        stage.list((1...4).map { QueueEntry(id: $0, name: "file \($0)") }, at: .end)
        stage.read(1, as: asset(1, seconds: 5))
        stage.ready(1)
        stage.read(3, as: asset(3))
        stage.advance(by: .seconds(8), heard: [1])
        #expect(stage.leader.awaitedID == 2)
        stage.take(.absent([2], reason: "its file went with bath"))
        stage.ready(1)
        #expect(stage.leader.session.current == asset(3))
        #expect(items(stage)[1].state == .unread)
        #expect(items(stage)[1].reason == "its file went with bath")
        #expect(
            stage.command(.queue(.play(2)))
                == .refused(reason: "\"file 2\" cannot be played now: its file went with bath"))
        // What can be read is not held up by it, however little is asked for.
        #expect(stage.leader.wanted(ahead: 24, most: 1) == [4])
        #expect(stage.leader.wanted(ahead: 24, most: 8) == [4, 2])
        stage.read(2, as: asset(2))
        #expect(items(stage)[1].reason == nil)
        #expect(stage.command(.queue(.play(2))) == .accepted)
        stage.ready(1)
        #expect(stage.leader.session.current == asset(2))
    }
}
