import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// What lockstep promises at the edges of times, instants and rates; see Semantics.md.
@Suite(.timeLimit(.minutes(1))) struct LockstepSemanticsTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    @Test func `a line without a time begins where item time is`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 20), shared: true)
        _ = try await room.during { await player.seek(to: Self.seconds(7)) }
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let host = room.groupNow + .milliseconds(300)
        try player.setRate(1, atHostTime: host)
        await room.step(seconds: 1)
        let due = 7 + (room.groupNow - host).seconds
        #expect(abs(player.currentTime().seconds - due) < 1e-4)
        // And what is heard is on it.
        let last = try #require(room.heard.last)
        let at = (room.clock.load().map(last.instant) - host).seconds
        #expect(abs(TestSource.frame(ofValue: last.value) / 8_000 - 7 - at) < 2 / 8_000)
    }

    @Test func `a line without an instant begins at once, from its time`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 20), shared: true)
        let begin = room.now
        try player.setRate(1, time: Self.seconds(5))
        await room.step(seconds: 1)
        let time = player.currentTime().seconds - 5
        #expect(time > 0.5 && time <= (room.now - begin).seconds, "\(time)")
    }

    /// Centuries before and after: neither traps, and the player still does what it is asked for.
    @Test(arguments: [Int64.min, .min + 1, -1, 0, .max - 1, .max], [-2.0, -1, 0, 1, 32])
    func `any instant and any rate make a line`(instant: Int64, rate: Double) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 4), shared: true)
        for time in [
            MediaTime.zero, Self.seconds(2), .invalid, MediaTime(value: .max, timescale: 1),
        ] {
            // What cannot be a line is refused with a reason; nothing traps.
            do throws(PlaybackError) {
                try player.setRate(
                    rate, time: time, atHostTime: GroupInstant(nanoseconds: instant))
            } catch { #expect(!error.reason.isEmpty) }
            await room.step(seconds: 0.1)
            _ = (player.currentTime(), player.timeControlStatus, player.hostTime())
        }
        try player.setRate(1, time: Self.seconds(1), atHostTime: room.groupNow + .milliseconds(200))
        await room.step(seconds: 0.6)
        let time = player.currentTime().seconds
        #expect(time > 1.3 && time < 1.5, "\(time)")
        #expect(room.heard.suffix(50).allSatisfy { $0.value > 0.2 })
    }

    @Test func `a line from a time that is none is refused, and what plays goes on`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 20), shared: true)
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 0.5)
        let refusal = #expect(throws: PlaybackError.self) {
            try player.setRate(1, time: .indefinite, atHostTime: room.groupNow)
        }
        #expect(refusal?.code == .timeNotNumeric)
        await room.step(seconds: 0.3)
        let due = (room.groupNow - host).seconds
        #expect(abs(player.currentTime().seconds - due) < 1e-4)
    }

    @Test func `a preroll for another rate still lets the line be met`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 20), shared: true)
        #expect(
            try await room.during { try await player.preroll(atRate: 2, time: Self.seconds(3)) })
        let host = room.groupNow + .milliseconds(300)
        try player.setRate(1, time: Self.seconds(3), atHostTime: host)
        await room.step(seconds: 1.2)
        let last = try #require(room.heard.last)
        let at = (room.clock.load().map(last.instant) - host).seconds
        #expect(abs(TestSource.frame(ofValue: last.value) / 8_000 - 3 - at) < 2 / 8_000)
        #expect(abs(player.currentTime().seconds - 3 - (room.groupNow - host).seconds) < 1e-4)
    }

    @Test func `a preroll that is full is true once more, and starts nothing`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        for _ in 0..<3 {
            #expect(try await room.during { try await player.preroll(atRate: 1) })
        }
        await room.step(seconds: 1)
        #expect(player.rate == 0 && player.currentTime() == .zero)
        #expect(room.heard.allSatisfy { $0.value == 0 })
        player.cancelPendingPrerolls()
        player.cancelPendingPrerolls()
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }

    /// Ranges of two files in one item, and that item second in a queue that keeps to a clock.
    @Test func `a composition in a queue is on the queue's line`() async throws {
        let room = VirtualRoom()
        var composition = Composition()
        let half = MediaTime(value: 1, timescale: 2)
        // The whole is one ramp: two seconds of the first item, then a half and a half.
        for offset in [16_000, 20_000] as [Int64] {
            try composition.insert(
                TimeRange(start: .zero, duration: half),
                of: Library(offset: offset).asset(seconds: 1), at: composition.duration)
        }
        let stitched = PlayerItem(asset: Asset(composition))
        stitched.audioTimePitchAlgorithm = .varispeed
        let items = [
            Library().item(seconds: 2), stitched, Library(offset: 24_000).item(seconds: 2),
        ]
        let player = try room.makeQueue(items, shared: true)
        try await items[0].ready()
        await room.step(seconds: 1)
        let host = room.groupNow + .milliseconds(400)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step { player.currentItem == nil }
        let heard = room.frames(
            from: room.local(host + .milliseconds(50)), to: room.local(host + .milliseconds(4_950)))
        let worst = heard.map {
            abs($0.frame - (room.clock.load().map($0.instant) - host).seconds * 8_000)
        }.max()
        // The ripple of the resampler's filter at a join; a frame out of place would stay so.
        #expect(try #require(worst) < 40)
        let away = heard.filter { sample in
            [2.0, 2.5, 3].allSatisfy { abs(sample.frame / 8_000 - $0) > 0.03 }
        }
        let off = away.map {
            abs($0.frame - (room.clock.load().map($0.instant) - host).seconds * 8_000)
        }.max()
        #expect(try #require(off) < 1.5, "\(off ?? 0) frames off the line away from the joins")
    }
}
