import Testing
import TuttiTiming

@testable import TuttiGroupControl

/// A room that joins, is heard, and never answers a preparation.
@Suite struct `A room that does not answer` {
    /// Two rooms; the second says only that it lives. The first start has been.
    private func group() -> Stage {
        var stage = Stage(configuration(queue: [asset(1), asset(2)]))
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        stage.ready(1)
        stage.advance(by: stage.leader.configuration.firstStartLimit, heard: [1, 2])
        return stage
    }

    private var news: (Stage) -> [RoomID] {
        { stage in
            stage.effects.compactMap {
                if case .news(.missing, let room) = $0 { room } else { nil }
            }
        }
    }

    @Test func `it delays the first start and none after it`() {
        var stage = group()
        #expect(stage.commits(1).count == 1)
        for (number, command) in ([.seek(seconds: 9), .next, .seek(seconds: 3)] as [GroupCommand])
            .enumerated()
        {
            stage.command(command)
            stage.ready(1)
            #expect(stage.commits(1).count == number + 2, "\(command) waited")
        }
        stage.command(.pause)
        stage.ready(1)
        let before = stage.commits(1).count
        stage.command(.play)
        #expect(stage.commits(1).count == before + 1)
        stage.command(.stop)
        stage.command(.play)
        stage.ready(1)
        #expect(stage.commits(1).count == before + 2)
        #expect(news(stage) == [room("bath")], "said once")
    }

    @Test func `the status says who is missing, until it answers`() {
        var stage = group()
        let status = stage.leader.status(at: stage.now)
        #expect(status.detail?.contains("bath does not answer") == true)
        #expect(status.rooms[0].detail.contains("does not answer") == true)
        stage.ready(2)
        #expect(stage.leader.status(at: stage.now).detail == nil)
        #expect(stage.leader.status(at: stage.now).rooms[0].detail.isEmpty)
        // And it is waited for again.
        stage.command(.seek(seconds: 9))
        let before = stage.commits(1).count
        stage.ready(1)
        #expect(stage.commits(1).count == before)
        stage.ready(2)
        #expect(stage.commits(1).count == before + 1)
    }

    @Test func `an answer that says no is one`() {
        var stage = group()
        let id = stage.preparations(2).last?.id ?? 0
        stage.receive(.notReady(preparation: id, reason: "no card"), from: 2)
        #expect(stage.leader.missing.isEmpty)
    }

    @Test func `what was not asked for is no answer`() {
        var stage = group()
        let other = stage.preparations(1).last?.id ?? 0
        for id in [0, other, 9_999] {
            stage.receive(.notReady(preparation: id, reason: "no card"), from: 2)
            stage.receive(.ready(preparation: id, latency: .zero), from: 2)
        }
        #expect(stage.leader.missing == [room("bath")])
        // Nor is the same answer a second time.
        stage.ready(2)
        #expect(stage.leader.missing.isEmpty)
    }

    @Test func `coming again under the same name is no answer`() {
        var stage = group()
        stage.close(2)
        stage.hello(3, "bath")
        stage.command(.seek(seconds: 9))
        let before = stage.commits(1).count
        stage.ready(1)
        #expect(stage.commits(1).count == before + 1)
    }

    @Test func `seeks that follow one another do not add up`() {
        var stage = Stage.playing(configuration(), links: [1, 2])
        let limit = stage.leader.configuration.preparationLimit
        let before = stage.commits(1).count
        // Room 2 falls silent on preparations, with seeks closer together than the limit.
        for step in 1...4 {
            stage.command(.seek(seconds: Double(step)))
            stage.ready(1)
            stage.advance(by: limit / 3, heard: [1, 2])
        }
        #expect(stage.commits(1).count > before)
    }

    @Test func `while a start waits, the leader says for whom`() {
        var stage = Stage(configuration())
        stage.hello(1, "kitchen")
        stage.hello(2, "bath")
        stage.ready(1)
        #expect(stage.leader.headline == "prepares \"item 1\": waits for bath")
        stage.ready(2)
        #expect(stage.leader.headline == "plays \"item 1\"")
    }

    @Test func `an item that is chosen before anybody is ready is the one that is told of`() {
        var stage = Stage(configuration(queue: (1...9).map { asset($0) }))
        for index in 1..<9 {
            stage.command(.next)
            #expect(stage.leader.session.index == index)
        }
        stage.command(.previous)
        #expect(stage.leader.session.index == 7)
    }
}
