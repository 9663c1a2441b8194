import Testing
import TuttiTiming

@testable import TuttiGroupControl

/// Rooms that go from one group to another.
@Suite struct GroupsTests {
    private static let next = NextLeader(name: room("study"), host: "study.local", port: 7_430)

    private func playing() -> Stage {
        var stage = Stage.playing()
        stage.hello(2, "bath")
        stage.ready(2)
        return stage
    }

    @Test func `a room that is moved is sent there and not waited for, and the others play on`() {
        var stage = playing()
        let line = stage.leader.session.change
        #expect(stage.command(.move(room: room("bath"), to: Self.next)) == .accepted)
        #expect(stage.sent.last?.message == .follow(Self.next) && stage.sent.last?.link == 2)
        #expect(stage.effects.contains(.close(2)))
        #expect(stage.leader.members.map(\.hello.room.name) == ["room 1"])
        #expect(stage.leader.session.change == line)
        #expect(stage.leader.missed.isEmpty, "it is somewhere else on purpose")
        // Its link ends, and nothing more is said of it.
        let count = stage.sent.count
        stage.close(2)
        #expect(stage.sent.count == count)
    }

    @Test func `what cannot be moved is refused with a sentence, and nothing changes`() {
        var stage = playing()
        for command in [
            GroupCommand.move(room: room("nobody"), to: Self.next),
            .move(
                room: room("bath"),
                to: NextLeader(name: room("attic"), host: "attic.local", port: 7_430)),
            .separate(room: room("bath")),
        ] {
            let sent = stage.sent.count
            guard case .refused(let reason) = stage.command(command) else {
                Issue.record("\(command) was accepted")
                continue
            }
            #expect(!reason.isEmpty && stage.sent.count == sent)
        }
        #expect(stage.leader.members.count == 2)
    }

    @Test func `a room that may lead is told to lead a group of its own`() {
        var stage = playing()
        stage.receive(
            .hello(
                Hello(
                    room: room("den"), instance: 9, outputLatency: .zero, hasOutput: true,
                    doorPort: 7_430, mayLead: true)), from: 3)
        #expect(stage.command(.separate(room: room("den"))) == .accepted)
        #expect(stage.sent.last?.message == .separate && stage.sent.last?.link == 3)
    }

    @Test func `a leader that has others lets another lead first, and the last one goes itself`() {
        var settings = configuration()
        settings.ownInstance = 1
        var stage = Stage(settings)
        stage.hello(1, "attic", instance: 1)
        stage.hello(2, "bath", instance: 2)
        guard case .refused(let reason) = stage.command(.move(room: room("attic"), to: Self.next))
        else {
            Issue.record("accepted")
            return
        }
        #expect(reason.contains("tutti handover \"bath\""))
        stage.receive(.goodbye, from: 2)
        #expect(stage.command(.move(room: room("attic"), to: Self.next)) == .accepted)
        #expect(stage.effects.contains(.yield(to: Self.next)))
    }

    @Test func `a room that is to lead alone falls silent and begins`() {
        let start = LocalInstant(nanoseconds: 1_000_000_000)
        var sound = `A room on its own`().playing()
        let effects = sound.receive(.received(.separate), at: start)
        #expect(effects.contains(.stop) && effects.contains(.leadAlone))
        #expect(sound.lines.isEmpty && !sound.isJoined)
        // Not before its node leads: the leader that it had would take it in again.
        #expect(!sound.advance(to: start).contains(.connect))
        #expect(sound.receive(.leadsAfresh, at: start) == [.disconnect])
        #expect(sound.advance(to: start) == [.connect])
    }
}
