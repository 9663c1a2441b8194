import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `The leader tells what is` {
    func detail(_ stage: Stage) -> String { stage.leader.status(at: stage.now).detail ?? "" }

    @Test func `a start that waits says for how many rooms`() {
        var stage = Stage(configuration(rooms: 2))
        #expect(detail(stage) == "waits for rooms: 0 of 2 are ready")
        stage.hello(1, "kitchen")
        stage.ready(1)
        #expect(detail(stage) == "waits for rooms: 1 of 2 are ready")
        stage.hello(2, "bath")
        stage.ready(2)
        #expect(!detail(stage).contains("waits"))
    }

    func fail(_ stage: inout Stage, _ link: LinkID, _ reason: String) {
        guard let id = stage.preparations(link).last?.id else { return }
        stage.receive(.notReady(preparation: id, reason: reason), from: link)
    }

    @Test func `a line that no room can play is not just playing`() {
        var stage = Stage(configuration(rooms: 0))
        #expect(stage.leader.session.phase == .playing)
        #expect(detail(stage) == "nothing is heard: no room with an output is here")
        stage.hello(1, "bath")
        #expect(detail(stage) == "nothing is heard yet: the rooms are preparing")
        fail(&stage, 1, "no such codec")
        #expect(stage.leader.session.phase == .playing)
        #expect(detail(stage).contains("\"item 1\""))
        #expect(detail(stage).contains("bath: no such codec"))
    }

    @Test func `play asks a room that failed again at once, and one that plays says nothing`() {
        var stage = Stage(configuration(rooms: 0))
        stage.hello(1, "bath")
        fail(&stage, 1, "no such codec")
        let asked = stage.preparations(1).count
        stage.command(.play)
        #expect(stage.preparations(1).count == asked + 1)
        stage.ready(1)
        #expect(stage.leader.status(at: stage.now).detail == nil)
        let sent = stage.sent.count
        stage.command(.play)
        #expect(stage.sent.count == sent)
    }

    /// A group that says that it plays while everybody's card is gone.
    @Test func `a line that everybody was sent and nobody plays is not just playing`() {
        var stage = Stage.playing(configuration(rooms: 2), links: [1, 2])
        stage.advance(by: .seconds(2), heard: [1, 2])
        #expect(detail(stage).isEmpty)
        var lost = stage.report
        lost.isCardLost = true
        stage.receive(.report(lost), from: 1)
        #expect(detail(stage).isEmpty, "the other one plays")
        var starved = stage.report
        starved.line = .starved
        stage.receive(.report(starved), from: 2)
        #expect(
            detail(stage)
                == "nothing is heard: room 1 has no sound card, room 2 \(LineFinding.starved.words)"
        )
        stage.receive(.report(stage.report), from: 1)
        #expect(detail(stage).isEmpty)
    }

    @Test func `a session that stopped by itself says why until somebody plays or stops`() {
        var stage = Stage(configuration())
        stage.hello(1, "bath")
        for _ in 0..<LeaderMachine.mostAttempts {
            fail(&stage, 1, "torn file")
            stage.advance(by: .seconds(11), heard: [1])
        }
        #expect(stage.leader.session.phase == .stopped)
        #expect(detail(stage) == "no room can play \"item 1\"; bath: torn file")
        stage.command(.play)
        #expect(detail(stage).isEmpty)
    }

    @Test func `the queue goes over a link once`() {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2)]))
        stage.advance(by: .seconds(2), heard: [1])
        for command in [.pause, .play, .seek(seconds: 9), .next] as [GroupCommand] {
            stage.command(command)
            stage.ready(1)
        }
        let states = stage.sent.count { if case .state = $0.message { true } else { false } }
        let progress = stage.sent.compactMap {
            if case .progress(let progress) = $0.message { progress } else { nil }
        }
        #expect(states == 1)
        #expect(progress.count >= 4)
        #expect(progress.last == stage.leader.session.progress)
    }

    @Test func `progress of another queue or term changes nothing`() {
        let state = SessionState(
            term: 7, sequence: 1, queue: [asset(1)], index: 0, change: nil, phase: .waiting)
        var progress = state.progress
        #expect(state.with(progress) == state)
        progress.index = 1
        #expect(state.with(progress) == nil)
        progress.index = -1
        #expect(state.with(progress) == nil)
        progress = state.progress
        progress.term = 8
        #expect(state.with(progress) == nil)
    }
}

@Suite struct `The latency offset of a room` {
    func offsets(_ stage: Stage, _ link: LinkID) -> [LatencyOffset] {
        stage.sent.compactMap {
            if case .latencyOffset(let value) = $0.message, $0.link == link { value } else { nil }
        }
    }

    @Test func `it goes to the room that is meant and to no other`() throws {
        let offset = try LatencyOffset(microseconds: -1_500, uncertaintyMicroseconds: 20)
        var stage = Stage.playing(links: [1, 2])
        #expect(stage.command(.latencyOffset(room: room("room 2"), offset)) == .accepted)
        #expect(offsets(stage, 2) == [offset])
        #expect(offsets(stage, 1).isEmpty)
    }

    @Test(
        arguments: [
            ("1500", 1_500, nil), ("-300", -300, nil), ("−300", -300, nil), ("+7", 7, nil),
            ("1500±50", 1_500, 50), ("-500000±0", -500_000, 0), ("0+-500000", 0, 500_000),
        ] as [(String, Int, Int?)])
    func `it is written with how well it is known`(text: String, delay: Int, uncertainty: Int?)
        throws
    {
        let offset = try LatencyOffset(parsing: text)
        #expect(offset.delay == .microseconds(Int64(delay)))
        #expect(offset.uncertainty == uncertainty.map { .microseconds(Int64($0)) })
        #expect(try LatencyOffset(parsing: "\(offset)") == offset)
    }

    @Test(arguments: [
        "", "x", "1.5", "1500±", "±50", "1500±-50", "1500±+50", "1±2±3", "500001", "-500001",
        "0±500001", "99999999999999999999", " 1", "1500 ±50",
    ])
    func `what is no offset, or beyond half a second, is one error`(text: String) {
        let error = #expect(throws: InvalidValue.self) { try LatencyOffset(parsing: text) }
        #expect(error?.description.contains("latency offset") == true)
    }

    @Test func `where it was measured, the promise is about the loudspeaker`() throws {
        var report = RoomReport(
            clockBound: .microseconds(40), error: .microseconds(-2),
            sync: SyncReport(
                quality: .locked, card: .microseconds(11),
                latencyOffset: try LatencyOffset(microseconds: 1_500)))
        let (bound, guess) = (report.bound, report.expectedError)
        #expect(bound == .microseconds(53))
        report.sync.latencyOffset = try LatencyOffset(
            microseconds: 1_500, uncertaintyMicroseconds: 30)
        #expect(report.bound == .microseconds(83))
        #expect(try #require(report.expectedError) > #require(guess))
    }

    @Test func `what cannot be done is refused with the reason`() {
        var stage = Stage.playing(links: [1])
        stage.hello(2, "phone", hasOutput: false)
        var fixed = RoomReport()
        fixed.sync.isLatencyOffsetFixed = true
        stage.hello(3, "fixed")
        stage.receive(.report(fixed), from: 3)
        for (name, reason) in [
            ("nowhere", "\"room 1\""), ("phone", "no output"), ("fixed", "latency-offset-us"),
        ] {
            guard
                case .refused(let said) = stage.command(.latencyOffset(room: room(name), .zero))
            else {
                Issue.record("\(name) was accepted")
                continue
            }
            #expect(said.contains(reason), "\(said)")
        }
        for link in 1...3 { #expect(offsets(stage, link).isEmpty) }
    }

    @Test func `a room obeys it once it has joined, and not before`() throws {
        let offset = try LatencyOffset(microseconds: 7)
        let start = LocalInstant(nanoseconds: 0)
        var room = RoomMachine(
            RoomConfiguration(
                room: GroupControlTests.room("a"), instance: 1, outputLatency: .zero,
                hasOutput: true), at: start)
        let order = RoomInput.received(.latencyOffset(offset))
        _ = room.advance(to: start)
        _ = room.receive(.connected, at: start)
        #expect(room.receive(order, at: start).isEmpty)
        _ = room.receive(
            .received(
                .welcome(
                    Welcome(
                        leaderName: "a", timePort: 1, mediaPort: 2, term: 1, groupClockEpoch: 1))),
            at: start)
        #expect(room.receive(order, at: start) == [.latencyOffset(offset)])
    }
}
