import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `Common starts` {
    @Test func `the start waits until as many rooms as wanted are ready`() {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "kitchen")
        stage.ready(1)
        #expect(stage.leader.session.phase == .waiting)
        stage.advance(by: .seconds(60), heard: [1])
        #expect(stage.commits(1).isEmpty)
        stage.hello(2, "bath")
        #expect(stage.leader.session.phase == .preparing)
        stage.ready(2)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.commits(1).count == 1)
        #expect(stage.commits(1).map(\.change) == stage.commits(2).map(\.change))
    }

    @Test func `nothing begins while no room has a card, and the first that gets one starts it`() {
        var lost = RoomReport()
        lost.isCardLost = true
        for wanted in [1, 2] {
            var stage = Stage(configuration(rooms: wanted))
            for (link, name) in [(1, "kitchen"), (2, "bath")] as [(LinkID, String)] {
                stage.hello(link, name)
                stage.receive(.report(lost), from: link)
                stage.ready(link)
            }
            // Who is heard in `advance` reports that all is well.
            stage.advance(by: .seconds(4))
            #expect(stage.commits(1).isEmpty && stage.commits(2).isEmpty)
            #expect(stage.leader.headline.contains("waits for a sound card of 2 rooms"))
            stage.receive(.report(RoomReport()), from: 2)
            #expect(stage.commits(2).count == 1)
            #expect(stage.commits(1).count == 1, "it is on the line when its card comes")
        }
    }

    @Test func `by hand it begins without a card, and a card that is lost later ends nothing`() {
        var lost = RoomReport()
        lost.isCardLost = true
        var stage = Stage(configuration(queue: [asset(1), asset(2)], rooms: 1))
        stage.hello(1, "kitchen")
        stage.receive(.report(lost), from: 1)
        stage.ready(1)
        #expect(stage.commits(1).isEmpty)
        stage.command(.play)
        #expect(stage.commits(1).count == 1)
        stage.command(.next)
        stage.ready(1)
        #expect(stage.commits(1).count == 2)
    }

    @Test func `a node without an output is not waited for and not asked to prepare`() {
        var stage = Stage(configuration(rooms: 1))
        stage.hello(1, "phone", hasOutput: false)
        #expect(stage.preparations(1).isEmpty)
        #expect(stage.leader.session.phase == .waiting)
    }

    @Test func `the instant is the sum of the slowest room's reach and the margin`() {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "kitchen", latency: .milliseconds(10))
        stage.hello(2, "bath", latency: .milliseconds(10))
        stage.receive(.report(RoomReport(roundTrip: .milliseconds(4))), from: 1)
        stage.receive(.report(RoomReport(roundTrip: .milliseconds(30))), from: 2)
        stage.ready(1, latency: .milliseconds(25))
        stage.ready(2, latency: .milliseconds(20))
        // 30 / 2 + 20 = 35 ms beats 4 / 2 + 25 = 27 ms.
        let expected = stage.now + .milliseconds(35) + LeaderMachine.margin
        #expect(stage.commits(1).first?.change.instant == expected)
    }

    @Test func `a room that claims an absurd latency does not hold up the group for long`() {
        var stage = Stage(configuration())
        stage.hello(1, "kitchen", latency: .seconds(3_000))
        stage.ready(1, latency: Nanoseconds(.max))
        let instant = stage.commits(1).first?.change.instant
        // What no room can need is cut to the most that one can, a card that reports two seconds of
        // latency among them.
        let most = LeaderMember.longestClaim + .seconds(1)
        #expect(instant.map { $0 - stage.now < most } == true)
    }

    @Test func `who is not ready by the deadline gets the running line to itself later`() {
        var stage = Stage(configuration(rooms: 1))
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        stage.ready(1)
        #expect(stage.commits(1).isEmpty)
        stage.advance(by: stage.leader.configuration.firstStartLimit, heard: [1, 2])
        #expect(stage.commits(1).count == 1)
        #expect(stage.commits(2).isEmpty)
        // Asked again, now for where the line will be.
        #expect(stage.preparations(2).last?.change == stage.leader.session.change)
        #expect(stage.withdrawn(2) == [stage.preparations(2)[0].id])
        stage.ready(2)
        #expect(stage.commits(2).map(\.change) == stage.commits(1).map(\.change))
        #expect(stage.commits(1).count == 1)
    }

    @Test func `play by hand starts with the rooms that are there`() {
        var stage = Stage(configuration(rooms: 3))
        stage.hello(1, "kitchen")
        stage.ready(1)
        #expect(stage.command(.play) == .accepted)
        #expect(stage.commits(1).count == 1)
    }

    @Test func `whoever is slow is waited for longer at the first start`() {
        var stage = Stage(configuration(rooms: 1))
        let limits = stage.leader.configuration
        #expect(limits.preparationLimit < limits.firstStartLimit)
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        stage.ready(1)
        stage.advance(by: limits.firstStartLimit - Nanoseconds(1), heard: [1, 2])
        #expect(stage.commits(1).isEmpty)
        stage.ready(2)
        #expect(stage.commits(1).map(\.change) == stage.commits(2).map(\.change))
        #expect(stage.commits(1).count == 1)

        stage.command(.seek(seconds: 30))
        stage.ready(1)
        stage.advance(by: limits.preparationLimit - Nanoseconds(1), heard: [1, 2])
        #expect(stage.commits(1).count == 1)
        stage.advance(by: Nanoseconds(1), heard: [1, 2])
        #expect(stage.commits(1).count == 2)
    }

    @Test func `play by hand waits no longer than a seek`() {
        var stage = Stage(configuration(rooms: 1))
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        stage.ready(1)
        stage.command(.play)
        stage.advance(by: stage.leader.configuration.preparationLimit, heard: [1, 2])
        #expect(stage.commits(1).count == 1)
        #expect(stage.commits(2).isEmpty)

        stage.command(.stop)
        stage.command(.play)
        stage.ready(1)
        stage.advance(by: stage.leader.configuration.preparationLimit, heard: [1, 2])
        #expect(stage.commits(1).count == 2)
    }

    @Test func `a room that fails three times does not stop the others`() {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        stage.ready(1)
        stage.receive(
            .notReady(preparation: stage.preparations(2)[0].id, reason: "no card"), from: 2)
        #expect(stage.leader.session.phase == .playing)
        #expect(stage.commits(2).isEmpty)
        let status = stage.leader.status(at: stage.now)
        #expect(status.rooms.map(\.state) == [.failed, .joining])
        #expect(status.rooms[0].detail == "no card")
        // It is asked again and joins when it can.
        stage.advance(by: .seconds(2), heard: [1, 2])
        stage.ready(2)
        #expect(stage.commits(2).count == 1)
    }

    @Test func `an item that every room fails at is skipped`() {
        var stage = Stage(configuration(queue: [asset(1), asset(2)]))
        stage.hello(1, "kitchen")
        for _ in 0..<3 {
            #expect(stage.preparations(1).last?.asset == asset(1))
            stage.receive(
                .notReady(preparation: stage.preparations(1).last!.id, reason: "bad"), from: 1)
            stage.advance(by: .seconds(3), heard: [1])
        }
        #expect(stage.preparations(1).last?.asset == asset(2))
        stage.ready(1)
        #expect(stage.leader.session.index == 1)
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `a queue that nobody can play stops instead of turning round for ever`() {
        var stage = Stage(configuration(queue: [asset(1), asset(2)], loops: true))
        stage.hello(1, "kitchen")
        for _ in 0..<20 {
            guard let last = stage.preparations(1).last else { break }
            stage.receive(.notReady(preparation: last.id, reason: "bad"), from: 1)
            stage.advance(by: .seconds(5), heard: [1])
        }
        #expect(stage.leader.session.phase == .stopped)
        #expect(stage.preparations(1).count == 6)
    }

    @Test func `no room wanted means that the line runs at once and rooms join it`() {
        var stage = Stage(configuration(rooms: 0))
        #expect(stage.leader.session.phase == .playing)
        stage.advance(by: .seconds(3))
        stage.hello(1, "kitchen")
        stage.ready(1)
        #expect(stage.commits(1).first?.change == stage.leader.session.change)
    }

    /// All orders in which three rooms can answer, and one of them can vanish.
    @Test func `every order of answers ends in one common start of those that are left`() {
        for order in permutations([0, 1, 2, 3]) {
            var stage = Stage(configuration(rooms: 3))
            for link in 1...3 { stage.hello(link, "room \(link)") }
            for step in order {
                if step == 0 { stage.close(3) } else { stage.ready(step) }
            }
            stage.advance(by: .seconds(6), heard: [1, 2])
            let vanishedLast = order.last == 0
            #expect(stage.commits(1).count == (vanishedLast ? 1 : 0), "\(order)")
            if !vanishedLast {
                // Two of three are left: it waits for a third.
                #expect(stage.leader.session.phase == .waiting)
                stage.hello(4, "room 4")
                stage.ready(4)
            }
            #expect(stage.commits(1).count == 1)
            #expect(stage.commits(1).map(\.change) == stage.commits(2).map(\.change))
        }
    }
}

/// Every order of some values.
func permutations<Value>(_ values: [Value]) -> [[Value]] {
    if values.count <= 1 { return [values] }
    return values.indices.flatMap { place in
        var rest = values
        let first = rest.remove(at: place)
        return permutations(rest).map { [first] + $0 }
    }
}
