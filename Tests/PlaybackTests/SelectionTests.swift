import Glibc
import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// Tracks, options, criteria, and text that is shown while the item plays.
@Suite(.timeLimit(.minutes(1))) struct SelectionTests {
    /// English (the default), German, a commentary at half the sample rate; texts in both languages.
    static let tracks = [
        MediaTrack(
            id: 1, kind: .audio, codec: "aac", language: "eng",
            characteristics: [.audible, .isMainProgramContent], isDefault: true,
            sampleRate: 8_000, channelCount: 2),
        MediaTrack(
            id: 2, kind: .audio, codec: "aac", language: "deu", characteristics: [.audible],
            sampleRate: 8_000, channelCount: 2),
        MediaTrack(
            id: 4, kind: .audio, codec: "aac", language: "en-GB", title: "Director",
            characteristics: [.audible, .isAuxiliaryContent], sampleRate: 4_000, channelCount: 1),
        MediaTrack(
            id: 5, kind: .text, codec: "subrip", language: "ger", characteristics: [.legible]),
        MediaTrack(
            id: 6, kind: .text, codec: "subrip", language: "fre",
            characteristics: [.legible, .transcribesSpokenDialog]),
    ]

    /// Each track has one level all the time.
    static func level(_ track: Int) -> Float { Float(track) / 16 }

    private final class Source: MediaSource {
        let format: MediaFormat
        let track: Int?
        let tracks = SelectionTests.tracks
        let packetFrames = 1_000
        private var next: Int64 = 0

        init(track: Int?) {
            self.track = track ?? 1
            let isSlow = track == 4
            format = MediaFormat(
                sampleRate: isSlow ? 4_000 : 8_000, channelCount: 2,
                frameCount: isSlow ? 20_000 : 80_000)
        }

        func seek(toFrame frame: Int64) throws(MediaError) { next = frame }

        func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
            let count = Int(max(0, min(Int64(buffer.count / 2), format.frameCount! - next)))
            for i in 0..<2 * count { buffer[i] = SelectionTests.level(track!) }
            next += Int64(count)
            return count
        }
    }

    static let cues = [
        TimedText(range: range(0.5, 1), runs: [.init("eins")]),
        TimedText(range: range(0.75, 1.5), runs: [.init("zwei")]),
        TimedText(range: range(3, 4), runs: [.init("drei")]),
    ]

    private static func range(_ start: Double, _ end: Double) -> TimeRange {
        TimeRange(start: MediaTime(seconds: start), end: MediaTime(seconds: end))
    }

    static func item() -> PlayerItem {
        PlayerItem(
            asset: Asset(
                location: "film",
                opener: MediaOpener(
                    tracks: { _, track throws(MediaError) in Source(track: track) },
                    text: { location, track throws(MediaError) in
                        if track == 5 { return cues }
                        throw MediaError(
                            .damaged, operation: "read", subject: location, reason: "torn")
                    })))
    }

    private func level(_ room: VirtualRoom) -> Float { room.heard.last?.value ?? 0 }

    private func expectLevel(
        _ room: VirtualRoom, of tracks: [Int], sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        await room.step(seconds: 0.3)
        let due = tracks.reduce(0) { $0 + Self.level($1) }
        #expect(abs(level(room) - due) < 1e-3, "\(level(room))", sourceLocation: sourceLocation)
    }

    /// A disc that hangs; the test lets it go in the end.
    @Test func `reading a text ends with its task, however long the disc hangs`() async throws {
        let (isReading, isReleased) = (Flag(), Flag())
        let asset = Asset(
            location: "film",
            opener: MediaOpener(
                tracks: { _, track throws(MediaError) in Source(track: track) },
                text: { _, _ throws(MediaError) in
                    isReading.set()
                    while !isReleased.isSet { usleep(200) }
                    return Self.cues
                }))
        let tracks = try await asset.load(.tracks)
        let text = try #require(tracks.first { $0.kind == .text })
        let reading = Task { try await asset.loadText(of: text) }
        while !isReading.isSet { await Task.yield() }
        reading.cancel()
        let error = await #expect(throws: PlaybackError.self) { try await reading.value }
        #expect(error?.code == .cancelled)
        // Cancelled before it began.
        let other = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await asset.loadText(of: text)
        }
        other.cancel()
        await #expect(throws: PlaybackError.self) { try await other.value }
        isReleased.set()
        #expect(try await asset.loadText(of: text) == Self.cues)
    }

    @Test func `tracks are heard that are enabled, added up, in step, and none where none is`()
        async throws
    {
        let room = VirtualRoom()
        let item = Self.item()
        let player = try await room.makeReadyPlayer(item, shared: true)
        #expect(item.tracks.map(\.isEnabled) == [true, false, false, false, false])
        let host = room.groupNow + .milliseconds(100)
        try player.setRate(1, time: .zero, atHostTime: host)
        await expectLevel(room, of: [1])
        item.tracks[1].isEnabled = true
        await expectLevel(room, of: [1, 2])
        item.tracks[0].isEnabled = false
        await expectLevel(room, of: [2])
        item.tracks[2].isEnabled = true
        await expectLevel(room, of: [2, 4])
        for track in item.tracks { track.isEnabled = false }
        await expectLevel(room, of: [])
        item.tracks[0].isEnabled = true
        await expectLevel(room, of: [1])
        let due = (room.groupNow - host).seconds
        #expect(abs(player.currentTime().seconds - due) < 1e-3)
        await room.step { player.rate == 0 }
        #expect(player.currentTime().seconds == 10)
    }

    @Test func `an option takes the place of the one before, and one of another group is refused`()
        async throws
    {
        let room = VirtualRoom()
        let item = Self.item()
        #expect(item.mediaSelectionGroup(for: .audible) == nil, "nobody knows yet")
        let player = try await room.makeReadyPlayer(item)
        player.play()
        let sounds = try #require(item.mediaSelectionGroup(for: .audible))
        let texts = try #require(item.mediaSelectionGroup(for: .legible))
        #expect(item.mediaSelectionGroup(for: .visual) == nil)
        #expect(sounds.options.map(\.displayName) == ["eng", "deu", "Director"])
        #expect(item.selectedMediaOption(in: sounds) == sounds.defaultOption)
        #expect(item.selectedMediaOption(in: texts) == nil)
        try item.select(sounds.options[1], in: sounds)
        await expectLevel(room, of: [2])
        #expect(item.tracks.filter(\.isEnabled).map(\.id) == [2])
        let wrong = #expect(throws: PlaybackError.self) {
            try item.select(texts.options[0], in: sounds)
        }
        #expect(wrong?.code == .noSuchTrack)
        let none = #expect(throws: PlaybackError.self) { try item.select(nil, in: sounds) }
        #expect(none?.code == .selectionNotEmpty)
        item.selectAutomatically(in: sounds)
        await expectLevel(room, of: [1])
        let loaded = try await item.asset.loadMediaSelectionGroup(for: .audible)
        #expect(loaded == sounds)
    }

    @Test
    func `criteria choose by themselves, what is chosen counts more, and they can be set aside`()
        async throws
    {
        let room = VirtualRoom()
        let player = room.makePlayer()
        player.setMediaSelectionCriteria(
            MediaSelectionCriteria(preferredLanguages: ["de-AT", "fr"]), for: .audible)
        let item = Self.item()
        try player.replaceCurrentItem(with: item)
        try await item.ready()
        await room.step(seconds: 1)
        player.play()
        await expectLevel(room, of: [2])
        let sounds = try #require(item.mediaSelectionGroup(for: .audible))
        try item.select(sounds.options[0], in: sounds)
        await expectLevel(room, of: [1])
        item.selectAutomatically(in: sounds)
        await expectLevel(room, of: [2])
        player.appliesMediaSelectionCriteriaAutomatically = false
        await expectLevel(room, of: [1])
    }

    @Test(
        arguments: [
            (["ger"], [], [], 2), (["fr", "deu"], [], [], 2), (["fr"], [], [], 1),
            (["en"], [], [], 1), (["en-GB"], [], [], 1),
            (["en"], [MediaCharacteristic.isAuxiliaryContent], [], 4),
            ([], [], [MediaCharacteristic.isAuxiliaryContent], 4),
            (["de"], [], [MediaCharacteristic.isAuxiliaryContent], 4),
            ([], [], [MediaCharacteristic.describesVideo], 1),
        ] as [([String], Set<MediaCharacteristic>, Set<MediaCharacteristic>, Int)])
    func `criteria go by principal characteristics, then languages, then what is preferred`(
        languages: [String], preferred: Set<MediaCharacteristic>,
        principal: Set<MediaCharacteristic>, expected: Int
    ) throws {
        let group = try #require(
            MediaSelectionGroup(.audible, of: Self.tracks, heard: 1))
        let criteria = MediaSelectionCriteria(
            preferredLanguages: languages, preferredMediaCharacteristics: preferred,
            principalMediaCharacteristics: principal)
        #expect((criteria.choose(from: group) ?? group.defaultOption)?.track.id == expected)
    }

    @Test(arguments: [
        ("de", "deu"), ("ger", "de-CH"), ("fre", "fra"), ("zh-Hant", "chi"), ("EN", "eng"),
    ])
    func `codes of a language are one language`(one: String, other: String) throws {
        let (one, other) = (try #require(LanguageTag(one)), try #require(LanguageTag(other)))
        #expect(one.match(other) != nil && other.match(one) != nil)
        #expect(LanguageTag("und") == nil && LanguageTag("") == nil)
        #expect(one.match(try #require(LanguageTag("ja"))) == nil)
    }

    @Test func `text comes and goes with item time, on jumps too, and with the selection`()
        async throws
    {
        let room = VirtualRoom()
        let item = Self.item()
        let player = try await room.makeReadyPlayer(item)
        let seen = Mutex<[[String]]>([])
        let watching = Task {
            for await texts in player.timedText() {
                seen.withLock { $0.append(texts.map(\.string)) }
            }
        }
        let texts = try #require(item.mediaSelectionGroup(for: .legible))
        try item.select(texts.options[0], in: texts)
        // It is read on a queue of its own.
        while player.state.withLock({ $0.text.observer == nil }) { await Task.yield() }
        player.play()
        await room.step { player.currentTime().seconds > 2 }
        #expect(seen.withLock { $0 } == [[], ["eins"], ["eins", "zwei"], ["zwei"], []])
        _ = try await room.during { await player.seek(to: MediaTime(seconds: 3.5)) }
        await room.step(seconds: 0.2)
        #expect(seen.withLock { $0.last } == ["drei"])
        try item.select(nil, in: texts)
        await room.step(seconds: 0.1)
        #expect(seen.withLock { $0.last } == [])
        let notices = player.notices()
        try item.select(texts.options[1], in: texts)
        for await notice in notices {
            guard case .textFailed(let error) = notice else { continue }
            #expect(error.code == .mediaFailed)
            break
        }
        #expect(player.rate == 1, "what is heard goes on")
        watching.cancel()
    }

    @Test func `a mix and a tap may change while the item plays`() async throws {
        let room = VirtualRoom()
        let item = Self.item()
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await expectLevel(room, of: [1])
        var mix = AudioMix()
        try mix.setVolume(0.5, at: .zero)
        item.audioMix = mix
        await room.step(seconds: 0.3)
        #expect(abs(level(room) - Self.level(1) / 2) < 1e-3)
        item.audioMix = nil
        let tap = Inverter()
        item.audioTap = tap
        await room.step(seconds: 0.3)
        #expect(abs(level(room) + Self.level(1)) < 1e-3)
        item.audioTap = nil
        await expectLevel(room, of: [1])
        #expect(player.rate == 1 && tap.frames.withLock { $0 } > 0)
    }

    @Test func `tracks of a composition are mixed while it plays`() async throws {
        let room = VirtualRoom()
        var composition = Composition()
        let whole = TimeRange(start: .zero, duration: MediaTime(seconds: 10))
        let asset = Self.item().asset
        try composition.insert(whole, of: asset, at: .zero)
        let second = try composition.addTrack()
        try composition.insert(whole, of: asset, at: .zero, track: second)
        let item = PlayerItem(asset: Asset(composition))
        let player = try await room.makeReadyPlayer(item)
        player.play()
        await expectLevel(room, of: [1, 1])
        #expect(item.tracks.map(\.isEnabled) == [true, true])
        var mix = AudioMix()
        try mix.setVolume(0, at: .zero, track: second)
        item.audioMix = mix
        await expectLevel(room, of: [1])
        item.audioMix = nil
        await expectLevel(room, of: [1, 1])
        item.tracks[0].isEnabled = false
        await expectLevel(room, of: [1])
    }

    private final class Inverter: AudioTap {
        let frames = Mutex(0)
        func prepare(sampleRate: Int, channelCount: Int) {}
        func unprepare() {}
        func process(
            _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
            isContinuous: Bool
        ) {
            for i in samples.indices { samples[i] = -samples[i] }
            frames.withLock { $0 += samples.count / 2 }
        }
    }

    @Test func `steps go by packets, to their beginnings, and stay within the item`() async throws {
        let room = VirtualRoom()
        let item = Self.item()
        let player = try await room.makeReadyPlayer(item)
        func step(_ count: Int) async throws -> Double {
            _ = try await room.during { try await item.step(byCount: count) }
            return player.currentTime().seconds * 8_000
        }
        #expect(try await step(1) == 1_000)
        #expect(try await step(3) == 4_000)
        _ = try await room.during { await item.seek(to: MediaTime(value: 4_300, timescale: 8_000)) }
        #expect(try await step(-1) == 4_000)
        #expect(try await step(-1) == 3_000)
        #expect(try await step(.min) == 0)
        #expect(try await step(.max) == 80_000)
        let other = Self.item()
        let refusal = await #expect(throws: PlaybackError.self) {
            try await other.step(byCount: 1)
        }
        #expect(refusal?.code == .noItem)
    }
}
