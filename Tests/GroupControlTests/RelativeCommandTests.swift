import Testing
import Timing

@testable import GroupControl

@Suite struct `Relative commands` {
    private func place(_ stage: Stage) -> Double {
        let commit = stage.commits(1).last!
        return Double(commit.change.itemFrame) / 44_100
    }

    @Test func `seeking by some seconds counts from what is audible`() {
        var stage = Stage.playing()
        let begin = stage.commits(1).last!.change.instant
        stage.advance(by: .seconds(20), heard: [1])
        let there = (stage.now - begin).seconds
        stage.command(.seekBy(seconds: 10))
        stage.ready(1)
        #expect(abs(place(stage) - (there + 10)) < 1e-3)
    }

    @Test func `two changes in a row add up`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(2), heard: [1])
        stage.command(.seek(seconds: 30))
        stage.command(.seekBy(seconds: 5))
        stage.command(.seekBy(seconds: -10))
        stage.ready(1)
        #expect(abs(place(stage) - 25) < 1e-3)
    }

    @Test func `a change beyond either end goes to that end`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(2), heard: [1])
        stage.command(.seekBy(seconds: -1e9))
        stage.ready(1)
        #expect(place(stage) == 0)
        let length = Double(stage.leader.session.current!.frameCount) / 44_100
        stage.command(.seekBy(seconds: 1e300))
        stage.ready(1)
        #expect(place(stage) == length - 1)
        #expect(stage.command(.seekBy(seconds: .nan)) != .accepted)
        #expect(stage.command(.seekTo(share: .infinity)) != .accepted)
    }

    @Test func `a share is of the whole item`() {
        var stage = Stage.playing()
        stage.advance(by: .seconds(2), heard: [1])
        let length = Double(stage.leader.session.current!.frameCount) / 44_100
        stage.command(.seekTo(share: 0.25))
        stage.ready(1)
        #expect(abs(place(stage) - length / 4) < 1e-3)
    }

    @Test func `previous goes to the beginning, and at the beginning to the item before`() {
        var stage = Stage.playing(configuration(queue: [asset(1), asset(2)]))
        stage.command(.next)
        stage.ready(1)
        #expect(stage.leader.session.index == 1)
        stage.advance(by: .seconds(4), heard: [1])
        stage.command(.previous)
        stage.ready(1)
        #expect(stage.leader.session.index == 1)
        #expect(place(stage) == 0)
        stage.advance(by: .seconds(1), heard: [1])
        stage.command(.previous)
        stage.ready(1)
        #expect(stage.leader.session.index == 0)
        // Nothing is before the first.
        stage.command(.previous)
        stage.ready(1)
        #expect(stage.leader.session.index == 0)
        #expect(place(stage) == 0)
    }

    @Test func `a change of volume is of what each room has, and stays in range`() {
        var stage = Stage.playing(links: [1, 2])
        let names = stage.leader.members.map(\.hello.room)
        stage.command(.volume(room: names[0], percent: 40))
        stage.command(.volume(room: names[1], percent: 98))
        stage.command(.volumeBy(room: nil, percent: 5))
        #expect(names.map { stage.leader.rememberedSettings(of: $0).volume } == [45, 100])
        stage.command(.volumeBy(room: names[0], percent: -100))
        #expect(stage.leader.rememberedSettings(of: names[0]).volume == 0)
        #expect(stage.command(.volumeBy(room: nil, percent: 101)) != .accepted)
    }

    @Test func `a room is found whatever its capitals, and the nearest is suggested`() {
        var stage = Stage.playing(links: [1, 2])
        let name = stage.leader.members[0].hello.room.name
        #expect(stage.command(.volume(room: room(name.uppercased()), percent: 30)) == .accepted)
        #expect(stage.leader.rememberedSettings(of: room(name)).volume == 30)
        let answer = stage.command(.mute(room: room(name + "x"), muted: true))
        guard case .refused(let reason) = answer else {
            Issue.record("a room that there is not was muted")
            return
        }
        #expect(reason.contains("did you mean"), "\(reason)")
    }
}
