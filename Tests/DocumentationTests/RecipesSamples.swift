import Synchronization
import Tutti

/// Where a list was left off: what is still to be heard, and from where on.
struct Bookmark: Codable {
    var files: [String]
    var seconds: Double
}

/// Nothing is read before it is needed: a list of a thousand files begins as soon as one does.
func resume(_ bookmark: Bookmark) async throws -> QueuePlayer {
    let items = bookmark.files.map { PlayerItem(url: $0) }
    let player = try QueuePlayer(items: items)
    await player.seek(to: MediaTime(seconds: bookmark.seconds))
    player.play()
    return player
}

func bookmark(_ player: QueuePlayer) -> Bookmark {
    let time = player.currentTime()
    return Bookmark(
        files: player.items().map(\.asset.location), seconds: time.isNumeric ? time.seconds : 0)
}

/// The first sample of the file leaves all devices at one instant, and none runs away afterwards.
func start(_ file: String, on devices: [AudioDevice]) async throws -> [Player] {
    let players = devices.map { Player(url: file, device: $0) }
    for player in players {
        player.sourceClock = .host  // each card is resampled to the machine's clock
        player.automaticallyWaitsToMinimizeStalling = false  // a line waits for nobody
        try await player.currentItem?.ready()
        guard try await player.preroll(atRate: 1) else { throw CancellationError() }
        try await player.readyForLockstep()  // a card is known after some tenths
    }
    let instant = MediaClock.host.now() + .milliseconds(250)
    for player in players { try player.setRate(1, time: .zero, atHostTime: instant) }
    return players
}

/// The largest sample of each 20 ms of an item, kept until it is heard.
final class LevelMeter: AudioTap {
    private let peaks = Mutex<[Int64: Float]>([:])
    /// A minute: more than is decoded ahead.
    private static let kept: Int64 = 3_000

    func prepare(sampleRate: Int, channelCount: Int) {}
    func unprepare() {}

    func process(
        _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
        isContinuous: Bool
    ) {
        var found: [Int64: Float] = [:]
        for (place, sample) in samples.enumerated() {
            let part = (itemFrame + Int64(place / 2)) * 50 / Int64(sampleRate)
            found[part] = max(found[part] ?? 0, abs(sample))
        }
        let newest = found.keys.max() ?? 0
        peaks.withLock { peaks in
            peaks.merge(found, uniquingKeysWith: max)
            peaks = peaks.filter { abs($0.key - newest) < Self.kept }
        }
    }

    /// Linear; 0 where nothing was decoded.
    func level(at time: MediaTime) -> Float {
        guard time.isNumeric else { return 0 }
        return peaks.withLock { $0[Int64(time.seconds * 50)] ?? 0 }
    }
}

/// `currentTime()` and what observes it say what is audible now, so the meter does too.
func show(_ meter: LevelMeter, of player: Player) async {
    player.currentItem?.audioTap = meter
    for await time in player.periodicTimes(every: MediaTime(value: 1, timescale: 25)) {
        print(String(repeating: "#", count: Int(60 * min(meter.level(at: time), 1))))
    }
}

/// Two songs as one item: the second comes up while the first goes.
func crossfade(_ first: Asset, _ second: Asset, seconds: Int64 = 4) async throws -> PlayerItem {
    let (length, rest) = (try await first.load(.duration), try await second.load(.duration))
    let fade = MediaTime(value: seconds, timescale: 1)
    let overlap = TimeRange(start: length - fade, duration: fade)

    var composition = Composition()
    try composition.insert(TimeRange(start: .zero, duration: length), of: first, at: .zero)
    let track = try composition.addTrack()
    try composition.insert(
        TimeRange(start: .zero, duration: rest), of: second, at: overlap.start, track: track)

    var mix = AudioMix()
    try mix.setVolumeRamp(from: 1, to: 0, over: overlap, track: 0)
    try mix.setVolumeRamp(from: 0, to: 1, over: overlap, track: track)
    let item = PlayerItem(asset: Asset(composition))
    item.audioMix = mix
    return item
}

/// Plays into a WAV file, at the pace of a card.
func save(_ item: PlayerItem, to path: String) async throws {
    let file = AudioDevice.file(path)  // with `overwrites: true` it may replace what is there
    if let error = file.error { throw error }
    let player = try Player(playerItem: item, device: file)
    let notices = player.notices()
    player.play()
    for await notice in notices {
        switch notice {
        case .didPlayToEnd: return  // with its last player the device goes, and the file is whole
        case .failedToPlayToEnd(let error): throw error
        default: break
        }
    }
}

/// The line that is sung, and the one that comes.
func karaoke(_ player: Player) async throws {
    guard let item = player.currentItem else { return }
    try await item.ready()
    guard let texts = item.mediaSelectionGroup(for: .legible), let words = texts.options.first
    else { return }
    try item.select(words, in: texts)
    let lines = try await item.asset.loadText(of: words.track)
    for await shown in player.timedText() {
        let now = player.currentTime()
        let next = lines.first { $0.range.start > now }
        print(shown.map(\.string).joined(separator: " "), next.map { "… \($0.string)" } ?? "")
    }
}

/// Reads on half as fast again, with the reader's own voice, from the beginning of a chapter.
func listen(to player: Player, chapter number: Int) async throws {
    guard let item = player.currentItem else { return }
    try await item.ready()
    let chapters = item.metadata?.chapters ?? []
    for (number, chapter) in chapters.enumerated() {
        print(number, chapter.title ?? "untitled", chapter.range.start.seconds)
    }
    if chapters.indices.contains(number) {
        await player.seek(to: chapters[number].range.start)
    }
    item.audioTimePitchAlgorithm = .timeDomain
    try player.setDefaultRate(1.5)
    player.play()
}

/// How far the chapter has come, from 0 to 1; `nil` where the book has none here.
func progress(_ player: Player) -> Double? {
    let time = player.currentTime()
    guard let range = player.currentItem?.metadata?.chapter(at: time)?.range else { return nil }
    return (time - range.start).seconds / range.duration.seconds
}
