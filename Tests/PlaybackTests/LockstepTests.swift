import Synchronization
import Testing
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The heart: item time t leaves the card at host time h, on a card and a clock that both drift.
struct LockstepTests {
    /// One frame of the card, and the resolution of the ramp.
    static let tolerance = 1.0
    static let frame = Nanoseconds(125_000)
    /// The fades of the output.
    static let fade = Nanoseconds.milliseconds(6)

    /// Every sample heard from `start` to `end` lies on the line.
    func expectOnLine(
        _ room: VirtualRoom, _ line: Line, from start: GroupInstant, to end: GroupInstant,
        sampleRate: Double = 8_000, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let frames = room.frames(from: room.local(start), to: room.local(end))
        #expect(frames.count > 10, sourceLocation: sourceLocation)
        var worst = 0.0
        for heard in frames {
            let at = room.clock.load().map(heard.instant)
            let due = line.itemFrame + (at - line.instant).seconds * line.rate * sampleRate
            worst = max(worst, abs(heard.frame - due))
        }
        #expect(worst <= Self.tolerance * max(1, line.rate), sourceLocation: sourceLocation)
    }

    /// Nothing at all is heard.
    func expectSilence(
        _ room: VirtualRoom, from start: GroupInstant, to end: GroupInstant,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let frames = room.frames(from: room.local(start), to: room.local(end))
        #expect(frames.count > 10, sourceLocation: sourceLocation)
        let loudest = frames.map { abs($0.value) }.max() ?? 0
        // The resampler's filter rings for some ten frames around an edge, not in the middle.
        #expect(loudest < 1e-3, sourceLocation: sourceLocation)
    }

    @Test(arguments: [(80.0, 50e-6), (-120, -300e-6), (300, 0)])
    func `a prerolled start is on its instant and stays on the line`(
        cardPartsPerMillion: Double, skew: Double
    ) async throws {
        let room = VirtualRoom(cardPartsPerMillion: cardPartsPerMillion, clockSkew: skew)
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 4)
        let line = Line(itemFrame: 0, instant: host, rate: 1)
        expectSilence(room, from: host - .milliseconds(150), to: host - Self.fade)
        expectOnLine(room, line, from: host + Self.fade, to: host + .milliseconds(3_700))
        // The step from silence passes its half within a frame of the instant.
        let onset = room.heard.first {
            $0.instant > room.local(host - Self.fade) && $0.value > TestSource.base / 2
        }
        let error = try #require(onset).instant - room.local(host)
        #expect(error.magnitude <= Self.frame)
    }

    @Test func `a start in the middle of an item is on the line behind its fade`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        let time = MediaTime(value: 1_234, timescale: 1_000)
        #expect(try await room.during { try await player.preroll(atRate: 1, time: time) })
        let host = room.groupNow + .milliseconds(150)
        try player.setRate(1, time: time, atHostTime: host)
        await room.step(seconds: 2)
        let line = Line(itemFrame: 9_872, instant: host, rate: 1)
        expectSilence(room, from: host - .milliseconds(100), to: host - Self.fade)
        expectOnLine(room, line, from: host + Self.fade, to: host + .seconds(1))
        let expected = line.itemFrame / 8_000 + (room.groupNow - host).seconds
        #expect(abs(player.currentTime().seconds - expected) < 1e-6)
    }

    @Test(arguments: [0.5, 0.9, 1.25, 2])
    func `other rates keep their line`(rate: Double) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        #expect(try await room.during { try await player.preroll(atRate: rate) })
        let host = room.groupNow + .milliseconds(150)
        try player.setRate(rate, time: .zero, atHostTime: host)
        await room.step(seconds: 2)
        expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: rate), from: host + .milliseconds(15),
            to: host + .milliseconds(1_700))
    }

    @Test func `a pause is heard at its instant and a resume continues there`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(), shared: true)
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let host = room.groupNow + .milliseconds(150)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 1)
        let stop = room.groupNow + .milliseconds(200)
        try player.setRate(0, time: .invalid, atHostTime: stop)
        #expect(player.rate == 0)
        await room.step(seconds: 1)
        let line = Line(itemFrame: 0, instant: host, rate: 1)
        expectOnLine(room, line, from: host + Self.fade, to: stop - Self.fade)
        expectSilence(room, from: stop + Self.frame, to: stop + .milliseconds(500))
        let stood = player.currentTime()
        #expect(abs(stood.seconds - (stop - host).seconds) < 2e-9)

        let opened = library.state.withLock { $0.opened }
        let again = room.groupNow + .milliseconds(120)
        try player.setRate(1, time: .invalid, atHostTime: again)
        await room.step(seconds: 1)
        let resumed = Line(itemFrame: stood.seconds * 8_000, instant: again, rate: 1)
        expectSilence(room, from: again - .milliseconds(100), to: again - Self.fade)
        expectOnLine(room, resumed, from: again + Self.fade, to: again + .milliseconds(700))
        // What the ring still held was enough.
        #expect(library.state.withLock { $0.opened } == opened)
    }

    @Test(arguments: [0.05, 1, 5])
    func `a host time already past joins where the line is now`(past: Double) async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(), shared: true)
        let now = room.groupNow
        let host = now - Nanoseconds(seconds: past)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 1)
        let line = Line(itemFrame: 0, instant: host, rate: 1)
        let joined = now + room.output.latency + .milliseconds(20)
        expectOnLine(room, line, from: joined, to: now + .milliseconds(800))
        // Decoding began where the line was to be, not where it had been.
        let ahead = (room.output.latency.seconds + past) * 8_000
        let sought = try #require(library.state.withLock { $0.seeks.last })
        #expect(abs(Double(sought) - max(0, ahead - 256)) <= 80)
        #expect(abs(player.currentTime().seconds - (room.groupNow - host).seconds) < 1e-8)
    }

    @Test func `a late join uses what was prerolled for where the line will be`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(), shared: true)
        let host = room.groupNow - .seconds(2)
        let meeting = MediaTime(value: 5, timescale: 2)
        #expect(try await room.during { try await player.preroll(atRate: 1, time: meeting) })
        let opened = library.state.withLock { $0.opened }
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 2)
        #expect(library.state.withLock { $0.opened } == opened)
        expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1), from: host + .milliseconds(2_510),
            to: host + .milliseconds(3_700))
    }

    @Test func `a prerolled seek takes over at its instant`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let host = room.groupNow + .milliseconds(150)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 1)
        let target = MediaTime(value: 5, timescale: 1)
        #expect(try await room.during { try await player.preroll(atRate: 1, time: target) })
        let change = room.groupNow + .milliseconds(100)
        try player.setRate(1, time: target, atHostTime: change)
        await room.step(seconds: 1)
        expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1), from: host + Self.fade,
            to: change - Self.fade)
        expectOnLine(
            room, Line(itemFrame: 40_000, instant: change, rate: 1), from: change + Self.fade,
            to: change + .milliseconds(700))
        // The old voice has been given back.
        await room.step(seconds: 1)
        #expect(room.freeVoices == OutputPort.voiceLimit - 1)
    }

    @Test func `a newer call replaces a pending one`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let start = room.groupNow
        try player.setRate(1, time: .zero, atHostTime: start + .milliseconds(900))
        await room.step(seconds: 0.2)
        try player.setRate(1, time: .zero, atHostTime: start + .milliseconds(500))
        await room.step(seconds: 1)
        let line = Line(itemFrame: 0, instant: start + .milliseconds(500), rate: 1)
        expectSilence(room, from: start, to: line.instant - Self.fade)
        expectOnLine(room, line, from: line.instant + Self.fade, to: start + .milliseconds(1_100))
        // A pause that is replaced before its instant never happens.
        try player.setRate(0, time: .invalid, atHostTime: room.groupNow + .milliseconds(300))
        await room.step(seconds: 0.1)
        try player.setRate(1, time: .invalid, atHostTime: room.groupNow + .milliseconds(400))
        await room.step(seconds: 1)
        expectOnLine(room, line, from: line.instant + Self.fade, to: start + .milliseconds(2_100))
    }

    @Test(arguments: [1.0, 6.0])
    func `after a decoder stood still the player is back on the line`(stall: Double) async throws {
        let room = VirtualRoom()
        let library = Library()
        // The ring holds 14 s of this item, so the decoder must stand still from the beginning.
        let player = try await room.makeReadyPlayer(library.item(seconds: 60), shared: true)
        library.state.withLock { $0.blocksAt = 12_000 }
        let host = room.groupNow + .milliseconds(300)
        room.waitsForFeeds = false
        try player.setRate(1, time: .zero, atHostTime: host)
        // No more time goes by than that, however slow the machine is: a longer way is jumped over.
        while library.state.withLock({ $0.readsWaiting == 0 }) {
            await room.step(seconds: 0.01)
            try await Task.sleep(for: .milliseconds(5))
        }
        await room.step(seconds: 2.5 + stall)
        #expect(player.rate == 1)
        library.state.withLock { $0.blocksAt = nil }
        // From here on time waits for the decoder, however slow the machine is.
        room.waitsForFeeds = true
        await room.step { (room.heard.last?.value ?? 0) > TestSource.base }
        await room.step(seconds: 1)
        let line = Line(itemFrame: 0, instant: host, rate: 1)
        expectOnLine(room, line, from: room.groupNow - .milliseconds(700), to: room.groupNow)
        // A long way is not decoded but jumped over.
        #expect(library.state.withLock { $0.seeks.contains { $0 > 20_000 } } == (stall > 2))
        await room.step(seconds: 1)
        #expect(room.freeVoices == OutputPort.voiceLimit - 1)
    }

    /// The decoder goes on before the output thread, and finds the ring full of what the voice will
    /// jump over.
    @Test(arguments: [6.0, 13.0, 13.5])
    func `after everything stood still what is decoded lasts until more is`(
        stall: Double
    ) async throws {
        let room = VirtualRoom()
        // The ring holds 14 s of this item.
        let player = try await room.makeReadyPlayer(Library().item(seconds: 60), shared: true)
        let host = room.groupNow + .milliseconds(300)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 3)
        await room.standStill(seconds: stall)
        let back = room.groupNow
        await room.step(seconds: 2)
        expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1), from: back + .milliseconds(500),
            to: back + .milliseconds(1_900))
    }

    /// What is left of the ring then is played while more is decoded.
    @Test(arguments: [6.0, 13.0, 13.2, 13.4, 13.6, 13.8, 14, 14.2, 14.4, 20])
    func `a card that comes back sounds without a hole`(away: Double) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 60), shared: true)
        let host = room.groupNow + .milliseconds(300)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 3)
        await room.loseCard(seconds: away)
        let back = room.heard.count
        await room.step(seconds: 4)
        let sound = room.heard[back...].drop { $0.value < TestSource.base / 2 }
        let first = try #require(sound.first)
        let begin = room.clock.load().map(first.instant)
        expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1), from: begin + Self.fade,
            to: begin + .seconds(2))
    }

    @Test func `two players on one port follow each other without a gap`() async throws {
        let room = VirtualRoom()
        let first = try await room.makeReadyPlayer(Library().item(seconds: 1.5), shared: true)
        let second = try await room.makeReadyPlayer(Library().item(), shared: true)
        #expect(try await room.during { try await first.preroll(atRate: 1) })
        #expect(try await room.during { try await second.preroll(atRate: 1) })
        let host = room.groupNow + .milliseconds(150)
        let join = host + .milliseconds(1_500)
        try first.setRate(1, time: .zero, atHostTime: host)
        try second.setRate(1, time: .zero, atHostTime: join)
        await room.step(seconds: 3)
        expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1), from: host + Self.fade,
            to: join - .milliseconds(10))
        expectOnLine(
            room, Line(itemFrame: 0, instant: join, rate: 1), from: join + .milliseconds(10),
            to: join + .seconds(1))
        // No gap: between the two, no sample falls far below the quieter of both sides.
        let seam = room.frames(
            from: room.local(join - .milliseconds(10)), to: room.local(join + .milliseconds(10)))
        #expect((seam.map(\.value).min() ?? 0) > TestSource.base * 0.85)
        #expect(first.rate == 0)
        #expect(first.currentTime() == MediaTime(value: 3, timescale: 2))
    }

    @Test func `changing the source clock while playing does not make item time jump`()
        async throws
    {
        let room = VirtualRoom(clockSkew: 200e-6)
        let player = try await room.makeReadyPlayer(Library().item())
        player.automaticallyWaitsToMinimizeStalling = false
        try player.playImmediately(atRate: 1)
        await room.step(seconds: 1)
        let before = player.currentTime()
        player.sourceClock = room.groupClock
        let after = player.currentTime()
        // Both clocks agree at the hand-over; until then, 165 ms, they part by 280 ppm.
        #expect((after - before).magnitude.seconds < 50e-6)
        await room.step(seconds: 1)
        // On the shared clock from then on: what is heard is what the player says.
        let line = Line(
            itemFrame: player.currentTime().seconds * 8_000, instant: room.groupNow, rate: 1)
        expectOnLine(
            room, line, from: room.groupNow - .milliseconds(600), to: room.groupNow)
        #expect(abs((player.currentTime() - after).seconds - 1.000_2) < 1e-4)

        let second = player.currentTime()
        player.sourceClock = nil
        #expect((player.currentTime() - second).magnitude.seconds < 50e-6)
        await room.step(seconds: 1)
        let gone = (player.currentTime() - second).seconds
        #expect(abs(gone - 1) < 1e-3)
        let last = try #require(room.heard.last)
        let error =
            player.currentTime().seconds - (room.now - last.instant).seconds
            - TestSource.frame(ofValue: last.value) / 8_000
        #expect(abs(error) < 2e-4)
    }

    @Test func `a rate at a host time is refused with the reason`() async throws {
        let room = VirtualRoom()
        let player = room.makePlayer()
        func code(_ body: () throws -> Void) -> PlaybackError.Code? {
            do {
                try body()
                return nil
            } catch { return (error as? PlaybackError)?.code }
        }
        #expect(code { try player.setRate(1, time: .zero) } == .waitsToMinimizeStalling)
        player.automaticallyWaitsToMinimizeStalling = false
        #expect(code { try player.setRate(1, time: .zero) } == .noItem)
        let item = Library().item()
        try player.replaceCurrentItem(with: item)
        try await item.ready()
        #expect(code { try player.setRate(0.03, time: .zero) } == .rateNotSupported)
        #expect(code { try player.setRate(-33, time: .zero) } == .rateNotSupported)
        #expect(code { try player.setRate(.nan) } == .rateNotSupported)
        #expect(code { try player.setRate(.nan) } == .rateNotSupported)
        #expect(code { try player.setRate(1, time: .indefinite) } == .timeNotNumeric)
        #expect(player.rate == 0)
        #expect(code { try player.setRate(1, time: .zero) } == nil)
    }
}
