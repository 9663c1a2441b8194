import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Seeks, and times that are told, of section 2 of what players promise; see Semantics.md.
@Suite(.timeLimit(.minutes(1))) struct SeekSemanticsTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    // MARK: Seeking

    @Test func `without an item a seek ends with false, and a preroll says why`() async throws {
        let room = VirtualRoom()
        let player = room.makePlayer()
        #expect(await player.seek(to: Self.seconds(1)) == false)
        #expect(await player.seek(to: .zero) == false)
        let refusal = await #expect(throws: PlaybackError.self) {
            try await player.preroll(atRate: 1)
        }
        #expect(refusal?.code == .noItem)
        #expect(player.currentTime() == .zero)
    }

    @Test func `a seek before the item is ready is kept, and playing begins there`() async throws {
        let room = VirtualRoom()
        let player = room.makePlayer()
        let said = NoticeLog(player)
        await room.step(seconds: 1)
        try player.replaceCurrentItem(with: Library().item())
        player.play()
        #expect(try await room.during { await player.seek(to: Self.seconds(3)) })
        await room.step(seconds: 0.5)
        // Behind the fade: from there, and nothing of what is before it.
        let frames = room.heard.drop { $0.value < 0.1 }.dropFirst(60).map(\.frame)
        #expect(abs(try #require(frames.first) - 24_060) < 30)
        #expect(frames.allSatisfy { $0 > 24_000 })
        #expect(said.count("status readyToPlay") == 1)
    }

    @Test(
        arguments: [
            MediaTime.zero, .positiveInfinity, .invalid, .indefinite, .negativeInfinity,
            MediaTime(value: -5, timescale: 1), MediaTime(value: .max, timescale: 1),
        ])
    func `whatever is tolerated, a seek is exact`(tolerance: MediaTime) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let target = MediaTime(frame: 12_345, sampleRate: 8_000)
        let isThere = try await room.during {
            await player.seek(to: target, toleranceBefore: tolerance, toleranceAfter: tolerance)
        }
        #expect(isThere && player.currentTime() == target)
    }

    /// What was published between was the old place or the new one.
    @Test(arguments: [false, true])
    func `a seek is one jump, and no time between is told`(isPlaying: Bool) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 30))
        _ = try await room.during { await player.seek(to: Self.seconds(10)) }
        if isPlaying { player.play() }
        await room.step(seconds: 0.5)
        let said = NoticeLog(player)
        let seek = Task { await player.seek(to: Self.seconds(20)) }
        for _ in 0..<60 {
            await room.step()
            let time = player.currentTime().seconds
            #expect((time >= 10 && time < 11.5) || (time >= 20 && time < 21.5), "\(time)")
        }
        #expect(await seek.value)
        #expect(said.count("jumped") == 1, "\(said.all)")
    }

    @Test(arguments: ["play", "pause", "rate", "poll", "again", "same item"])
    func `a seek while paused is not undone by what is asked meanwhile`(what: String) async throws {
        let room = VirtualRoom()
        let library = Library()
        let item = library.item(seconds: 30)
        let player = try await room.makeReadyPlayer(item)
        let seek = Task { await player.seek(to: Self.seconds(20)) }
        while player.state.withLock({ $0.machine.seek == nil }),
            player.currentTime() == .zero
        { await Task.yield() }
        switch what {
        case "play": player.play()
        case "pause": player.pause()
        case "rate": try player.setRate(2)
        case "same item": try player.replaceCurrentItem(with: item)
        case "again": _ = try await room.during { await player.seek(to: Self.seconds(20)) }
        default: for _ in 0..<100 { _ = player.currentTime() }
        }
        await room.step(seconds: 0.5)
        let isThere = await seek.value
        #expect(isThere || what == "again")
        #expect(player.currentTime().seconds >= 20)
        if !["play", "rate"].contains(what) {
            #expect(player.rate == 0 && player.currentTime() == Self.seconds(20))
        }
    }

    @Test(arguments: [Player.ActionAtItemEnd.pause, .none])
    func `a seek to exactly the end while playing is the end, said once`(
        action: Player.ActionAtItemEnd
    ) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 5))
        player.actionAtItemEnd = action
        player.play()
        await room.step(seconds: 0.5)
        let said = NoticeLog(player)
        _ = try await room.during { await player.seek(to: Self.seconds(5)) }
        await room.step(seconds: 1)
        #expect(said.count("end") == 1, "\(said.all)")
        #expect(said.count("failed") == 0 && player.error == nil)
        if action == .pause {
            #expect(player.rate == 0 && player.currentTime() == Self.seconds(5))
        } else {
            #expect(player.rate == 1 && player.currentTime() > Self.seconds(5))
        }
        // And it plays again from anywhere.
        _ = try await room.during { await player.seek(to: Self.seconds(4)) }
        player.play()
        await room.step { said.count("end") == 2 }
    }

    @Test func `a hundred seeks to the end and about it end, and the player goes on`() async throws
    {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 5))
        player.play()
        await room.step(seconds: 0.2)
        let seeks = (0..<100).map { n in
            Task { await player.seek(to: Self.seconds([5, 4.9999, 5.1, 4.5][n % 4])) }
        }
        await room.step(seconds: 1)
        for seek in seeks { _ = try await room.during { await seek.value } }
        #expect(player.currentTime() <= Self.seconds(5) && player.error == nil)
        let seen = player.periodicTimes(every: Self.seconds(0.1))
        _ = try await room.during { await player.seek(to: Self.seconds(1)) }
        player.play()
        await room.step { player.currentTime().seconds > 1.5 }
        var iterator = seen.makeAsyncIterator()
        #expect(try #require(await iterator.next()).seconds >= 1.3, "times are told again")
    }

    // MARK: Boundaries, as the document's example has them

    @Test func `quarters are told up to the very end`() async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 2)
        let player = try await room.makeReadyPlayer(item)
        let quarters = (1...4).map { item.duration.multiplied(by: $0, over: 4) }
        #expect(quarters.last == item.duration)
        let told = Told(player.boundaryTimes(quarters))
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.3)
        #expect(told.times == [0.5, 1, 1.5, 2])
        // Once more from the start, and now faster.
        _ = try await room.during { await player.seek(to: .zero) }
        try player.setRate(2)
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.3)
        #expect(told.times.count == 8)
    }

    @Test func `boundaries that are no times are none, and those told twice are one`() async throws
    {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 2))
        let told = Told(
            player.boundaryTimes([
                .invalid, .indefinite, .positiveInfinity, .negativeInfinity, Self.seconds(-1),
                Self.seconds(0.5), Self.seconds(0.5), Self.seconds(99),
            ]))
        let none = Told(player.boundaryTimes([]))
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.2)
        #expect(Set(told.times) == [0.5], "\(told.times)")
        #expect(none.times.isEmpty)
    }

    @Test(
        arguments: [
            MediaTime.zero, .invalid, .indefinite, .negativeInfinity, .positiveInfinity,
            MediaTime(value: -1, timescale: 1), MediaTime(value: 1, timescale: .max),
        ])
    func `an interval that is none does not hold a player up`(interval: MediaTime) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 2))
        let told = Told(player.periodicTimes(every: interval))
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.2)
        // At most each hundredth of a second; at least the start and the stop.
        #expect(told.times.count >= 2 && told.times.count < 220, "\(told.times.count)")
        #expect(told.times.last == 2)
    }

    @Test func `with no action backwards, time runs on before the beginning`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 4))
        player.actionAtItemEnd = .none
        let said = NoticeLog(player)
        _ = try await room.during { await player.seek(to: Self.seconds(0.5)) }
        try player.setRate(-1)
        await room.step(seconds: 2)
        #expect(player.rate == -1)
        // The document: "currentTime will increase or decrease over time".
        #expect(player.currentTime() < Self.seconds(-0.8))
        #expect(said.count("end") == 1)
        _ = try await room.during { await player.seek(to: Self.seconds(3)) }
        await room.step(seconds: 0.3)
        #expect(player.currentTime() < Self.seconds(3) && player.currentTime() > Self.seconds(2))
        #expect(room.heard.suffix(100).allSatisfy { $0.value > 0.2 }, "it sounds again")
    }
}

/// Times as they are told.
final class Told: Sendable {
    private let all = Kept<[Double]>([])
    private let task: Task<Void, Never>

    init(_ times: AsyncStream<MediaTime>) {
        task = Task { [all] in for await time in times { all.change { $0.append(time.seconds) } } }
    }

    deinit { task.cancel() }
    var times: [Double] { all.value }
}
