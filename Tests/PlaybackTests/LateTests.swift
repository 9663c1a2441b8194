import Synchronization
import Testing
import TuttiChance
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Whatever comes late (an item that has loaded, a feed that is filled, starved, ended or closed)
/// changes nothing of what was decided meanwhile.
struct LateTests {
    static let fade = Nanoseconds.milliseconds(6)

    /// Holds reports back for exactly that long.
    static func room(latest: Nanoseconds, seed: UInt64 = 1) -> VirtualRoom {
        let room = VirtualRoom()
        room.lateness = Lateness(seed: seed, longest: latest)
        return room
    }

    @Test(arguments: [40, 200, 900])
    func `an item that is noticed to be loaded after a start was given leaves that start alone`(
        milliseconds: Int64
    ) async throws {
        let room = VirtualRoom()
        let waiting = Mutex<[@Sendable () -> Void]>([])
        var output = room.output
        output.postpone = { report in waiting.withLock { $0.append(report) } }
        let player = Player(output: output)
        player.sourceClock = room.groupClock
        player.automaticallyWaitsToMinimizeStalling = false
        let item = Library().item()
        try player.replaceCurrentItem(with: item)
        try await item.ready()
        await room.step(seconds: 1)
        let place = MediaTime(value: 3, timescale: 1)
        async let filled = player.preroll(atRate: 1, time: place)
        while !player.state.withLock({ state in
            state.machine.prepared.flatMap { state.feeds[$0] }?.isFilled ?? false
        }) { await Task.yield() }
        #expect(try await filled)
        let host = room.groupNow + .milliseconds(120)
        try player.setRate(1, time: place, atHostTime: host)
        await room.step(seconds: Double(milliseconds) / 1_000)
        for report in waiting.withLock({ $0 }) { report() }
        await room.step(seconds: 1)
        LockstepTests().expectOnLine(
            room, Line(itemFrame: 24_000, instant: host, rate: 1), from: host + Self.fade,
            to: host + .milliseconds(800))
        LockstepTests().expectSilence(room, from: host - .milliseconds(100), to: host - Self.fade)
    }

    @Test(arguments: [false, true])
    func `a preroll before anybody was told that the item is ready fills its own place`(
        isPlaying: Bool
    ) async throws {
        let room = VirtualRoom()
        let waiting = Mutex<[@Sendable () -> Void]>([])
        var output = room.output
        output.postpone = { report in waiting.withLock { $0.append(report) } }
        let player = Player(output: output)
        let item = Library().item()
        try player.replaceCurrentItem(with: item)
        if isPlaying { player.play() }
        async let hasArrived = player.seek(to: MediaTime(value: 3, timescale: 1))
        while player.state.withLock({ $0.machine.seek == nil }) { await Task.yield() }
        try await item.ready()
        #expect(try await player.preroll(atRate: 1, time: MediaTime(value: 5, timescale: 1)))
        let filled = player.state.withLock { state in
            state.machine.prepared.flatMap { state.feeds[$0]?.bufferedFrames }
        }
        #expect(filled?.contains(40_000) == true)
        player.state.withLock { $0.output.postpone = nil }
        for report in waiting.withLock({ $0 }) { report() }
        while player.state.withLock({ $0.machine.seek != nil }) { await room.step() }
        #expect(await hasArrived)
    }

    @Test func `a preroll whose task is cancelled late does not take the feed that was started`()
        async throws
    {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(), shared: true)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        let preroll = Task { try await player.preroll(atRate: 1, time: .zero) }
        await room.step { library.state.withLock { $0.readsWaiting > 0 } }
        let host = room.groupNow + .milliseconds(200)
        try player.setRate(1, time: .zero, atHostTime: host)
        preroll.cancel()
        #expect(try await preroll.value == false)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        await room.step(seconds: 1)
        LockstepTests().expectOnLine(
            room, Line(itemFrame: 0, instant: host, rate: 1), from: host + Self.fade,
            to: host + .milliseconds(700))
    }

    @Test func `a start back within what is buffered is no end, though the voice had ended`()
        async throws
    {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 1), shared: true)
        #expect(try await room.during { try await player.preroll(atRate: 1) })
        let host = room.groupNow + .milliseconds(150)
        try player.setRate(1, time: .zero, atHostTime: host)
        await room.step(seconds: 1)
        // The pause comes after the end.
        try player.setRate(0, atHostTime: host + .milliseconds(1_005))
        await room.step(seconds: 0.5)
        let notices = Notices(player)
        let again = room.groupNow + .milliseconds(100)
        try player.setRate(1, time: MediaTime(value: 1, timescale: 2), atHostTime: again)
        await room.step(seconds: 0.4)
        #expect(player.rate == 1)
        LockstepTests().expectOnLine(
            room, Line(itemFrame: 4_000, instant: again, rate: 1), from: again + Self.fade,
            to: again + .milliseconds(280))
        await room.step(seconds: 0.6)
        let said = await notices.drain()
        #expect(said.filter { $0 == "end" }.count == 1)
    }

    /// Random commands, each with reports still under way from those before. What counts is what was
    /// asked for last: which item, which frame, at which instant.
    @Test(arguments: 0..<16)
    func `what is heard is what was asked for last, whatever comes late`(seed: UInt64) async throws
    {
        var random = SplitMix64(seed: seed &* 7_919 &+ 1)
        let room = Self.room(latest: .milliseconds(90), seed: seed)
        let libraries = [Library(sign: 1), Library(sign: -1)]
        let player = room.makePlayer(shared: true)
        var which = 0
        try player.replaceCurrentItem(with: libraries[which].item())
        try await #require(player.currentItem).ready()
        await room.step(seconds: 1)
        for _ in 0..<10 {
            for _ in 0..<random.below(4) {
                try await disturb(player, room, libraries, &which, &random)
                await room.step(seconds: random.milliseconds(0..<120).seconds)
            }
            if random.below(3) == 0 {
                which = 1 - which
                try player.replaceCurrentItem(with: libraries[which].item())
            }
            try await #require(player.currentItem).ready()
            player.sourceClock = room.groupClock
            let frame = Int64(random.below(20_000))
            let rate = [1, 1.25, 0.8][Int(random.below(3))]
            let time = MediaTime(frame: frame, sampleRate: 8_000)
            if random.below(2) == 0 {
                _ = try await room.during { try await player.preroll(atRate: rate, time: time) }
            }
            let host = room.groupNow + random.milliseconds(60..<400)
            try player.setRate(rate, time: time, atHostTime: host)
            await room.step(seconds: (host - room.groupNow).seconds + 0.5)
            #expect(player.rate == rate)
            expect(
                room, Line(itemFrame: Double(frame), instant: host, rate: rate),
                sign: libraries[which].sign, from: host + .milliseconds(200),
                to: host + .milliseconds(440), seed: seed)
            guard random.below(3) == 0 else { continue }
            let stop = room.groupNow + random.milliseconds(60..<300)
            try player.setRate(0, atHostTime: stop)
            await room.step(seconds: (stop - room.groupNow).seconds + 0.3)
            LockstepTests().expectSilence(
                room, from: stop + .milliseconds(2), to: stop + .milliseconds(250))
        }
    }

    /// Something that is overtaken by what follows it.
    private func disturb(
        _ player: Player, _ room: VirtualRoom, _ libraries: [Library], _ which: inout Int,
        _ random: inout SplitMix64
    ) async throws {
        let time = MediaTime(frame: Int64(random.below(40_000)), sampleRate: 8_000)
        switch random.below(9) {
        case 0: player.play()
        case 1: player.pause()
        case 2: try player.setRate(random.below(2) == 0 ? 1.25 : 1)
        case 3: try player.playImmediately(atRate: 1)
        case 4: Task { await player.seek(to: time) }
        case 5: _ = try await room.during { await player.seek(to: time) }
        case 6:
            which = 1 - which
            try player.replaceCurrentItem(with: libraries[which].item())
        case 7: player.sourceClock = random.below(2) == 0 ? nil : room.groupClock
        default: Task { try? await player.preroll(atRate: 1, time: time) }
        }
    }

    private func expect(
        _ room: VirtualRoom, _ line: Line, sign: Float, from start: GroupInstant,
        to end: GroupInstant, seed: UInt64
    ) {
        var worst = 0.0
        for heard in room.heard
        where heard.instant >= room.local(start) && heard.instant < room.local(end) {
            let at = room.clock.load().map(heard.instant)
            let due = line.itemFrame + (at - line.instant).seconds * line.rate * 8_000
            worst = max(worst, abs(TestSource.frame(ofValue: heard.value * sign) - due))
        }
        #expect(worst <= max(1, line.rate), "seed \(seed): \(line)")
    }
}
