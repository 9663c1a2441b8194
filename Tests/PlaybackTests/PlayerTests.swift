import Synchronization
import Testing
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

/// Playing by the output's own clock: play, pause, rate, end of item, stalls.
struct PlayerTests {
    static let settling = 0.2

    /// Frames heard from `start` on go up by `rate` each, without a gap or a repetition.
    func expectSteady(
        _ room: VirtualRoom, from start: LocalInstant, to end: LocalInstant, rate: Double = 1,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let frames = room.frames(from: start, to: end)
        #expect(frames.count > 10, sourceLocation: sourceLocation)
        let steps = zip(frames, frames.dropFirst()).map { abs($1.frame - $0.frame - rate) }
        #expect((steps.max() ?? 1) < 0.5, sourceLocation: sourceLocation)
    }

    @Test func `a new player stands at zero`() {
        let player = VirtualRoom().makePlayer()
        #expect(player.status == .unknown)
        #expect(player.timeControlStatus == .paused)
        #expect(player.currentTime() == .zero)
        #expect(player.reasonForWaitingToPlay == nil)
        player.play()
        #expect(player.rate == 1)
        #expect(player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        #expect(player.reasonForWaitingToPlay == .noItemToPlay)
    }

    @Test func `play before the item is ready starts when it is`() async throws {
        let room = VirtualRoom()
        let player = room.makePlayer()
        let item = Library().item()
        await room.step(seconds: 1)
        player.play()
        try player.replaceCurrentItem(with: item)
        await room.step { player.timeControlStatus == .playing }
        #expect(player.status == .readyToPlay)
        await room.step(seconds: 1)
        expectSteady(room, from: room.now - .milliseconds(500), to: room.now)
        // From the very first frame: nothing was lost while waiting.
        let onset = try #require(room.heard.firstIndex { $0.value > TestSource.base / 2 })
        #expect(abs(TestSource.frame(ofValue: room.heard[onset + 60].value) - 60) < 2)
    }

    @Test func `item time is what is heard`() async throws {
        let room = VirtualRoom(cardPartsPerMillion: 300)
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 3)
        let last = try #require(room.frames(from: room.now - .milliseconds(20), to: room.now).last)
        let since = (room.now - last.instant).seconds
        // A period of the card is how far its report may be ahead of the crystal's truth.
        let error = player.currentTime().seconds - (last.frame / 8_000 + since)
        #expect(abs(error) < 0.000_5)
    }

    @Test func `a pause stands where the sound ends and play goes on from there`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 1)
        player.pause()
        #expect(player.timeControlStatus == .paused)
        await room.step(seconds: 1)
        let stood = player.currentTime().seconds * 8_000
        let silent = room.frames(from: room.now - .milliseconds(500), to: room.now)
        #expect(silent.allSatisfy { abs($0.value) < 1e-6 })
        #expect(player.currentTime() == player.currentTime())

        let resumed = room.now
        player.play()
        await room.step(seconds: 1)
        let after = room.frames(from: resumed, to: room.now)
        let begin = try #require(after.firstIndex { $0.value > 1e-4 })
        // Where the fade begins lies the frame where the pause stood.
        let settled = after[begin + 60]
        #expect(abs(settled.frame - 60 - stood) < 3)
        expectSteady(room, from: settled.instant, to: room.now)
    }

    @Test func `play during the last sound of a pause goes on without a gap`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 1)
        let begin = room.now
        player.pause()
        player.play()
        await room.step(seconds: 1)
        expectSteady(room, from: begin, to: room.now)
    }

    @Test func `a change of rate keeps item time and sounds from then on`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 1)
        let before = player.currentTime()
        try player.setRate(1.5)
        #expect((player.currentTime() - before).magnitude.seconds < 1e-6)
        await room.step(seconds: 1)
        expectSteady(room, from: room.now - .milliseconds(500), to: room.now, rate: 1.5)
        let elapsed = (player.currentTime() - before).seconds
        #expect(elapsed > 1.3 && elapsed < 1.5)
        try player.setDefaultRate(2)
        player.pause()
        await room.step(seconds: 0.5)
        player.play()
        #expect(player.rate == 2)
        await room.step(seconds: 1)
        expectSteady(room, from: room.now - .milliseconds(200), to: room.now, rate: 2)
    }

    @Test func `the end of the item pauses there and says so`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 1))
        let notices = Notices(player)
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.1)
        #expect(player.currentTime() == MediaTime(value: 1, timescale: 1))
        #expect(player.timeControlStatus == .paused)
        #expect(await notices.drain() == ["rate 1.0 setRateCalled", "rate 0.0 itemEnded", "end"])
        // Every frame was heard.
        let last = room.heard.last { $0.value > TestSource.base }
        #expect(TestSource.frame(ofValue: try #require(last).value) > 7_900)
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }

    @Test func `item time runs to the end without jumping there`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 1))
        player.play()
        await room.step { player.timeControlStatus == .playing }
        var last = player.currentTime().seconds
        while player.rate != 0 {
            await room.step()
            let time = player.currentTime().seconds
            // A period of the test, and a tenth of one for the crystal.
            #expect(time >= last && time - last < 0.011)
            last = time
        }
        #expect(last == 1)
    }

    @Test func `with no action time runs on past the end`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 0.5))
        player.actionAtItemEnd = .none
        player.play()
        await room.step(seconds: 2)
        #expect(player.rate == 1)
        #expect(player.currentTime().seconds > 1.5)
    }

    @Test func `an end time ends the item early`() async throws {
        let room = VirtualRoom()
        let item = PlayerItem(
            asset: Library().asset(),
            forwardPlaybackEndTime: MediaTime(value: 1, timescale: 2))
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == MediaTime(value: 1, timescale: 2))
        let beyond = room.heard.filter { TestSource.frame(ofValue: $0.value) > 4_010 }
        // Nothing but the ringing of the resampler's filter at the cut, half its length.
        #expect(beyond.count <= 16)
    }

    @Test func `a stall waits and playback resumes by itself where it stopped`() async throws {
        let room = VirtualRoom()
        let library = Library()
        // Longer than the ring, so that reading must go on.
        let player = try await room.makeReadyPlayer(library.item(seconds: 40))
        let notices = Notices(player)
        player.play()
        await room.step { player.timeControlStatus == .playing }
        library.state.withLock { $0.isBlocked = true }
        room.waitsForFeeds = false
        await room.step { player.timeControlStatus == .waitingToPlayAtSpecifiedRate }
        #expect(player.reasonForWaitingToPlay == .toMinimizeStalls)
        #expect(player.rate == 1)
        let stood = player.currentTime()
        await room.step(seconds: 1)
        #expect(player.currentTime() == stood)
        library.state.withLock { $0.isBlocked = false }
        room.waitsForFeeds = true
        await room.step { player.timeControlStatus == .playing }
        await room.step(seconds: 1)
        let gone = (player.currentTime() - stood).seconds
        #expect(gone > 0.8 && gone < 1.2)
        #expect(await notices.drain().contains("stalled"))
    }

    @Test func `an error of the source ends playback with that error`() async throws {
        let room = VirtualRoom()
        let library = Library()
        library.state.withLock { $0.failsAt = 6_000 }
        let player = try await room.makeReadyPlayer(library.item())
        let notices = Notices(player)
        player.play()
        await room.step { player.error != nil }
        #expect(player.rate == 0)
        #expect(player.error?.code == .mediaFailed)
        #expect((player.error?.underlying as? MediaError)?.reason == "scratched")
        #expect(await notices.drain().contains("failed mediaFailed"))
        await room.step(seconds: 0.2)
        // The feed gives its voice back on its own queue.
        await room.step { room.freeVoices == OutputPort.voiceLimit }
    }

    @Test func `volume and mute are ramped to silence and back`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item())
        player.play()
        await room.step(seconds: 1)
        player.isMuted = true
        await room.step(seconds: 0.5)
        let silent = room.frames(from: room.now - .milliseconds(200), to: room.now)
        #expect(silent.allSatisfy { $0.value == 0 })
        player.volume = 0.5
        player.isMuted = false
        await room.step(seconds: 0.5)
        let half = try #require(room.heard.last)
        #expect(TestSource.frame(ofValue: half.value * 2) > 8_000)
        #expect(room.engine.port.report.starvedFrames == 0)
        player.volume = .nan
        #expect(player.volume == 0)
        // No sample differs from its neighbour by more than a hundredth: no click.
        let jumps = zip(room.heard, room.heard.dropFirst()).map { abs($1.value - $0.value) }
        let ramping = jumps.dropFirst(room.heard.count / 2)
        #expect((ramping.max() ?? 1) < 0.01)
    }

    @Test func `a steady player wakes at most five times a second`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(seconds: 60))
        player.play()
        await room.step(seconds: 2)
        let before = room.napCount
        await room.step(seconds: 10)
        #expect(room.napCount - before <= 50)
        #expect(room.napCount > before)
        player.pause()
        await room.step(seconds: 1)
        let paused = room.napCount
        await room.step(seconds: 5)
        #expect(room.napCount == paused)
    }
}

/// Collects notices as text, in order.
struct Notices {
    let stream: AsyncStream<PlayerNotice>
    weak var player: Player?

    init(_ player: Player) {
        stream = player.notices()
        self.player = player
    }

    /// What has been said up to now; ends the observation.
    func drain() async -> [String] {
        var texts: [String] = []
        // A mark behind everything that was said.
        player?.markNotices()
        for await notice in stream {
            switch notice {
            case .itemStatusDidChange(nil): return texts
            case .itemStatusDidChange(let status?): texts.append("status \(status)")
            case .rateDidChange(let rate, let reason): texts.append("rate \(rate) \(reason)")
            case .timeJumped(let time): texts.append("jumped \(time.seconds)")
            case .didPlayToEnd: texts.append("end")
            case .failedToPlayToEnd(let error): texts.append("failed \(error.code)")
            case .textFailed(let error): texts.append("text \(error.code)")
            case .playbackStalled: texts.append("stalled")
            case .currentItemDidChange: break
            case .outputDidChange(let isAvailable): texts.append("card \(isAvailable)")
            }
        }
        return texts
    }
}

extension Player {
    /// Taking the item away is announced last.
    func markNotices() { try? replaceCurrentItem(with: nil) }
}
