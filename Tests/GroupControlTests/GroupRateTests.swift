import Testing
import TuttiTiming

@testable import TuttiGroupControl

/// How fast a group plays.
@Suite struct `Rates of a group` {
    private static let rate = 1.25

    /// What is heard by a line at an instant, in frames.
    private func place(_ change: RateChange, _ instant: GroupInstant) -> Double {
        change.itemFrame(at: instant, sampleRate: 44_100)
    }

    @Test func `what sounds goes on at another rate from the frame that it is at`() throws {
        var stage = Stage.playing(links: [1, 2])
        stage.advance(by: .seconds(20), heard: [1, 2])
        let old = try #require(stage.commits(1).last).change
        #expect(stage.command(.rate(Self.rate)) == .accepted)
        let order = try #require(stage.preparations(1).last)
        #expect(order.rate == Self.rate && order.change == nil)
        // Rooms need a while; the old line sounds on.
        stage.advance(by: .milliseconds(400), heard: [1, 2])
        stage.ready(1)
        #expect(stage.commits(1).count == 1, "the other one is not ready")
        stage.ready(2)
        let new = try #require(stage.commits(1).last).change
        #expect(new.rate == Self.rate && new == stage.commits(2).last?.change)
        #expect(new.instant > stage.now && new.itemFrame >= order.itemFrame)
        // Whole frames at whole nanoseconds: half of one is 2e-5 of a frame.
        #expect(abs(place(old, new.instant) - Double(new.itemFrame)) < 1e-4)
        // Seen by people, and told to a room that comes later.
        #expect(stage.leader.status(at: stage.now).rate == Self.rate)
        stage.hello(3, "late")
        #expect(stage.preparations(3).last?.change == new)
        #expect(stage.preparations(3).last?.rate == Self.rate)
    }

    @Test func `the next item begins where this one ends, as fast`() throws {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2)]))
        stage.advance(by: .seconds(2), heard: [1])
        stage.command(.rate(Self.rate))
        stage.ready(1)
        let line = try #require(stage.commits(1).last).change
        stage.advance(by: .seconds(40), heard: [1])
        let order = try #require(stage.preparations(1).last)
        #expect(order.asset == asset(2) && order.rate == Self.rate)
        #expect(order.change?.instant == line.instant(ofFrame: 60 * 44_100, sampleRate: 44_100))
        #expect(order.change?.rate == Self.rate && order.change?.itemFrame == 0)
    }

    @Test func `before a start, and paused, the rate is that of the start`() throws {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "room 1")
        stage.ready(1)
        stage.command(.rate(Self.rate))
        stage.hello(2, "room 2")
        for link in [1, 2] as [LinkID] {
            #expect(stage.preparations(link).last?.rate == Self.rate)
            stage.ready(link)
        }
        let line = try #require(stage.commits(1).last).change
        #expect(line.rate == Self.rate && line.itemFrame == 0)

        stage.advance(by: .seconds(4), heard: [1, 2])
        stage.command(.pause)
        let pause = try #require(stage.commits(1).last).change
        #expect(pause.rate == 0)
        // It stops at a whole frame of the line.
        #expect(abs(place(line, pause.instant) - Double(pause.itemFrame)) < 1e-4)
        for link in [1, 2] as [LinkID] { stage.ready(link) }
        stage.command(.rate(0.5))
        #expect(stage.leader.session.phase == .paused)
        stage.command(.play)
        for link in [1, 2] as [LinkID] { stage.ready(link) }
        let resumed = try #require(stage.commits(2).last).change
        #expect(resumed.rate == 0.5 && resumed.itemFrame == pause.itemFrame)
    }

    @Test func `a pause, a seek or another rate meanwhile takes the place of the first`() throws {
        for command in [.pause, .seekBy(seconds: 10), .rate(2)] as [GroupCommand] {
            var stage = Stage.playing()
            stage.advance(by: .seconds(20), heard: [1])
            let old = try #require(stage.commits(1).last).change
            stage.command(.rate(Self.rate))
            let first = try #require(stage.preparations(1).last).id
            stage.advance(by: .seconds(3), heard: [1])
            let there = place(old, stage.now)
            stage.command(command)
            #expect(stage.withdrawn(1).contains(first))
            stage.ready(1)
            if command == .pause {
                stage.command(.play)
                stage.ready(1)
            }
            let new = try #require(stage.commits(1).last).change
            #expect(new.rate == (command == .rate(2) ? 2 : Self.rate))
            let moved = command == .seekBy(seconds: 10) ? there + 441_000 : there
            // The way to a room takes its time.
            #expect((0..<44_100).contains(Double(new.itemFrame) - moved), "\(command)")
        }
    }

    @Test func `an item that is over before it can go on is followed at the new rate`() throws {
        var stage = Stage.playing(configuration(queue: [asset(1, seconds: 20), asset(2)]))
        stage.advance(by: .seconds(19), heard: [1])
        stage.ready(1)
        stage.command(.rate(Self.rate))
        stage.advance(by: .seconds(2), heard: [1])
        stage.ready(1)
        let commit = try #require(stage.commits(1).last)
        #expect(commit.hash == asset(2).hash && !commit.following)
        #expect(commit.change.rate == Self.rate && commit.change.itemFrame == 0)
    }

    @Test func `rates that no room can play are refused, and the same again changes nothing`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(1), heard: [1])
        let count = stage.effects.count
        for rate in [0, -1, 0.2, 4.1, .nan, .infinity] {
            guard case .refused(let reason) = stage.command(.rate(rate)) else {
                Issue.record("\(rate) was accepted")
                continue
            }
            #expect(reason.contains("0.25 to 4"))
        }
        #expect(stage.command(.rate(1)) == .accepted)
        #expect(stage.effects.count == count)
    }

    @Test func `the rate goes over to the next leader`() throws {
        var stage = Stage.playing()
        stage.command(.pause)
        stage.command(.rate(Self.rate))
        stage.ready(1)
        #expect(stage.command(.handOver(to: room("room 1"))) == .accepted)
        let handover = try #require(
            stage.sent.compactMap {
                if case .lead(let handover) = $0.message { handover } else { nil }
            }.last)
        #expect(handover.rate == Self.rate)
        let next = LeaderMachine(
            configuration(term: 8), resuming: stage.leader.session, handover, at: stage.now)
        #expect(next.rate == Self.rate)
    }
}
