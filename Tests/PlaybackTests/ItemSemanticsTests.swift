import Synchronization
import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiPlayback

/// Section 3 of what players promise, where no other suite holds it; see Semantics.md.
@Suite(.timeLimit(.minutes(1))) struct ItemSemanticsTests {
    private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

    // MARK: Ends

    @Test func `an end that is behind item time ends playing at once, without a jump`()
        async throws
    {
        let room = VirtualRoom()
        let item = Library().item(seconds: 20)
        let player = try await room.makeReadyPlayer(item)
        let said = NoticeLog(player)
        player.play()
        await room.step { player.currentTime().seconds > 3 }
        let before = player.currentTime().seconds
        item.forwardPlaybackEndTime = Self.seconds(1)
        await room.step(seconds: 0.5)
        #expect(player.rate == 0 && said.count("end") == 1, "\(said.all)")
        // It may play what the output holds, and does not go back to an end that it never passed.
        let time = player.currentTime().seconds
        #expect(time >= before && time < before + 0.5, "\(before) to \(time)")
        // Beyond its end there is nothing to play.
        player.play()
        await room.step(seconds: 0.5)
        #expect(player.rate == 0 && said.count("end") == 1, "\(said.all)")
        // Without that end there is.
        item.forwardPlaybackEndTime = .invalid
        player.play()
        await room.step(seconds: 0.5)
        #expect(player.rate == 1 && player.currentTime().seconds > time + 0.2)
    }

    @Test func `a start behind the end ends there, and says so once`() async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 20)
        item.forwardPlaybackEndTime = Self.seconds(2)
        let player = try await room.makeReadyPlayer(item)
        let said = NoticeLog(player)
        _ = try await room.during { await player.seek(to: Self.seconds(5)) }
        // Where a player can be sought does not depend on where it ends.
        #expect(item.seekableTimeRanges == [TimeRange(start: .zero, duration: item.duration)])
        #expect(player.currentTime() == Self.seconds(5))
        player.play()
        await room.step(seconds: 1)
        #expect(player.rate == 0 && player.currentTime() <= Self.seconds(5))
        #expect(said.count("end") <= 1 && player.error == nil)
    }

    /// The documents: each end has no effect on playing the other way.
    @Test func `an end counts in its own direction alone`() async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 8)
        item.forwardPlaybackEndTime = Self.seconds(2)
        item.reversePlaybackEndTime = Self.seconds(1)
        let player = try await room.makeReadyPlayer(item)
        #expect(item.duration == Self.seconds(8), "ends are no part of the duration")
        _ = try await room.during { await player.seek(to: Self.seconds(4)) }
        try player.setRate(-2)
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == Self.seconds(1))
        // Forward from in front of the reverse end.
        _ = try await room.during { await player.seek(to: Self.seconds(0.2)) }
        player.play()
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == Self.seconds(2))
        let heard = room.heard.map { TestSource.frame(ofValue: $0.value) }
        #expect(heard.contains { abs($0 - 2_000) < 10 })
        #expect(heard.contains { abs($0 - 30_000) < 10 })
    }

    @Test func `a reverse end that item time has passed ends playing backwards at once`()
        async throws
    {
        let room = VirtualRoom()
        let item = Library().item(seconds: 20)
        let player = try await room.makeReadyPlayer(item)
        let said = NoticeLog(player)
        _ = try await room.during { await player.seek(to: Self.seconds(10)) }
        try player.setRate(-1)
        await room.step { player.currentTime().seconds < 8 }
        let before = player.currentTime().seconds
        item.reversePlaybackEndTime = Self.seconds(9)
        await room.step(seconds: 0.5)
        #expect(player.rate == 0 && said.count("end") == 1, "\(said.all)")
        let time = player.currentTime().seconds
        #expect(time <= before && time > before - 0.5, "\(before) to \(time)")
    }

    @Test(
        arguments: [
            MediaTime.invalid, .indefinite, .positiveInfinity, MediaTime(value: .max, timescale: 1),
            MediaTime(value: 99, timescale: 1),
        ])
    func `an end beyond the item, or none, is the item's own`(end: MediaTime) async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 1)
        item.forwardPlaybackEndTime = end
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == Self.seconds(1) && player.error == nil)
    }

    @Test(arguments: [MediaTime.zero, MediaTime(value: -3, timescale: 1)])
    func `an item that ends before it begins plays nothing`(end: MediaTime) async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 5)
        item.forwardPlaybackEndTime = end
        let player = try await room.makeReadyPlayer(item)
        let said = NoticeLog(player)
        player.play()
        await room.step(seconds: 1)
        #expect(player.rate == 0 && player.currentTime() == .zero && player.error == nil)
        #expect(room.heard.allSatisfy { $0.value == 0 })
        #expect(said.count("end") <= 1)
    }

    @Test func `an end before all times is before the beginning`() async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 5)
        item.forwardPlaybackEndTime = .negativeInfinity
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await room.step(seconds: 1)
        #expect(player.currentTime() == .zero)
    }

    // MARK: Abilities and steps

    /// The documents: once the item is ready, the values stay, at its ends too.
    @Test func `what an item can do is not known before it is ready, and then stays`()
        async throws
    {
        let room = VirtualRoom()
        let item = SelectionTests.item()
        func abilities() -> [Bool] {
            [
                item.canPlayFastForward, item.canPlaySlowForward, item.canPlayReverse,
                item.canPlaySlowReverse, item.canPlayFastReverse, item.canStepForward,
                item.canStepBackward,
            ]
        }
        #expect(abilities().allSatisfy { !$0 })
        let player = try await room.makeReadyPlayer(item)
        #expect(abilities().allSatisfy { $0 })
        _ = try await room.during { await player.seek(to: .positiveInfinity) }
        #expect(abilities().allSatisfy { $0 })
    }

    @Test func `a step at an end stays there, and one of nothing changes nothing`() async throws {
        let room = VirtualRoom()
        let item = SelectionTests.item()
        let player = try await room.makeReadyPlayer(item)
        func step(_ count: Int) async throws -> Double {
            _ = try await room.during { try await item.step(byCount: count) }
            return player.currentTime().seconds
        }
        #expect(try await step(-1) == 0)
        #expect(try await step(-1) == 0)
        #expect(try await step(10_000) == 10)
        #expect(try await step(1) == 10)
        #expect(try await step(0) == 10)
        #expect(try await step(-1) == 9.875)
        let off = MediaTime(frame: 12_345, sampleRate: 8_000)
        _ = try await room.during { await player.seek(to: off) }
        let still = try await step(0)
        #expect(still == off.seconds)
        #expect(player.rate == 0)
    }

    // MARK: What is loaded

    @Test func `a file is at hand as a whole once it is ready`() async throws {
        let item = Library().item(seconds: 30)
        #expect(item.loadedTimeRanges.isEmpty)
        try await item.ready()
        let whole = [TimeRange(start: .zero, duration: Self.seconds(30))]
        #expect(item.loadedTimeRanges == whole)
        // A composition is where what it is made of is.
        for (location, isWhole) in [("a.wav", true), ("http://server/a.wav", false)] {
            var composition = Composition()
            try composition.insert(
                TimeRange(start: .zero, duration: Self.seconds(30)),
                of: Library().asset(seconds: 30, at: location), at: .zero)
            let item = PlayerItem(asset: Asset(composition))
            try await item.ready()
            #expect(item.loadedTimeRanges == (isWhole ? whole : []))
        }
    }

    @Test func `what two feeds have of one place is one range`() {
        #expect(Player.merged([4..<9, 0..<4, 20..<30, 2..<3, 25..<26, 7..<7]) == [0..<9, 20..<30])
        #expect(Player.merged([]).isEmpty)
    }

    @Test func `what is loaded lies within the item, around item time`() async throws {
        let room = VirtualRoom()
        let item = Library().item(seconds: 30, at: "http://server/test.wav")
        #expect(item.loadedTimeRanges.isEmpty && item.seekableTimeRanges.isEmpty)
        let player = try await room.makeReadyPlayer(item)
        let whole = TimeRange(start: .zero, duration: item.duration)
        #expect(item.seekableTimeRanges == [whole])
        player.play()
        for place in [5.0, 29.5, 0, 12] {
            _ = try await room.during { await player.seek(to: Self.seconds(place)) }
            await room.step(seconds: 0.2)
            let ranges = item.loadedTimeRanges
            let time = player.currentTime()
            #expect(ranges.contains { $0.contains(time) }, "\(time) in \(ranges)")
            #expect(ranges.allSatisfy { whole.contains($0) }, "\(ranges)")
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.end < $1.start }, "\(ranges)")
            #expect(!item.isPlaybackBufferEmpty)
        }
        try player.replaceCurrentItem(with: nil)
        await room.step(seconds: 0.2)
        #expect(item.loadedTimeRanges.isEmpty)
    }

    // MARK: Set up before it is given to a player

    @Test func `an item that was set up first is so from its first frame`() async throws {
        let room = VirtualRoom()
        let item = SelectionTests.item()
        // Asked of the asset: the item itself reads nothing yet.
        let group = try #require(
            try await item.asset.loadMediaSelectionGroup(for: .audible))
        try item.select(group.options[1], in: group)
        var mix = AudioMix()
        try mix.setVolume(0.5, at: .zero)
        item.audioMix = mix
        item.audioTap = Doubler()
        item.forwardPlaybackEndTime = Self.seconds(1)
        item.audioTimePitchAlgorithm = .varispeed
        let player = try await room.makeReadyPlayer(item)
        #expect(item.selectedMediaOption(in: group) == group.options[1])
        player.play()
        await room.step { player.rate == 0 }
        await room.step(seconds: 0.2)
        #expect(player.currentTime() == Self.seconds(1))
        let due = SelectionTests.level(2) * 0.5 * 2
        let heard = room.heard.map(\.value).filter { $0 != 0 }.dropFirst(100).dropLast(100)
        #expect(heard.count > 7_000)
        #expect(heard.allSatisfy { abs($0 - due) < 2e-3 }, "\(heard.first ?? 0) of \(due)")
    }

    private final class Doubler: AudioTap {
        func prepare(sampleRate: Int, channelCount: Int) {}
        func unprepare() {}
        func process(
            _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
            isContinuous: Bool
        ) {
            for i in samples.indices { samples[i] *= 2 }
        }
    }

    // MARK: Everything at once

    @Test func `tracks, mix and tap may change while it is sought and plays backwards`()
        async throws
    {
        let room = VirtualRoom()
        let item = SelectionTests.item()
        let player = try await room.makeReadyPlayer(item)
        _ = try await room.during { await player.seek(to: Self.seconds(10)) }
        try player.setRate(-2)
        let group = try #require(item.mediaSelectionGroup(for: .audible))
        var seeks: [Task<Bool, Never>] = []
        for round in 0..<24 {
            let place = Self.seconds(6 + Double(round % 4))
            seeks.append(Task { await player.seek(to: place) })
            try item.select(group.options[round % 2], in: group)
            var mix = AudioMix()
            try mix.setVolume(round % 2 == 0 ? 0.5 : 1, at: .zero)
            item.audioMix = round % 3 == 0 ? nil : mix
            item.audioTap = round % 2 == 0 ? Doubler() : nil
            item.audioTimePitchAlgorithm = [.varispeed, .timeDomain, .spectral][round % 3]
            await room.step(seconds: 0.04)
        }
        item.audioMix = nil
        item.audioTap = nil
        item.audioTimePitchAlgorithm = .varispeed
        try item.select(group.options[1], in: group)
        #expect(try await room.during { await player.seek(to: Self.seconds(8)) })
        await room.step(seconds: 0.5)
        for seek in seeks { _ = await seek.value }
        #expect(player.rate == -2 && player.error == nil)
        let time = player.currentTime().seconds
        #expect(time > 6 && time < 7.2, "\(time)")
        #expect(abs((room.heard.last?.value ?? 0) - SelectionTests.level(2)) < 2e-3)
        await room.step { player.rate == 0 }
        #expect(player.currentTime() == .zero)
        await room.step { room.freeVoices >= OutputPort.voiceLimit - 1 }
    }

    @Test(arguments: [1.0, -1, 8])
    func `ten thousand lines of text are told, each at its time`(rate: Double) async throws {
        let room = VirtualRoom()
        let cues = (0..<10_000).map { n in
            TimedText(
                range: TimeRange(
                    start: MediaTime(value: Int64(n), timescale: 1_000),
                    duration: MediaTime(value: 1, timescale: 1_000)), runs: [.init("\(n)")])
        }
        let item = PlayerItem(asset: TextAsset.make(cues))
        let player = try await room.makeReadyPlayer(item)
        let group = try #require(item.mediaSelectionGroup(for: .legible))
        let seen = Kept<[Int]>([])
        let watching = Task {
            for await texts in player.timedText() {
                guard let text = texts.first?.string, let number = Int(text) else { continue }
                let now = player.currentTime().seconds * 1_000
                seen.change { $0.append(number) }
                #expect(abs(Double(number) - now) < 400 * abs(rate), "\(number) at \(now)")
            }
        }
        try item.select(group.options[0], in: group)
        while player.state.withLock({ $0.text.observer == nil }) { await Task.yield() }
        _ = try await room.during { await player.seek(to: Self.seconds(rate < 0 ? 9 : 1)) }
        try player.setRate(rate)
        await room.step(seconds: 0.3)
        player.pause()
        await room.step(seconds: 0.2)
        watching.cancel()
        let numbers = seen.value.dropFirst()
        #expect(numbers.count > 20, "\(numbers.count)")
        let steps = zip(numbers, numbers.dropFirst()).map { ($1 - $0) * (rate < 0 ? -1 : 1) }
        #expect(steps.allSatisfy { $0 > 0 }, "in their order")
    }
}

/// A tone of one level with one text track.
private enum TextAsset {
    static func make(_ cues: [TimedText]) -> Asset {
        Asset(
            location: "film",
            opener: MediaOpener(
                tracks: { _, _ throws(MediaError) in Source() },
                text: { _, _ throws(MediaError) in cues }))
    }

    private final class Source: MediaSource {
        let format = MediaFormat(sampleRate: 8_000, channelCount: 2, frameCount: 80_000)
        let tracks = [
            MediaTrack(
                id: 0, kind: .audio, codec: "pcm", characteristics: [.audible], sampleRate: 8_000,
                channelCount: 2),
            MediaTrack(
                id: 1, kind: .text, codec: "subrip", language: "en", characteristics: [.legible]),
        ]
        private var next: Int64 = 0
        func seek(toFrame frame: Int64) throws(MediaError) { next = frame }
        func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
            let count = Int(max(0, min(Int64(buffer.count / 2), 80_000 - next)))
            for i in 0..<2 * count { buffer[i] = 0.25 }
            next += Int64(count)
            return count
        }
    }
}
