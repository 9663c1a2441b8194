public import TuttiPlayout
public import TuttiTiming

/// What an asset is found to be when it is opened.
struct AssetFacts: Equatable, Sendable {
    var format: MediaFormat
    var metadata: MediaMetadata
    var tracks: [MediaTrack] = []
    /// The one that is heard unless somebody chooses; `nil` where it is not known.
    var track: Int?
    /// Frames that are coded together; 0 where that is not known.
    var packetFrames = 0
}

/// Names a property of an asset.
enum AssetKey: CaseIterable, Sendable {
    case format, duration, metadata, chapters, tracks, isPlayable

    /// Why the property has no value, by what came of opening; `nil`: it has one.
    func failure(_ facts: Result<AssetFacts, PlaybackError>) -> PlaybackError? {
        guard case .failure(let error) = facts else { return nil }
        // Of what was read and is nothing to play, that much is known.
        return self == .isPlayable && error.isVerdict ? nil : error
    }
}

extension PlaybackError {
    /// Whether the bytes were seen, and are nothing that this build can decode.
    fileprivate var isVerdict: Bool {
        switch (underlying as? MediaError)?.code {
        case .notMedia, .noAudio, .unsupported, .encrypted, .damaged: true
        default: false
        }
    }
}

/// What can be asked of an asset.
public struct AssetProperty<Value: Sendable>: Sendable {
    typealias Read =
        @Sendable (Result<AssetFacts, PlaybackError>) throws(PlaybackError) -> Value

    let key: AssetKey
    let read: Read

    private init(_ key: AssetKey, _ read: @escaping Read) {
        (self.key, self.read) = (key, read)
    }
}

extension AssetProperty {
    /// Sample rate, channels and number of frames.
    public static var format: AssetProperty<MediaFormat> {
        AssetProperty<MediaFormat>(.format) { facts throws(PlaybackError) in
            try facts.get().format
        }
    }

    /// Exact, in frames of the asset; ``MediaTime/indefinite`` for a live stream.
    public static var duration: AssetProperty<MediaTime> {
        AssetProperty<MediaTime>(.duration) { facts throws(PlaybackError) in
            try facts.get().format.duration
        }
    }

    /// Tags, chapters, cover picture and loudness.
    public static var metadata: AssetProperty<MediaMetadata> {
        AssetProperty<MediaMetadata>(.metadata) { facts throws(PlaybackError) in
            try facts.get().metadata
        }
    }

    /// The chapters alone, in their order.
    public static var chapters: AssetProperty<[MediaMetadata.Chapter]> {
        AssetProperty<[MediaMetadata.Chapter]>(.chapters) { facts throws(PlaybackError) in
            try facts.get().metadata.chapters
        }
    }

    /// All that the asset consists of besides pictures and attached files, in its order.
    public static var tracks: AssetProperty<[MediaTrack]> {
        AssetProperty<[MediaTrack]>(.tracks) { facts throws(PlaybackError) in
            try facts.get().tracks
        }
    }

    /// Whether there is audio that this build can decode; throws when the asset cannot be reached,
    /// because then nobody knows.
    public static var isPlayable: AssetProperty<Bool> {
        AssetProperty<Bool>(.isPlayable) { facts throws(PlaybackError) in
            if let error = AssetKey.isPlayable.failure(facts) { throw error }
            return (try? facts.get()) != nil
        }
    }
}

extension MediaFormat {
    /// The length of the item; ``MediaTime/indefinite`` for a live stream.
    public var duration: MediaTime {
        frameCount.map { MediaTime(frame: $0, sampleRate: sampleRate) } ?? .indefinite
    }
}

extension Asset {
    /// How far one of an asset's properties has come.
    public enum LoadingStatus: Equatable, Sendable {
        /// Nobody has asked for it.
        case notLoaded
        /// Somebody waits for it.
        case loading
        /// It has a value; that nothing can be played is asked of the file again each time.
        case loaded
        /// As told to who asked last; it can be asked for again.
        case failed(PlaybackError)
        /// All who waited for it gave up; it can be asked for again.
        case cancelled

        public static func == (a: Self, b: Self) -> Bool {
            switch (a, b) {
            case (.notLoaded, .notLoaded), (.loading, .loading), (.loaded, .loaded),
                (.cancelled, .cancelled):
                true
            case (.failed(let a), .failed(let b)):
                a.code == b.code && a.description == b.description
            default: false
            }
        }
    }
}

/// How far each property of an asset has come.
struct AssetProgress {
    private struct Entry {
        var status = Asset.LoadingStatus.notLoaded
        var askers = 0
    }

    private var entries: [AssetKey: Entry] = [:]
    /// It could be opened, and will not be again; until then whoever asks has it looked at anew.
    private var isOpened = false

    subscript(key: AssetKey) -> Asset.LoadingStatus { entries[key]?.status ?? .notLoaded }

    /// Somebody waits for these.
    mutating func begin(_ keys: [AssetKey]) {
        for key in keys {
            var entry = entries[key] ?? Entry()
            entry.askers += 1
            if entry.status != .loaded || !isOpened { entry.status = .loading }
            entries[key] = entry
        }
    }

    /// Somebody who waited for these has an answer, or gave up.
    mutating func end(_ keys: [AssetKey], _ facts: Result<AssetFacts, PlaybackError>) {
        if case .success = facts { isOpened = true }
        for key in keys {
            guard var entry = entries[key] else { continue }
            entry.askers -= 1
            let failure = key.failure(facts)
            switch failure?.code {
            case nil: entry.status = .loaded
            // Another one who asked knows better, or still waits.
            case _ where isOpened && entry.status == .loaded: break
            case .cancelled?: if entry.askers == 0 { entry.status = .cancelled }
            default: if let failure { entry.status = .failed(failure) }
            }
            entries[key] = entry
        }
    }
}
