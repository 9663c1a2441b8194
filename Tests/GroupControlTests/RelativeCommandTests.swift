import Glibc
import Testing
import TuttiTiming

@testable import TuttiGroupControl

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

    /// However loud the group is made, and whatever end it comes to: the rooms keep their balance.
    @Test func `a change of the group's volume leaves the rooms theirs, and stays in range`() {
        var stage = Stage.playing(links: [1, 2])
        let names = stage.leader.members.map(\.hello.room)
        func settings(_ place: Int) -> RoomSettings {
            stage.leader.rememberedSettings(of: names[place])
        }
        stage.command(.volume(room: names[0], percent: 40))
        stage.command(.volume(room: names[1], percent: 98))
        for (change, group) in [(-60, 40), (-60, 0), (5, 5), (100, 100), (-50, 50)] {
            stage.command(.volumeBy(room: nil, percent: change))
            #expect(names.indices.map { settings($0).volume } == [40, 98])
            #expect(names.indices.allSatisfy { settings($0).groupVolume == group })
        }
        #expect(settings(0).level == 0.4 * 0.5 && settings(1).level == 0.98 * 0.5)
        stage.command(.volumeBy(room: names[1], percent: 5))
        #expect(settings(1).volume == 100)
        stage.command(.mute(room: nil, muted: true))
        #expect(settings(1).level == 0)
        stage.command(.volumeBy(room: names[0], percent: -100))
        #expect(settings(0).volume == 0)
        #expect(stage.command(.volumeBy(room: nil, percent: 101)) != .accepted)
    }

    @Test func `a slider is 60 times the logarithm of its place in decibels`() {
        func decibels(_ level: Double) -> Double {
            20 * log10(Double(RoomSettings.gain(ofLevel: level)))
        }
        for level in [0.01, 0.1, 0.5, 0.9] {
            #expect(abs(decibels(level) - 60 * log10(level)) < 0.001)
        }
        #expect(RoomSettings.gain(ofLevel: 1) == 1 && RoomSettings.gain(ofLevel: 0) == 0)
    }

    /// It comes from another group: nobody wants it at full volume for a moment.
    @Test func `a room that comes as loud as it is stays so, unless this group knows better`()
        throws
    {
        var stage = Stage.playing(links: [1, 2])
        stage.command(.volume(room: nil, percent: 50))
        let own = try RoomSettings(volume: 30, muted: false, groupVolume: 80, role: .left)
        func arrive(_ link: LinkID, _ name: String) -> RoomSettings? {
            stage.receive(
                .hello(
                    Hello(
                        room: room(name), instance: 7, outputLatency: .milliseconds(20),
                        hasOutput: true, settings: own)),
                from: link)
            return stage.sent.compactMap {
                if case .settings(let value) = $0.message, $0.link == link { value } else { nil }
            }.last
        }
        let there = try RoomSettings(volume: 30, muted: false, groupVolume: 50, role: .left)
        #expect(arrive(8, "attic") == there)
        stage.command(.volume(room: room("attic"), percent: 70))
        #expect(arrive(9, "attic")?.volume == 70)
    }

    @Test func `what a room plays of stereo is remembered, until auto`() {
        var stage = Stage.playing(links: [1, 2])
        let names = stage.leader.members.map(\.hello.room)
        stage.command(.role(room: names[0], .left))
        stage.command(.volume(room: nil, percent: 30))
        #expect(stage.leader.rememberedSettings(of: names[0]).role == .left)
        #expect(stage.leader.rememberedSettings(of: names[1]).role == nil)
        stage.command(.role(room: names[0], nil))
        #expect(stage.leader.rememberedSettings(of: names[0]).role == nil)
        #expect(stage.command(.role(room: room("nowhere"), .left)) != .accepted)
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
