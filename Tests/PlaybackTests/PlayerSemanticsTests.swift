import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Section 2 of what players promise, where no other suite holds it; see Semantics.md.
@Suite(.timeLimit(.minutes(1))) struct PlayerSemanticsTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    // MARK: Rates

    @Test func `a default rate is what play goes by, and starts nothing itself`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        let said = NoticeLog(player)
        try player.setDefaultRate(1.5)
        await room.step(seconds: 0.3)
        #expect(player.rate == 0 && player.currentTime() == .zero)
        // That the item is ready may be told late.
        #expect(said.count("rate") == 0 && said.count("jumped") == 0)
        player.play()
        await room.step(seconds: 0.3)
        #expect(player.rate == 1.5)
        // What plays goes on as it was asked for.
        try player.setDefaultRate(0.5)
        await room.step(seconds: 0.3)
        #expect(player.rate == 1.5 && player.defaultRate == 0.5)
        player.pause()
        player.play()
        #expect(player.rate == 0.5)
    }

    @Test(arguments: [.nan, .infinity, -.infinity, 33, -33, 1e-300, 0.03, -0.03, 1e300])
    func `a rate that cannot be played is refused everywhere and changes nothing`(
        rate: Double
    ) async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        try player.setRate(1, time: .zero, atHostTime: room.groupNow + .milliseconds(200))
        await room.step(seconds: 0.5)
        let said = NoticeLog(player)
        func expectRefusal(_ body: () async throws -> Void) async {
            let refusal = await #expect(throws: PlaybackError.self) { try await body() }
            #expect(refusal?.code == .rateNotSupported)
            // It says what was asked for, and what can be.
            #expect("\(refusal?.reason ?? "")".contains("32"), "\(refusal?.reason ?? "")")
        }
        await expectRefusal { try player.setRate(rate) }
        await expectRefusal { try player.setDefaultRate(rate) }
        await expectRefusal { try player.playImmediately(atRate: rate) }
        await expectRefusal { try player.setRate(rate, time: .zero, atHostTime: room.groupNow) }
        await expectRefusal { _ = try await player.preroll(atRate: rate, time: .zero) }
        #expect(player.rate == 1 && player.defaultRate == 1)
        #expect(player.timeControlStatus == .playing && player.error == nil)
        await room.step(seconds: 0.2)
        #expect(said.count("rate 1") == 0 && said.count("rate 0") == 0, "\(said.all)")
        #expect(said.count("jumped") == 0 && said.count("stalled") == 0, "\(said.all)")
    }

    @Test func `a rate of nothing is a pause, and no way to begin at once`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 0.5)
        try player.setRate(-0.0)
        await room.step(seconds: 0.3)
        #expect(player.rate == 0 && player.timeControlStatus == .paused)
        let refusal = #expect(throws: PlaybackError.self) { try player.playImmediately(atRate: 0) }
        #expect(refusal?.code == .rateNotSupported && player.timeControlStatus == .paused)
    }

    @Test func `each change of rate is said once, with its reason`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 2))
        let said = NoticeLog(player)
        player.play()
        player.play()
        await room.step(seconds: 0.3)
        try player.setRate(1)
        try player.setRate(2)
        try player.setRate(2)
        await room.step(seconds: 0.2)
        player.pause()
        player.pause()
        await room.step(seconds: 0.2)
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.2)
        #expect(
            said.all.filter { $0.hasPrefix("rate") } == [
                "rate 1.0 setRateCalled", "rate 2.0 setRateCalled", "rate 0.0 setRateCalled",
                "rate 1.0 setRateCalled", "rate 0.0 itemEnded",
            ])
    }

    // MARK: Waiting

    @Test func `a player without an item waits for one, and plays it`() async throws {
        let room = VirtualRoom()
        let player = room.makePlayer()
        player.play()
        #expect(player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        #expect(player.reasonForWaitingToPlay == .noItemToPlay)
        #expect(player.rate == 1)
        await room.step(seconds: 0.3)
        #expect(player.currentTime() == .zero)
        try player.replaceCurrentItem(with: Library().item())
        await room.step { player.timeControlStatus == .playing }
        #expect(player.reasonForWaitingToPlay == nil)
        await room.step { player.currentTime().seconds > 0.5 }
        player.pause()
        #expect(player.reasonForWaitingToPlay == nil)
    }

    /// The document: when the buffer runs empty and nobody waits, the status becomes paused.
    @Test func `a stall pauses where nobody waits for it to end`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        player.automaticallyWaitsToMinimizeStalling = false
        let said = NoticeLog(player)
        player.play()
        await room.step(seconds: 0.5)
        #expect(player.timeControlStatus == .playing)
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        await room.step { player.timeControlStatus != .playing }
        #expect(player.timeControlStatus == .paused)
        #expect(player.reasonForWaitingToPlay == nil)
        let stood = player.currentTime()
        await room.step(seconds: 1)
        #expect(player.rate == 0 && said.count("stalled") == 1, "\(said.all)")
        // What is decoded again does not begin by itself; it goes on where it stood.
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        await room.step(seconds: 1)
        #expect(player.rate == 0 && player.currentTime() == stood)
        let begin = room.now
        player.play()
        await room.step(seconds: 0.5)
        let heard = room.frames(from: begin, to: room.now).filter { $0.value > 0.2 }
        #expect(abs(try #require(heard.dropFirst(60).first).frame - stood.seconds * 8_000) < 150)
    }

    /// AVFoundation looks how fast the buffer fills before it says that it does so too slowly.
    @Test func `a player finds out how fast sound comes before it says too slowly`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        library.state.withLock { $0.blocksAt = 1_000 }
        room.waitsForFeeds = false
        let begin = room.now
        player.play()
        #expect(player.reasonForWaitingToPlay == .evaluatingBufferingRate)
        await room.step { player.reasonForWaitingToPlay != .evaluatingBufferingRate }
        #expect(player.reasonForWaitingToPlay == .toMinimizeStalls)
        // Half a second of sound had half a second to come; a period is rendered at a time.
        let span = (room.now - begin).seconds
        #expect(span >= 0.5 && span < 0.6, "\(span) s")
        library.state.withLock { $0.blocksAt = nil }
        room.waitsForFeeds = true
        await room.step { player.timeControlStatus == .playing }
        #expect(player.reasonForWaitingToPlay == nil)
    }

    @Test func `who waits no longer plays what is there at once`() async throws {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        library.state.withLock { $0.blocksAt = 1_000 }
        room.waitsForFeeds = false
        player.play()
        // Time moves on without the decoder, which may be late on a busy machine.
        while player.isBufferEmpty { await Task.yield() }
        await room.step(seconds: 1)
        #expect(player.reasonForWaitingToPlay == .toMinimizeStalls)
        #expect(!player.isBufferEmpty)
        player.automaticallyWaitsToMinimizeStalling = false
        // The document: with false, that is no reason any more.
        #expect(player.reasonForWaitingToPlay != .toMinimizeStalls)
        let begin = room.now
        await room.step(seconds: 1)
        let heard = room.heard.count { $0.value > 0.2 }
        library.state.withLock { $0.blocksAt = nil }
        room.waitsForFeeds = true
        #expect(heard > 500, "\(heard) frames since \(begin)")
    }

    /// Nobody has to know how long a device needs before it is known when its frames are heard.
    @Test(arguments: [0, 0.05])
    func `what is played as soon as a device is there is heard from its beginning`(
        after: Double
    ) async throws {
        let room = VirtualRoom()
        let player = room.makePlayer()
        let item = Library().item()
        try player.replaceCurrentItem(with: item)
        try await item.ready()
        await room.step(seconds: after)
        player.play()
        await room.step(seconds: 1)
        let first = try #require(room.heard.drop { $0.value < 0.1 }.dropFirst(100).first)
        #expect(abs(first.frame - 100) < 10, "\(first.frame)")
    }

    // MARK: Status

    @Test func `a good item after a bad one is ready, and nothing is left of the error`()
        async throws
    {
        let room = VirtualRoom()
        let bad = Library()
        bad.state.withLock {
            $0.refuses = MediaError(
                .notFound, operation: "open", subject: "bad", reason: "no such file")
        }
        let player = room.makePlayer()
        #expect(player.status == .unknown)
        try player.replaceCurrentItem(with: bad.item())
        await room.step { player.status == .failed }
        #expect(player.error != nil && player.currentItem?.error != nil)
        let good = Library().item()
        try player.replaceCurrentItem(with: good)
        #expect(player.status != .failed && player.error == nil)
        await room.step { player.status == .readyToPlay }
        #expect(player.error == nil && good.error == nil)
        try player.replaceCurrentItem(with: nil)
        #expect(player.status == .unknown && player.currentTime() == .zero)
    }
}

extension Player {
    fileprivate var isBufferEmpty: Bool { currentItem?.isPlaybackBufferEmpty ?? true }
}
