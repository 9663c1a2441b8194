import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `The next item` {
    let queue = [asset(1, seconds: 20.000_01), asset(2, seconds: 15, sampleRate: 48_000)]

    @Test func `it begins at the very instant the current one ends`() {
        var stage = Stage.playing(configuration(queue: queue))
        let first = stage.commits(1)[0].change
        stage.advance(by: .seconds(15), heard: [1])
        #expect(stage.preparations(1).last?.asset == queue[1])
        stage.ready(1)
        let next = stage.commits(1).last!
        #expect(next.following)
        // frames × 10⁹ / rate, to the nearest nanosecond.
        let length = Int64((Int128(queue[0].frameCount) * 1_000_000_000 + 22_050) / 44_100)
        #expect(next.change.instant == first.instant + Nanoseconds(length))
        #expect(next.change.itemFrame == 0)
        #expect(stage.leader.session.index == 0)
        stage.advance(by: .seconds(6), heard: [1])
        #expect(stage.leader.session.index == 1)
        #expect(stage.leader.session.change == next.change)
        #expect(stage.commits(1).count == 2)
    }

    @Test func `a seek or pause withdraws it and it is planned again`() {
        for command in [.seek(seconds: 15), .pause] as [GroupCommand] {
            var stage = Stage.playing(configuration(queue: queue))
            stage.advance(by: .seconds(15), heard: [1])
            stage.ready(1)
            let withdrawn = stage.commits(1).last!
            stage.command(command)
            #expect(stage.withdrawn(1).contains(withdrawn.id))
            stage.ready(1)
            stage.command(.play)
            stage.advance(by: .seconds(1), heard: [1])
            stage.ready(1)
            let next = stage.commits(1).last!
            #expect(next.following)
            #expect(next.id != withdrawn.id)
            #expect(next.change.instant == stage.leader.session.endInstant)
        }
    }

    @Test func `a pause that comes too late for this item pauses the next`() {
        var stage = Stage.playing(configuration(queue: queue))
        stage.advance(by: .seconds(15), heard: [1])
        stage.ready(1)
        let end = stage.leader.session.endInstant!
        stage.advance(by: end - stage.now - .milliseconds(10), heard: [1])
        stage.command(.pause)
        let pause = stage.commits(1).last!
        #expect(pause.isPause)
        #expect(pause.hash == queue[1].hash)
        #expect(stage.leader.session.index == 1)
        #expect(pause.change.itemFrame > 0)
    }

    @Test func `after the last item the session has ended, once, and play begins again`() {
        var stage = Stage.playing(configuration(queue: [asset(1, seconds: 3)]))
        stage.advance(by: .seconds(10), heard: [1])
        #expect(stage.leader.session.phase == .ended)
        #expect(stage.effects.count { $0 == .ended } == 1)
        stage.command(.play)
        stage.ready(1)
        #expect(stage.leader.session.phase == .playing)
    }

    @Test func `a loop goes on with the first item without a gap`() {
        var stage = Stage.playing(configuration(queue: [asset(1, seconds: 4)], loops: true))
        for _ in 0..<10 {
            stage.ready(1)
            stage.advance(by: .seconds(4), heard: [1])
        }
        let commits = stage.commits(1)
        #expect(commits.count > 8)
        for (one, next) in zip(commits, commits.dropFirst()) {
            #expect(next.change.instant - one.change.instant == .seconds(4))
        }
    }
}
