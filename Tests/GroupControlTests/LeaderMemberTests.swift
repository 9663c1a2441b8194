import Testing
import Timing

@testable import GroupControl

@Suite struct `Rooms come and go` {
    @Test func `a room that joins while the line runs gets it to itself`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(5), heard: [1])
        stage.hello(2, "bath")
        let order = stage.sent.filter { $0.link == 2 }.map(\.message)
        guard case .welcome = order[0], case .settings = order[1], case .state = order[2],
            case .prepare(let preparation) = order[3]
        else {
            Issue.record("\(order)")
            return
        }
        #expect(preparation.change == stage.leader.session.change)
        stage.ready(2)
        #expect(stage.commits(2).map(\.change) == [stage.leader.session.change])
        #expect(stage.commits(1).count == 1)
    }

    @Test func `a joiner does not hold up a seek of the others`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(5), heard: [1])
        stage.hello(2, "bath")
        stage.command(.seek(seconds: 30))
        stage.ready(1)
        #expect(stage.commits(1).last?.change.itemFrame == 1_323_000)
    }

    @Test func `a second living room of the same name is told to choose another`() {
        var stage = Stage.playing()
        stage.hello(2, "room 1")
        #expect(stage.effects.contains(.close(2)))
        guard case .refused(let reason)? = stage.sent.last(where: { $0.link == 2 })?.message else {
            Issue.record("not refused")
            return
        }
        #expect(reason.contains("--name"))
        #expect(stage.leader.status(at: stage.now).rooms.count == 1)
    }

    @Test func `a restarted room replaces its silent old link`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(4))
        stage.hello(2, "room 1")
        #expect(stage.effects.contains(.close(1)))
        stage.ready(2)
        #expect(stage.commits(2).count == 1)
    }

    @Test func `the same process on a new link replaces the old one at once`() {
        var stage = Stage.playing()
        stage.hello(2, "room 1", instance: 1)
        #expect(stage.effects.contains(.close(1)))
        #expect(!stage.effects.contains(.close(2)))
    }

    @Test func `a silent room is lost, not waited for, and welcome again`() {
        var stage = Stage.playing(links: [1, 2])
        stage.advance(by: .seconds(6), heard: [1])
        #expect(stage.leader.status(at: stage.now).rooms.map(\.state) == [.joining, .lost])
        stage.command(.seek(seconds: 10))
        stage.ready(1)
        #expect(stage.commits(1).last?.change.itemFrame == 441_000)
        stage.receive(.report(stage.report), from: 2)
        stage.ready(2)
        #expect(stage.commits(2).last?.change == stage.leader.session.change)
        stage.advance(by: .seconds(40), heard: [1])
        #expect(stage.effects.contains(.close(2)))
    }

    @Test func `no more rooms than the limit`() {
        var stage = Stage(configuration())
        for link in 0..<300 { stage.hello(link, "room \(link)") }
        #expect(stage.leader.status(at: stage.now).rooms.count == LeaderMachine.mostMembers)
    }

    @Test func `in a full group who says nothing makes room, who speaks stays`() {
        var stage = Stage.playing()
        for number in 2...LeaderMachine.mostMembers {
            stage.hello(LinkID(number), "guest \(number)", hasOutput: false)
        }
        let newcomer = LinkID(LeaderMachine.mostMembers + 1)
        stage.hello(newcomer, "bath")
        #expect(stage.effects.contains(.close(newcomer)), "nobody was silent yet")
        // Room 1 reports; the others said hello and nothing more.
        stage.advance(by: .seconds(4), heard: [1])
        stage.hello(newcomer + 1, "bath")
        let rooms = stage.leader.status(at: stage.now).rooms.map(\.name)
        #expect(rooms.count == LeaderMachine.mostMembers)
        #expect(rooms.contains("bath") && rooms.contains("room 1"))
        #expect(!stage.effects.contains(.close(newcomer + 1)))
    }
}
