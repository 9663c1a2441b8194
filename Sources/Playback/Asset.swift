import Synchronization
public import TuttiPlayout
public import TuttiTiming

/// Opens a location: how this module reaches a decoder without knowing one.
public struct MediaOpener: Sendable {
    /// What of a location is decoded.
    public struct Choice: Hashable, Sendable {
        /// `nil`: the default track.
        public var track: Int?
        /// Two of an output's channels, into which those of the track are mixed; `nil`: into stereo.
        public var channels: ChannelPair?

        /// What there is to choose; nothing is chosen unless it is said.
        public init(track: Int? = nil, channels: ChannelPair? = nil) {
            (self.track, self.channels) = (track, channels)
        }
    }

    /// Opens a path or URL; may block.
    public typealias Open =
        @Sendable (_ location: String, Choice) throws(MediaError) -> sending any MediaSource

    /// Reads all of the text track with that id, in order; may block.
    public typealias ReadText =
        @Sendable (_ location: String, _ track: Int) throws(MediaError) -> [TimedText]

    private let opens: Open
    private let readsText: ReadText
    /// Whether items with more than two channels can be opened for more than two.
    let opensChannels: Bool

    /// - Parameters:
    ///   - open: opens the file or URL to decode one of its audio tracks, or its default one; may block;
    ///     called on a queue of the player's own.
    ///   - read: reads all of a text track; the same.
    public init(choosing open: @escaping Open, text read: @escaping ReadText = Self.noText) {
        (opens, readsText, opensChannels) = (open, read, true)
    }

    /// Opens one of a location's tracks, or the default one, in stereo; may block.
    public typealias OpenTrack =
        @Sendable (_ location: String, _ track: Int?) throws(MediaError) -> sending any MediaSource

    /// The same for what is always stereo.
    public init(tracks open: @escaping OpenTrack, text read: @escaping ReadText = Self.noText) {
        opens = { location, choice throws(MediaError) in try open(location, choice.track) }
        (readsText, opensChannels) = (read, false)
    }

    /// The same without a choice.
    public init(
        _ open: @escaping @Sendable (String) throws(MediaError) -> sending any MediaSource
    ) {
        opens = { location, choice throws(MediaError) in
            guard choice.track == nil else {
                throw MediaError(
                    .unsupported, operation: "open", subject: location,
                    reason: "its tracks cannot be chosen by this opener")
            }
            return try open(location)
        }
        (readsText, opensChannels) = (Self.noText, false)
    }

    /// For what has none.
    public static let noText: ReadText = { location, _ throws(MediaError) in
        throw MediaError(
            .unsupported, operation: "read text", subject: location,
            reason: "its texts cannot be read by this opener")
    }

    /// May block.
    public func open(
        _ location: String, track: Int? = nil
    ) throws(MediaError) -> sending any MediaSource {
        try open(location, Choice(track: track))
    }

    func open(
        _ location: String, _ choice: Choice
    ) throws(MediaError) -> sending any MediaSource {
        try opens(location, choice)
    }

    /// All of a text track; may block.
    public func readText(_ location: String, track: Int) throws(MediaError) -> [TimedText] {
        try readsText(location, track)
    }
}

/// A piece of media at a location.
///
/// Making one reads nothing; ``load(_:)`` reads what is asked for, once. Two assets on one location
/// are independent.
public final class Asset: Sendable {
    /// Path or URL.
    public let location: String
    let opener: MediaOpener
    /// Whether all of it is at hand: nothing of it comes from a server.
    let isLocal: Bool
    private let prober: Prober
    private let progress = Mutex(AssetProgress())

    /// An asset at a path or an address, which `opener` understands. Reads nothing.
    public convenience init(location: String, opener: MediaOpener) {
        // A list may name what lies elsewhere.
        let isList = location.lowercased().hasSuffix(".m3u8")
        let isFile = !location.contains("://") || location.hasPrefix("file://")
        self.init(location: location, opener: opener, isLocal: isFile && !isList)
    }

    init(location: String, opener: MediaOpener, isLocal: Bool) {
        self.location = location
        self.opener = opener
        self.isLocal = isLocal
        self.prober = Prober(location: location, opener: opener)
    }

    /// The value of `property`; opens the asset the first time, later calls answer at once. Ends with its
    /// task: then it throws ``PlaybackError/Code/cancelled``.
    public func load<Value>(
        _ property: AssetProperty<Value>
    ) async throws(PlaybackError) -> Value {
        try property.read(await facts(for: [property.key]))
    }

    /// Several values in one batch. Where one of them fails the batch does; the others are loaded all the
    /// same, and answer at once.
    public func load<First, Second, each Rest>(
        _ first: AssetProperty<First>, _ second: AssetProperty<Second>,
        _ rest: repeat AssetProperty<each Rest>
    ) async throws(PlaybackError) -> (First, Second, repeat each Rest) {
        var keys = [first.key, second.key]
        repeat keys.append((each rest).key)
        let facts = await facts(for: keys)
        return (
            try first.read(facts), try second.read(facts), repeat try (each rest).read(facts)
        )
    }

    /// How far loading `property` has come: of what nobody has asked for, nowhere. An item asks for all
    /// of them.
    public func status<Value>(of property: AssetProperty<Value>) -> LoadingStatus {
        progress.withLock { $0[property.key] }
    }

    func loadFacts() async throws(PlaybackError) -> AssetFacts {
        try await facts(for: []).get()
    }

    /// The same for an item, which keeps what was opened to play it from.
    func loadFacts(for sources: SourcePool) async throws(PlaybackError) -> AssetFacts {
        try await facts(for: AssetKey.allCases, keepingIn: sources).get()
    }

    /// Opens the asset once; an asset that failed is tried again.
    private func facts(
        for keys: [AssetKey], keepingIn sources: SourcePool? = nil
    ) async -> Result<AssetFacts, PlaybackError> {
        progress.withLock { $0.begin(keys) }
        let facts = await prober.facts(keepingIn: sources)
        progress.withLock { $0.end(keys, facts) }
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
            let opened = SourcePool.Cursor(try opener.open(location), for: MediaOpener.Choice())
            cursor = opened
            answer = .success(opened.facts)
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
