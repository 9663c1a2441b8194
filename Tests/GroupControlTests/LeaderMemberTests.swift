import Testing
import TuttiTiming

@testable import TuttiGroupControl

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

    @Test func `a second living room of the same name is called otherwise, and both are told`() {
        var stage = Stage.playing()
        stage.hello(2, "room 1")
        #expect(!stage.effects.contains(.close(1)) && !stage.effects.contains(.close(2)))
        #expect(welcome(2, stage)?.room == room("room 1 (2)"))
        #expect(
            stage.effects.contains(.news(.renamed(from: room("room 1")), of: room("room 1 (2)"))))
        #expect(stage.leader.status(at: stage.now).rooms.map(\.name) == ["room 1", "room 1 (2)"])
        // It says its new name from now on, and is not told again.
        stage.hello(3, "room 1 (2)", instance: 2)
        #expect(stage.effects.contains(.close(2)))
        #expect(welcome(3, stage).map { $0.room == nil } == true)
        stage.hello(4, "room 1")
        #expect(welcome(4, stage)?.room == room("room 1 (3)"))
    }

    @Test func `the name of a leader is kept for its own room, whoever comes first`() {
        var own = configuration()
        own.ownInstance = 77
        var stage = Stage(own)
        stage.hello(1, own.name)
        #expect(welcome(1, stage)?.room == room("\(own.name) (2)"))
        stage.hello(2, own.name, instance: 77)
        #expect(welcome(2, stage).map { $0.room == nil } == true)
        // A leader without a room of its own leaves its name to others.
        var silent = Stage(configuration())
        silent.hello(1, own.name)
        #expect(welcome(1, silent).map { $0.room == nil } == true)
    }

    @Test func `a room that lost what it remembered gets back the name that it had`() {
        var stage = Stage.playing()
        stage.hello(2, "room 1", instance: 9)
        stage.hello(3, "room 1", instance: 9)
        #expect(stage.effects.contains(.close(2)))
        #expect(welcome(3, stage)?.room == room("room 1 (2)"))
    }

    @Test func `names of many that are called alike stay names`() throws {
        let long = String(repeating: "ö", count: RoomID.longest)
        let second = room(long).numbered(2)
        #expect(second.name.count == RoomID.longest && second.name.hasSuffix(" (2)"))
        var stage = Stage(configuration())
        for link in 0..<80 { stage.hello(link, long) }
        let rooms = stage.leader.status(at: stage.now).rooms
        #expect(rooms.count == LeaderMachine.mostNamesakes)
        #expect(Set(rooms.map(\.name)).count == rooms.count)
    }

    private func welcome(_ link: LinkID, _ stage: Stage) -> Welcome? {
        for case (link, .welcome(let welcome)) in stage.sent.map({ ($0.link, $0.message) }) {
            return welcome
        }
        return nil
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
