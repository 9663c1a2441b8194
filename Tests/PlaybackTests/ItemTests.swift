import Synchronization
import Testing
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

/// Assets and items: lazy, owned by one player, and gone when they are no longer needed.
struct ItemTests {
    @Test func `nothing is read until asked and then only once`() async throws {
        let library = Library()
        let asset = library.asset()
        let item = PlayerItem(asset: asset)
        #expect(library.state.withLock { $0.opened } == 0)
        #expect(asset.status(of: .duration) == .notLoaded)
        #expect(item.status == .unknown && item.duration == .indefinite)
        let (duration, format, isPlayable) = try await asset.load(.duration, .format, .isPlayable)
        #expect(duration == MediaTime(value: 8, timescale: 1))
        #expect(format.sampleRate == 8_000 && isPlayable)
        #expect(asset.status(of: .duration) == .loaded)
        try await item.ready()
        #expect(item.status == .readyToPlay && item.duration == duration)
        #expect(library.state.withLock { $0.opened } == 1)
        let other = library.asset()
        #expect(other.status(of: .format) == .notLoaded)
    }

    @Test func `an asset that is not media is not playable and one out of reach is an error`()
        async throws
    {
        let library = Library()
        library.state.withLock {
            $0.refuses = MediaError(
                .notMedia, operation: "open", subject: "test.wav", reason: "this is a letter")
        }
        let asset = library.asset()
        #expect(try await asset.load(.isPlayable) == false)
        await #expect(throws: PlaybackError.self) { try await asset.load(.duration) }
        library.state.withLock { $0.refuses?.code = .network }
        await #expect(throws: PlaybackError.self) { try await asset.load(.isPlayable) }
        guard case .failed = asset.status(of: .isPlayable) else {
            Issue.record("a failure must show in the status")
            return
        }
        // A server that is back can be asked again.
        library.state.withLock { $0.refuses = nil }
        #expect(try await asset.load(.isPlayable))
    }

    @Test func `an item that cannot be opened fails with the reason`() async throws {
        let room = VirtualRoom()
        let library = Library()
        library.state.withLock {
            $0.refuses = MediaError(
                .notFound, operation: "open", subject: "test.wav", reason: "no such file")
        }
        let player = room.makePlayer()
        player.play()
        try player.replaceCurrentItem(with: library.item())
        await room.step { player.status == .failed }
        #expect(player.error?.code == .mediaFailed)
        #expect((player.error?.underlying as? MediaError)?.code == .notFound)
        await room.step { player.rate == 0 }
        #expect(await player.seek(to: .zero) == false)
    }

    @Test func `an item belongs to one player at a time`() throws {
        let room = VirtualRoom()
        let (first, second) = (room.makePlayer(), room.makePlayer())
        let item = Library().item()
        try first.replaceCurrentItem(with: item)
        #expect(throws: PlaybackError.self) { try second.replaceCurrentItem(with: item) }
        try first.replaceCurrentItem(with: item)
        try first.replaceCurrentItem(with: nil)
        try second.replaceCurrentItem(with: item)
        #expect(second.currentItem === item && first.currentItem == nil)
    }

    @Test func `another item while playing goes on with that one from its beginning`()
        async throws
    {
        let room = VirtualRoom()
        let library = Library()
        let player = try await room.makeReadyPlayer(library.item())
        player.play()
        await room.step(seconds: 2)
        let second = library.item()
        try player.replaceCurrentItem(with: second)
        #expect(player.rate == 1)
        #expect(player.currentTime() == .zero)
        await room.step { player.timeControlStatus == .playing }
        await room.step(seconds: 1)
        #expect(player.currentTime().seconds < 1.1)
        let last = try #require(room.heard.last)
        #expect(TestSource.frame(ofValue: last.value) < 9_000)
        // The first item's source and voice are gone.
        #expect(library.state.withLock { $0.living } == 1)
        #expect(room.freeVoices == OutputPort.voiceLimit - 1)
    }

    @Test func `the same item again changes nothing`() async throws {
        let room = VirtualRoom()
        let item = Library().item()
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step(seconds: 1)
        let before = player.currentTime()
        try player.replaceCurrentItem(with: item)
        #expect((player.currentTime() - before).magnitude.seconds < 1e-6)
        #expect(player.timeControlStatus == .playing)
    }

    @Test(arguments: ["paused", "playing", "prerolled", "seeking"])
    func `a player that goes away leaves nothing behind`(state: String) async throws {
        let room = VirtualRoom()
        let library = Library()
        weak var player: Player?
        weak var item: PlayerItem?
        do {
            let living = try await room.makeReadyPlayer(library.item(), shared: true)
            player = living
            item = living.currentItem
            switch state {
            case "playing": try living.playImmediately(atRate: 1)
            case "prerolled": _ = try await room.during { try await living.preroll(atRate: 1) }
            case "seeking":
                try living.playImmediately(atRate: 1)
                await room.step(seconds: 0.3)
                let time = MediaTime(value: 3, timescale: 1)
                _ = try await room.during { await living.seek(to: time) }
            default: break
            }
            await room.step(seconds: 0.3)
        }
        await room.step {
            player == nil && item == nil && library.state.withLock { $0.living } == 0
                && room.freeVoices == OutputPort.voiceLimit
        }
    }

    @Test func `notices end with the player and have a bound`() async throws {
        let room = VirtualRoom()
        var player: Player? = room.makePlayer()
        let stream = try #require(player).notices()
        for _ in 0..<100 {
            player?.play()
            player?.pause()
        }
        #expect(try #require(player).droppedNoticeCount == 200 - 64)
        player = nil
        var count = 0
        for await _ in stream { count += 1 }
        #expect(count == 64)
    }

    private static let loudness: [([String: String], Float)] = [
        (["replaygain_track_gain": "-6.0206 dB"], 0.5), (["r128_album_gain": "-2821"], 0.5),
        (["replaygain_track_gain": "12 dB", "replaygain_track_peak": "0.5"], 2),
        // Nobody knows how loud its loudest sample is.
        (["replaygain_track_gain": "12 dB"], 1), (["replaygain_track_gain": "loud"], 1),
    ]

    @Test(arguments: loudness)
    func `an item is as loud as its tags ask for, and never clips`(
        tags: [String: String], factor: Float
    ) async throws {
        let room = VirtualRoom()
        let library = Library()
        library.state.withLock { $0.tags = tags }
        let item = library.item()
        item.loudnessNormalization = .track
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.currentTime().seconds > 1 }
        func expect(_ factor: Float, sourceLocation: SourceLocation = #_sourceLocation) {
            let frame = Int64(player.currentTime().seconds * 8_000)
            let value = TestSource.base + Float(frame) * TestSource.step
            let heard = room.heard.last?.value ?? 0
            #expect(abs(heard / value - factor) < 0.01, sourceLocation: sourceLocation)
        }
        expect(factor)
        player.volume = 0.5
        await room.step(seconds: 0.5)
        expect(factor / 2)
        item.loudnessNormalization = .off
        await room.step(seconds: 0.5)
        expect(0.5)
        #expect(item.metadata?.tags == tags)
    }

    @Test func `with all voices taken a preroll waits and then says so`() async throws {
        let room = VirtualRoom()
        let player = try await room.makeReadyPlayer(Library().item(), shared: true)
        var taken: [Voice] = []
        while let voice = room.engine.port.makeVoice(sampleRate: 8_000) { taken.append(voice) }
        room.waitsForFeeds = false
        do {
            _ = try await room.during { try await player.preroll(atRate: 1) }
            Issue.record("there was no voice")
        } catch { #expect((error as? PlaybackError)?.code == .outputBusy) }
        for voice in taken { voice.cancel() }
        room.waitsForFeeds = true
        #expect(try await room.during { try await player.preroll(atRate: 1) })
    }
}
