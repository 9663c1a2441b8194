import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Section 1 of what players promise: clocks that are read, compared and played by; see Semantics.md.
@Suite(.timeLimit(.minutes(1))) struct ClockSemanticsTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    private func clocks(in room: VirtualRoom, manualRate: Double = 1.25) -> [MediaClock] {
        let now: @Sendable () -> LocalInstant = { room.now }
        return [
            .host(now: now),
            .manual(at: GroupInstant(nanoseconds: 5_000_000_000), rate: manualRate, now: now),
            room.groupClock, .device(room.output),
        ]
    }

    @Test func `what is converted there and back is what it was, of every pair of clocks`()
        async throws
    {
        let room = VirtualRoom()
        let clocks = clocks(in: room)
        await room.step(seconds: 3)
        for one in clocks {
            for other in clocks {
                let instant = one.now() + .seconds(7)
                let there = one.convert(instant, to: other)
                let back = other.convert(there, to: one)
                #expect(abs((back - instant).count) <= 2, "\(back) of \(instant)")
                // Both relations agree: what passes there while a second passes here.
                let passed = (one.convert(instant + .seconds(1), to: other) - there).seconds
                #expect(abs(passed - other.rate(relativeTo: one)) < 1e-8)
                #expect(abs(one.rate(relativeTo: other) * other.rate(relativeTo: one) - 1) < 1e-12)
                // And with what they read.
                #expect(abs((one.convert(one.now(), to: other) - other.now()).count) <= 2)
            }
        }
    }

    @Test func `crystals drift, and a clock does not against itself or by hand`() {
        let room = VirtualRoom()
        let clocks = clocks(in: room)
        // host, manual, group, device
        let drifts = clocks.map { one in clocks.map { one.mightDrift(relativeTo: $0) } }
        #expect(drifts[0] == [false, false, true, true])
        #expect(drifts[1] == [false, false, true, true])
        #expect(drifts[2] == [true, true, false, true])
        #expect(drifts[3] == [true, true, true, false])
    }

    @Test func `a clock set by hand goes on from where it is set`() async throws {
        let room = VirtualRoom()
        let clock = clocks(in: room)[1]
        #expect(clock.now() == GroupInstant(nanoseconds: 5_000_000_000))
        await room.step(seconds: 2)
        #expect(abs((clock.now() - GroupInstant(nanoseconds: 7_500_000_000)).count) <= 2)
        #expect(clock.setRate(0.5))
        await room.step(seconds: 2)
        #expect(abs((clock.now() - GroupInstant(nanoseconds: 8_500_000_000)).count) <= 4)
        #expect(clock.setTime(GroupInstant(nanoseconds: -3)))
        #expect(clock.now() == GroupInstant(nanoseconds: -3))
        for rate in [0, -1, 2.1, .nan, .infinity] { #expect(!clock.setRate(rate), "\(rate)") }
        await room.step(seconds: 1)
        #expect(abs((clock.now() - GroupInstant(nanoseconds: 499_999_997)).count) <= 2)
        for other in [clocks(in: room)[0], room.groupClock] {
            #expect(!other.setRate(1.5) && !other.setTime(GroupInstant(nanoseconds: 0)))
        }
    }

    /// One that was made with a rate that cannot be is at least where it was asked to be.
    @Test(arguments: [0, 3, -1, .nan, .infinity])
    func `a clock made with a rate that cannot be reads what was asked for`(rate: Double) {
        let room = VirtualRoom()
        let instant = GroupInstant(nanoseconds: 5_000_000_000)
        let clock = MediaClock.manual(at: instant, rate: rate, now: { room.now })
        #expect(clock.now() == instant)
    }

    @Test(arguments: [1.0, 2, -1, 0.5])
    func `an item's timebase is its line`(rate: Double) async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 30)
        #expect(item.timebase.rate == 0 && item.timebase.time(at: room.groupNow) == .zero)
        let player = try await room.makeReadyPlayer(item, shared: true)
        _ = try await room.during { try await player.preroll(atRate: rate, time: Self.seconds(10)) }
        let host = room.groupNow + .milliseconds(300)
        try player.setRate(rate, time: Self.seconds(10), atHostTime: host)
        await room.step(seconds: 1)
        let timebase = item.timebase
        #expect(timebase.rate == rate)
        #expect(abs((timebase.time(at: host) - Self.seconds(10)).seconds) < 1e-6)
        let now = player.hostTime()
        #expect(abs(timebase.time(at: now).seconds - player.currentTime().seconds) < 1e-6)
        let later = try #require(timebase.instant(of: Self.seconds(10 + 2 * rate)))
        #expect(abs((later - host).seconds - 2) < 1e-6)
        player.pause()
        await room.step(seconds: 0.5)
        #expect(item.timebase.rate == 0)
        #expect(item.timebase.time(at: player.hostTime()) == player.currentTime())
        try player.replaceCurrentItem(with: nil)
        #expect(item.timebase.rate == 0 && item.timebase.time(at: room.groupNow) == .zero)
    }

    @Test func `a timebase by the card's own clock is where item time is`() async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 30)
        let player = try await room.makeReadyPlayer(item)
        try player.setRate(1.5)
        await room.step(seconds: 1)
        for _ in 0..<20 {
            await room.step(seconds: 0.05)
            let time = item.timebase.time(at: player.hostTime())
            #expect(abs(time.seconds - player.currentTime().seconds) < 1e-4)
        }
        #expect(item.timebase.rate == 1.5)
    }

    /// From any clock to any other, forwards and backwards: item time goes on, and so does the sound.
    @Test(arguments: [1.0, -1, 2])
    func `another clock does not make item time jump`(rate: Double) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 40))
        player.automaticallyWaitsToMinimizeStalling = false
        _ = try await room.during { await player.seek(to: Self.seconds(20)) }
        try player.setRate(rate)
        await room.step(seconds: 1)
        let said = NoticeLog(player)
        let clocks = clocks(in: room, manualRate: 1.0002)
        for clock in [clocks[0], clocks[1], nil, clocks[2], clocks[3], clocks[1], nil, clocks[0]] {
            let before = player.currentTime().seconds
            player.sourceClock = clock
            #expect(abs(player.currentTime().seconds - before) < 1e-4)
            for _ in 0..<30 {
                let last = player.currentTime().seconds
                await room.step()
                let step = (player.currentTime().seconds - last) / rate
                #expect(step > 0.008 && step < 0.012, "\(step)")
            }
        }
        #expect(player.timeControlStatus == .playing && said.count("stalled") == 0)
        #expect(said.count("jumped") == 0, "\(said.all)")
        let heard = try #require(room.heard.last)
        let due = heard.frame / 8_000 + rate * (room.now - heard.instant).seconds
        #expect(abs(player.currentTime().seconds - due) < 2e-3)
        // A voice cannot change its clock while it sounds: each time another takes over, in 10 ms.
        let silent = room.frames(from: room.now - .seconds(2), to: room.now).count {
            $0.value < 0.2
        }
        #expect(silent <= 8 * 80, "\(silent) frames")
    }

    @Test func `a player by a clock at its own rate keeps to it`() async throws {
        let room = VirtualRoom()
        let clock = MediaClock.manual(
            at: GroupInstant(nanoseconds: 0), rate: 1.0005, now: { room.now })
        let player = try await room.makeReadyPlayer(Library().item(seconds: 30))
        player.automaticallyWaitsToMinimizeStalling = false
        player.sourceClock = clock
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let host = clock.now() + .milliseconds(400)
        #expect(player.hostTime() == clock.now())
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 8)
        #expect(abs(player.currentTime().seconds - (clock.now() - host).seconds) < 1e-6)
        let heard = try #require(room.heard.last)
        let at = (clock.now() - host).seconds - 1.0005 * (room.now - heard.instant).seconds
        #expect(abs(heard.frame / 8_000 - at) < 2 / 8_000)
    }
}

extension VirtualRoom.Heard {
    /// The item frame that its value says.
    var frame: Double { TestSource.frame(ofValue: value) }
}
