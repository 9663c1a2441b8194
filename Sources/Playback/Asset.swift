import Synchronization
public import TuttiPlayout
import TuttiTiming

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

    /// The same, and ends with ``MediaError/Code/cancelled`` when it is cancelled; so do the reads of what
    /// it opened.
    public typealias OpenCancellable =
        @Sendable (_ location: String, Choice, MediaCancellation) throws(MediaError) ->
        sending any MediaSource

    /// Reads a text track until it is cancelled.
    public typealias ReadCancellableText =
        @Sendable (_ location: String, _ track: Int, MediaCancellation) throws(MediaError) ->
        [TimedText]

    private let opens: OpenCancellable
    private let readsText: ReadCancellableText
    /// Whether items with more than two channels can be opened for more than two.
    let opensChannels: Bool

    /// For media that may have to be waited for: what nobody needs any more is cancelled.
    ///
    /// - Parameters:
    ///   - open: opens the file or URL to decode one of its audio tracks, or its default one; may block;
    ///     called on a queue of the player's own. What is opened reads until its cancellation: when the
    ///     last one who waits for it has left, or its item has left its player.
    ///   - read: reads all of a text track; the same.
    public init(
        cancellable open: @escaping OpenCancellable,
        text read: @escaping ReadCancellableText = Self.noCancellableText
    ) {
        (opens, readsText, opensChannels) = (open, read, true)
    }

    /// The same for what ends by itself: an opening or a read that nobody needs any more goes on to its
    /// end.
    ///
    /// - Parameters:
    ///   - open: opens the file or URL to decode one of its audio tracks, or its default one.
    ///   - read: reads all of a text track.
    public init(choosing open: @escaping Open, text read: @escaping ReadText = Self.noText) {
        opens = { location, choice, _ throws(MediaError) in try open(location, choice) }
        readsText = { location, track, _ throws(MediaError) in try read(location, track) }
        opensChannels = true
    }

    /// Opens one of a location's tracks, or the default one, in stereo; may block.
    public typealias OpenTrack =
        @Sendable (_ location: String, _ track: Int?) throws(MediaError) -> sending any MediaSource

    /// The same for what is always stereo.
    public init(tracks open: @escaping OpenTrack, text read: @escaping ReadText = Self.noText) {
        opens = { location, choice, _ throws(MediaError) in try open(location, choice.track) }
        readsText = { location, track, _ throws(MediaError) in try read(location, track) }
        opensChannels = false
    }

    /// Opens a track in stereo, until it is cancelled.
    public typealias OpenCancellableTrack =
        @Sendable (_ location: String, _ track: Int?, MediaCancellation) throws(MediaError) ->
        sending any MediaSource

    /// What is always stereo, where what nobody needs any more is cancelled; without texts.
    public init(cancellableTracks open: @escaping OpenCancellableTrack) {
        opens = { location, choice, cancellation throws(MediaError) in
            try open(location, choice.track, cancellation)
        }
        (readsText, opensChannels) = (Self.noCancellableText, false)
    }

    /// The same without a choice.
    public init(
        _ open: @escaping @Sendable (String) throws(MediaError) -> sending any MediaSource
    ) {
        opens = { location, choice, _ throws(MediaError) in
            guard choice.track == nil else {
                throw MediaError(
                    .unsupported, operation: "open", subject: location,
                    reason: "its tracks cannot be chosen by this opener")
            }
            return try open(location)
        }
        (readsText, opensChannels) = (Self.noCancellableText, false)
    }

    /// For what has none.
    public static let noText: ReadText = { location, _ throws(MediaError) in
        throw MediaError(
            .unsupported, operation: "read text", subject: location,
            reason: "its texts cannot be read by this opener")
    }

    /// For what has none, and can be cancelled.
    public static let noCancellableText: ReadCancellableText = {
        location, track, _ throws(MediaError) in
        try noText(location, track)
    }

    /// May block, until it is cancelled.
    public func open(
        _ location: String, track: Int? = nil,
        cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> sending any MediaSource {
        try open(location, Choice(track: track), cancellation)
    }

    func open(
        _ location: String, _ choice: Choice, _ cancellation: MediaCancellation
    ) throws(MediaError) -> sending any MediaSource {
        try opens(location, choice, cancellation)
    }

    /// All of a text track; may block, until it is cancelled.
    public func readText(
        _ location: String, track: Int, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> [TimedText] {
        try readsText(location, track, cancellation)
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
/// The opening is cancelled when the last one who waits for it has left. Whoever asks then starts
/// another one.
private final class Prober: Sendable {
    typealias Answer = Result<AssetFacts, PlaybackError>

    fileprivate struct State {
        var known: AssetFacts?
        /// Ends the opening that the askers wait for; `nil` while there is none.
        var opening: MediaCancellation?
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
                    if state.opening == nil {
                        let opening = MediaCancellation()
                        state.opening = opening
                        queue.run { [self] in open(opening) }
                    }
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let (waiting, opening) = state.withLock { $0.leave(asker) }
            opening?.cancel()
            waiting?.resume(returning: .failure(gaveUp))
        }
    }

    private var gaveUp: PlaybackError {
        PlaybackError(.cancelled, "loading \(location) was given up")
    }

    private func open(_ opening: MediaCancellation) {
        let answer: Answer
        var cursor: SourcePool.Cursor?
        // One that nobody waited for any more may have come to its end all the same.
        if let known = state.withLock({ $0.known }) {
            answer = .success(known)
        } else {
            do throws(MediaError) {
                let choice = MediaOpener.Choice()
                let opened = SourcePool.Cursor(
                    try opener.open(location, choice, opening), for: choice, opening)
                cursor = opened
                answer = .success(opened.facts)
            } catch {
                answer = .failure(
                    PlaybackError(.mediaFailed, "\(location) cannot be opened", underlying: error))
            }
        }
        let (askers, sources, generation) = state.withLock { $0.end(opening, answer) }
        if let cursor { sources?.keep(cursor, generation: generation) }
        for asker in askers { asker.resume(returning: answer) }
    }
}

extension Prober.State {
    /// - Returns: who has left, and what nobody waits for any more.
    fileprivate mutating func leave(
        _ asker: Int
    ) -> (CheckedContinuation<Prober.Answer, Never>?, MediaCancellation?) {
        let waiting = askers.removeValue(forKey: asker)
        guard waiting != nil, askers.isEmpty else { return (waiting, nil) }
        defer { (opening, sources) = (nil, nil) }
        return (waiting, opening)
    }

    /// - Returns: who waited for this opening; none where all had left, whoever came since.
    fileprivate mutating func end(
        _ opening: MediaCancellation, _ answer: Prober.Answer
    ) -> ([CheckedContinuation<Prober.Answer, Never>], SourcePool?, generation: Int) {
        if let facts = try? answer.get() { known = facts }
        guard self.opening === opening else { return ([], nil, 0) }
        defer { (self.opening, askers, sources) = (nil, [:], nil) }
        return (Array(askers.values), sources, generation)
    }
}
