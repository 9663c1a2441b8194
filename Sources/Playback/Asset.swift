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

/// What an asset is found to be when it is opened.
struct AssetFacts: Equatable, Sendable {
    var format: MediaFormat
    var metadata: MediaMetadata
}

/// What can be asked of an asset.
public struct AssetProperty<Value: Sendable>: Sendable {
    let read: @Sendable (Result<AssetFacts, PlaybackError>) throws(PlaybackError) -> Value
}

extension AssetProperty {
    /// Sample rate, channels and number of frames.
    public static var format: AssetProperty<MediaFormat> {
        AssetProperty<MediaFormat> { facts throws(PlaybackError) in try facts.get().format }
    }

    /// Exact, in frames of the asset; ``MediaTime/indefinite`` for a live stream.
    public static var duration: AssetProperty<MediaTime> {
        AssetProperty<MediaTime> { facts throws(PlaybackError) in try facts.get().format.duration }
    }

    /// Tags, chapters, cover picture and loudness.
    public static var metadata: AssetProperty<MediaMetadata> {
        AssetProperty<MediaMetadata> { facts throws(PlaybackError) in try facts.get().metadata }
    }

    /// Whether there is audio that this build can decode; throws when the asset cannot be reached,
    /// because then nobody knows.
    public static var isPlayable: AssetProperty<Bool> {
        AssetProperty<Bool> { facts throws(PlaybackError) in
            switch facts {
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

    /// The value of `property`; opens the asset the first time, later calls answer at once. Ends with its
    /// task: then it throws ``PlaybackError/Code/cancelled``.
    public func load<Value>(
        _ property: AssetProperty<Value>
    ) async throws(PlaybackError) -> Value {
        try property.read(await facts(keepingIn: nil))
    }

    /// Several values in one batch.
    public func load<First, Second, each Rest>(
        _ first: AssetProperty<First>, _ second: AssetProperty<Second>,
        _ rest: repeat AssetProperty<each Rest>
    ) async throws(PlaybackError) -> (First, Second, repeat each Rest) {
        let facts = await facts(keepingIn: nil)
        return (
            try first.read(facts), try second.read(facts), repeat try (each rest).read(facts)
        )
    }

    /// How far loading `property` has come. All properties come from the same probe.
    public func status<Value>(of property: AssetProperty<Value>) -> LoadingStatus {
        progress.withLock { $0 }
    }

    /// The same for an item, which keeps what was opened to play it from.
    func loadFacts(for sources: SourcePool) async throws(PlaybackError) -> AssetFacts {
        try await facts(keepingIn: sources).get()
    }

    /// Opens the asset once; an asset that failed is tried again.
    private func facts(
        keepingIn sources: SourcePool?
    ) async -> Result<AssetFacts, PlaybackError> {
        progress.withLock { if $0 != .loaded { $0 = .loading } }
        let facts = await prober.facts(keepingIn: sources)
        progress.withLock {
            switch facts {
            case .success: $0 = .loaded
            case .failure(let error):
                // Another one who asked may know better, or still wait.
                if $0 != .loaded, error.code != .cancelled { $0 = .failed(error.description) }
            }
        }
        return facts
    }
}

/// Opens an asset to look at what it is, off the cooperative pool, once for all who ask at a time.
///
/// Opening cannot be interrupted; waiting for it can.
private final class Prober: Sendable {
    typealias Answer = Result<AssetFacts, PlaybackError>

    private struct State {
        var known: AssetFacts?
        var isOpening = false
        var askers: [Int: CheckedContinuation<Answer, Never>] = [:]
        var count = 0
        /// Who wants what is opened, besides the facts, while it has not been emptied since.
        var sources: SourcePool?
        var generation = 0
    }

    private let queue = DecodingQueue()
    private let location: String
    private let opener: MediaOpener
    private let state = Mutex(State())

    init(location: String, opener: MediaOpener) {
        self.location = location
        self.opener = opener
    }

    func facts(keepingIn sources: SourcePool?) async -> Answer {
        let asker = state.withLock { state in
            state.count += 1
            return state.count
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Answer? = state.withLock { state in
                    if let known = state.known { return .success(known) }
                    // Its task may have ended before it had begun to wait.
                    if Task.isCancelled { return .failure(gaveUp) }
                    if state.sources == nil, let sources {
                        state.sources = sources
                        state.generation = sources.generation
                    }
                    state.askers[asker] = continuation
                    if !state.isOpening {
                        state.isOpening = true
                        queue.run { [self] in open() }
                    }
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { $0.askers.removeValue(forKey: asker) }
            waiting?.resume(returning: .failure(gaveUp))
        }
    }

    private var gaveUp: PlaybackError {
        PlaybackError(.cancelled, "loading \(location) was given up")
    }

    private func open() {
        let answer: Answer
        var cursor: SourcePool.Cursor?
        do throws(MediaError) {
            let opened = SourcePool.Cursor(try opener.open(location))
            cursor = opened
            answer = .success(AssetFacts(format: opened.format, metadata: opened.metadata))
        } catch {
            answer = .failure(
                PlaybackError(.mediaFailed, "\(location) cannot be opened", underlying: error))
        }
        let (askers, sources, generation) = state.withLock { state in
            defer {
                state.askers = [:]
                state.sources = nil
            }
            state.known = try? answer.get()
            state.isOpening = false
            return (state.askers.values, state.sources, state.generation)
        }
        if let cursor { sources?.keep(cursor, generation: generation) }
        for asker in askers { asker.resume(returning: answer) }
    }
}
