import Synchronization
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// Keeps one voice supplied with decoded frames.
///
/// A feed begins at one frame of one item and only goes on from there: a seek is a new feed beside the
/// old one, which sounds until the new one takes over. Its voice plays frames that the recipe makes of
/// the item's; what the feed is told and says is in frames of the item. Its task opens the source, fills the ring,
/// and then sleeps until a good part of the ring has been played; it ends, and gives voice and
/// source back, when the item has been played, when its voice was stopped for good, or when
/// cancelled.
///
/// The actor's part is the decoding (see `Feed+Decoding.swift`), on a queue of its own. The
/// part declared here is what the player does from any thread: it only touches `control`.
actor Feed {
    /// How filling the ring came out.
    enum Filling: Sendable {
        case filled
        case failed(PlaybackError)
        /// Cancelled before it was full enough.
        case ended
    }

    enum Event: Sendable {
        /// There are frames, or more of them, and perhaps otherwise supplied than before.
        case supplied
        /// Nothing more can be decoded, and what was has been heard.
        case failed(PlaybackError)
        /// The ring ran dry while playing by this order.
        case starved(UInt64)
        /// The last frame has left the card.
        case playedToEnd(UInt64)
        /// The line is further ahead than decoding can make good; a new feed must be made.
        case leftBehind(UInt64)
        /// The voice has been given back.
        case closed
    }

    struct Start: Sendable {
        var line: Line
        var clock: MediaClock?
        var endFrame: Int64?
        var fadesIn: Bool
        var waits: Bool
    }

    /// How frames come, by the last fill.
    struct Supply: Equatable {
        /// The rest will come in time.
        var keepsUp = false
        /// Decoding rests: there is no room for more, or no more to come.
        var isFull = false
    }

    struct Control {
        /// The one that is watched: what is so of it is so of the others.
        var voice: Voice?
        /// Of the output's further channels, in step with it: they have the same line.
        var wing: [Voice] = []
        /// How their frames lie on those of the item.
        var map = FrameMap.identity
        var orders = Orders()
        var isCancelled = false
        /// Where decoding begins, once that is decided.
        var position: Int64?
        /// What was asked for first is in the ring.
        var hasFrames = false
        var supply = Supply()
        /// Why decoding ended before the item did. What came before it is played.
        var failure: PlaybackError?
        /// The voice was playing when it was last looked at.
        var isSupplied = false
        /// The feed ends once its voice has come to rest.
        var retires = false
        var filling: Filling?
        var waiters: [CheckedContinuation<Filling, Never>] = []
        var task: Task<Void, Never>?
        var nap: Task<Void, Never>?
        /// Ends the opening that the task is at.
        var opening: MediaCancellation?
        /// Something changed since the task last looked: do not sleep.
        var isWoken = false
    }

    nonisolated let item: PlayerItem
    /// Of the item's sources, when the feed was made.
    nonisolated let generation: Int
    nonisolated let format: MediaFormat
    nonisolated let recipe: FeedRecipe
    /// The voice's first frame that will be decoded, unless the line has left it behind by then.
    nonisolated let firstFrame: Int64
    /// The voice's first that is to be heard.
    nonisolated let wantedFrame: Int64
    nonisolated let output: PlayerOutput
    nonisolated let events: @Sendable (Feed, Event) -> Void
    nonisolated let control = Mutex(Control())
    private nonisolated let queue = DecodingQueue()
    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    /// All sources of the item were in use when there was room to fill.
    var isHungry = false
    var meter = SupplyMeter()
    /// What its frames come by.
    lazy var pipelines = item.makePipelines(
        recipe, format, for: output.port.channelLayout)

    init(
        item: PlayerItem, format: MediaFormat, frame: Double, recipe: FeedRecipe, gain: Float,
        output: PlayerOutput, events: @escaping @Sendable (Feed, Event) -> Void
    ) {
        self.item = item
        self.generation = item.sources.generation
        self.format = format
        // Frames before the wanted one are the resampler's history: without them a start in the
        // middle of a sound would ring.
        self.wantedFrame = recipe.wantedFrame(for: frame)
        self.firstFrame = recipe.firstFrame(for: frame)
        self.recipe = recipe
        self.output = output
        self.events = events
        control.withLock { $0.orders.setGain(gain) }
    }

    /// More than half the length of the resampler's filter at the highest rate.
    static let historyFrames: Int64 = 256

    /// Begins to work. The feed's task is its own: whoever made the feed must ``cancel()`` it or
    /// let it ``retire()``.
    nonisolated func begin() {
        let task = Task(executorPreference: output.executor) { await self.run() }
        control.withLock {
            $0.task = task
            if $0.isCancelled { task.cancel() }
        }
    }

    // MARK: The voice

    /// Plays by `start`; before there is a voice, as soon as there is one. Takes back a stop, and
    /// that the feed was to retire.
    ///
    /// - Returns: false when the feed has ended.
    @discardableResult
    nonisolated func start(_ start: Start) -> Bool {
        let order = Start(
            line: recipe.line(start.line), clock: start.clock,
            endFrame: start.endFrame.map { recipe.endFrame(for: Double($0)) },
            fadesIn: start.fadesIn, waits: start.waits)
        let isAlive = control.withLock {
            guard !$0.isCancelled else { return false }
            $0.retires = false
            $0.isSupplied = false
            $0.orders.start(order)
            $0.passOrders()
            return true
        }
        wake()
        return isAlive
    }

    /// Falls silent at `instant` (`nil`: now); the feed can be started again.
    nonisolated func stop(at instant: GroupInstant?) {
        control.withLock {
            $0.orders.stop(at: instant, isSounding: $0.voice != nil)
            $0.passOrders()
        }
        wake()
    }

    /// Which order was given last: what the feed reports on an older one has been overtaken.
    nonisolated var orderNumber: UInt64 { control.withLock { $0.orders.number } }

    /// How loud it is, ramped.
    nonisolated func setGain(_ linear: Float) {
        let isPassed = control.withLock {
            $0.orders.setGain(linear)
            $0.passOrders()
            return $0.orders.isPassed
        }
        if !isPassed { wake() }
    }

    /// The feed ends when its voice has been stopped; nobody will start it again.
    nonisolated func retire() {
        control.withLock { $0.retires = true }
        wake()
    }

    /// Ends at once; what sounds is faded out.
    nonisolated func cancel() {
        let (task, opening, waiters) = control.withLock {
            $0.isCancelled = true
            return ($0.task, $0.opening, $0.takeWaiters(.ended))
        }
        task?.cancel()
        opening?.cancel()
        for waiter in waiters { waiter.resume(returning: .ended) }
    }

    /// Ends waiting for the ring without ending the feed.
    nonisolated func endWaiting() {
        let waiters = control.withLock { control in
            defer { control.waiters = [] }
            return control.waiters
        }
        for waiter in waiters { waiter.resume(returning: .ended) }
    }

    /// Returns when enough is buffered to start, or when that will not happen.
    nonisolated func filled() async -> Filling {
        await withCheckedContinuation { continuation in
            let known: Filling? = control.withLock {
                // It may be over before anybody asks.
                if case .failed = $0.filling { return $0.filling }
                if $0.isCancelled { return .ended }
                if $0.filling == nil { $0.waiters.append(continuation) }
                return $0.filling
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    nonisolated var isFilled: Bool {
        control.withLock { control in
            if case .filled = control.filling { true } else { false }
        }
    }

    nonisolated var isAlive: Bool { control.withLock { !$0.isCancelled } }

    nonisolated var voice: Voice? { control.withLock { $0.voice } }

    nonisolated var voices: [Voice] { control.withLock { $0.voices } }

    /// What the voice says of the last start; `nil` until the output thread has seen that.
    nonisolated var report: VoiceReport? {
        let (voice, number) = control.withLock { ($0.voice, $0.orders.startNumber) }
        guard let report = voice?.report, report.number == number else { return nil }
        return recipe.report(report)
    }

    /// Where the item ended, once the decoder has come there.
    nonisolated var endFrame: Int64? {
        guard let ring = voice?.ring, ring.isFinished else { return nil }
        let end = Int64(saturating: recipe.map.itemFrame(Double(ring.endFrame)).rounded())
        // The last of the voice's frames may lie a part of one behind the item's end.
        return max(0, min(end, format.frameCount ?? .max))
    }

    /// Frames of the voice that are buffered; empty without a voice.
    private nonisolated var ringFrames: Range<Int64> {
        guard let ring = voice?.ring else { return 0..<0 }
        let first = ring.firstFrame
        return first..<max(first, ring.endFrame)
    }

    /// Frames of the item that are buffered; empty without a voice.
    nonisolated var bufferedFrames: Range<Int64> {
        let frames = ringFrames
        guard !frames.isEmpty else { return 0..<0 }
        let reach = recipe.reach(Double(frames.lowerBound), Double(frames.upperBound))
        let first = max(0, Int64(saturating: reach.lowerBound))
        let end = min(Int64(saturating: reach.upperBound), format.frameCount ?? .max)
        return first..<max(first, end)
    }

    /// What the player's machine is told of it.
    nonisolated var facts: PlayerWorld.FeedFacts {
        let (isAlive, position, hasFrames, supply) = control.withLock {
            (!$0.isCancelled, $0.position, $0.hasFrames, $0.supply)
        }
        return PlayerWorld.FeedFacts(
            isAlive: isAlive, supply: isFilled ? .enough : hasFrames ? .frames : .nothing,
            reach: reach(from: position), report: report, endFrame: endFrame,
            keepsUp: supply.keepsUp, isFull: supply.isFull)
    }

    private nonisolated func reach(from position: Int64?) -> ClosedRange<Double> {
        // Decoding that has come to its end comes by nothing more.
        let reach =
            voice?.ring.isFinished == true ? 0 : Double(format.sampleRate) * Self.reachSeconds
        let buffered = ringFrames
        guard !buffered.isEmpty else {
            let first = Double(position ?? firstFrame)
            return recipe.reach(first, first + reach)
        }
        return recipe.reach(Double(buffered.lowerBound), Double(buffered.upperBound) + reach)
    }

    /// Decoding is some ten to a hundred times faster than playing, so catching up two seconds
    /// costs about as much as opening and seeking anew.
    static let reachSeconds = 2.0

    /// Ends the present sleep of the task.
    nonisolated func wake() {
        let nap = control.withLock {
            $0.isWoken = true
            return $0.nap
        }
        nap?.cancel()
    }
}

extension Feed.Control {
    var voices: [Voice] { [voice].compactMap(\.self) + wing }

    mutating func passOrders() { orders.pass(to: voices) }

    /// Whether the voice will not sound any more by what it was told.
    func isAtRest(_ state: VoiceState) -> Bool {
        switch state {
        case .idle, .stopped, .ended: orders.isStopped || orders.start == nil
        case .armed, .playing, .starved: false
        }
    }

    /// Settles the filling once; who waited for it is returned, to be resumed outside the lock.
    mutating func takeWaiters(_ filling: Feed.Filling) -> [CheckedContinuation<Feed.Filling, Never>]
    {
        if self.filling == nil { self.filling = filling }
        defer { waiters = [] }
        return waiters
    }
}
