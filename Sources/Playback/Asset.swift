public import Playout
import Synchronization
public import Timing

/// Opens a location: how this module reaches a decoder without knowing one.
public struct MediaOpener: Sendable {
    /// Opens the file or URL; may block; called on a queue of the player's own.
    public let open: @Sendable (String) throws(MediaError) -> sending any MediaSource

    public init(
        _ open: @escaping @Sendable (String) throws(MediaError) -> sending any MediaSource
    ) {
        self.open = open
    }
}

/// What can be asked of an asset.
public struct AssetProperty<Value: Sendable>: Sendable {
    let read: @Sendable (Result<MediaFormat, PlaybackError>) throws(PlaybackError) -> Value
}

extension AssetProperty {
    /// Sample rate, channels and number of frames.
    public static var format: AssetProperty<MediaFormat> {
        AssetProperty<MediaFormat> { format throws(PlaybackError) in try format.get() }
    }

    /// Exact, in frames of the asset; ``MediaTime/indefinite`` for a live stream.
    public static var duration: AssetProperty<MediaTime> {
        AssetProperty<MediaTime> { format throws(PlaybackError) in try format.get().duration }
    }

    /// Whether there is audio that this build can decode; throws when the asset cannot be reached,
    /// because then nobody knows.
    public static var isPlayable: AssetProperty<Bool> {
        AssetProperty<Bool> { format throws(PlaybackError) in
            switch format {
            case .success: return true
            case .failure(let error):
                switch (error.underlying as? MediaError)?.code {
                case .notMedia, .noAudio, .unsupported, .encrypted, .damaged: return false
                default: throw error
                }
            }
        }
    }
}

extension MediaFormat {
    /// The length of the item; ``MediaTime/indefinite`` for a live stream.
    public var duration: MediaTime {
        frameCount.map { MediaTime(frame: $0, sampleRate: sampleRate) } ?? .indefinite
    }
}

/// A piece of media at a location.
///
/// Making one reads nothing; ``load(_:)`` reads what is asked for, once. Two assets on one location
/// are independent.
public final class Asset: Sendable {
    public enum LoadingStatus: Equatable, Sendable {
        case notLoaded, loading, loaded
        case failed(String)
    }

    /// Path or URL.
    public let location: String
    let opener: MediaOpener
    private let prober: Prober
    private let progress: Mutex<LoadingStatus>

    public init(location: String, opener: MediaOpener) {
        self.location = location
        self.opener = opener
        self.prober = Prober(location: location, opener: opener)
        self.progress = Mutex(.notLoaded)
    }

    /// The value of `property`; opens the asset the first time, later calls answer at once.
    public func load<Value>(
        _ property: AssetProperty<Value>
    ) async throws(PlaybackError) -> Value {
        try property.read(await format())
    }

    /// Several values in one batch.
    public func load<First, Second, each Rest>(
        _ first: AssetProperty<First>, _ second: AssetProperty<Second>,
        _ rest: repeat AssetProperty<each Rest>
    ) async throws(PlaybackError) -> (First, Second, repeat each Rest) {
        let format = await format()
        return (
            try first.read(format), try second.read(format), repeat try (each rest).read(format)
        )
    }

    /// How far loading `property` has come. All properties come from the same probe.
    public func status<Value>(of property: AssetProperty<Value>) -> LoadingStatus {
        progress.withLock { $0 }
    }

    /// Opens the asset once; an asset that failed is tried again.
    private func format() async -> Result<MediaFormat, PlaybackError> {
        progress.withLock { if $0 != .loaded { $0 = .loading } }
        let format = await prober.format()
        progress.withLock {
            switch format {
            case .success: $0 = .loaded
            case .failure(let error): $0 = .failed(error.description)
            }
        }
        return format
    }
}

/// Opens an asset to look at its format, off the cooperative pool.
private actor Prober {
    private nonisolated let queue = DecodingQueue()
    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    private let location: String
    private let opener: MediaOpener
    private var known: MediaFormat?

    init(location: String, opener: MediaOpener) {
        self.location = location
        self.opener = opener
    }

    func format() -> Result<MediaFormat, PlaybackError> {
        if let known { return .success(known) }
        do throws(MediaError) {
            let format = try opener.open(location).format
            known = format
            return .success(format)
        } catch {
            return .failure(
                PlaybackError(.mediaFailed, "\(location) cannot be opened", underlying: error))
        }
    }
}
