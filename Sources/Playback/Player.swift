import Playout
import Synchronization
public import Timing

/// Plays one item through one output, by its own clock or in lockstep with other players.
///
/// Lockstep: set ``sourceClock`` to the clock all share, clear
/// ``automaticallyWaitsToMinimizeStalling``, ``preroll(atRate:time:)`` everywhere, then give all
/// the same ``setRate(_:time:atHostTime:)``. From the host time on, the item time leaves every
/// output at that rate, to within a sample; who is late joins where the line is now.
///
/// All members may be used from any thread. None waits for a decoder or the output, except those
/// that are `async`.
public final class Player: Sendable {
    public enum Status: Equatable, Sendable {
        case unknown, readyToPlay, failed
    }
    public enum TimeControlStatus: Equatable, Sendable {
        case paused, waitingToPlayAtSpecifiedRate, playing
    }
    public enum WaitingReason: Equatable, Sendable {
        /// Filling the buffer.
        case toMinimizeStalls
        /// The item is being opened.
        case evaluatingBufferingRate
        case noItemToPlay
        /// The card is gone; playing goes on when it is back.
        case outputUnavailable
    }
    public enum ActionAtItemEnd: Equatable, Sendable {
        case pause
        /// Time runs on past the end.
        case none
    }

    /// The rates that can be played. Beyond them a varispeed is no longer music, and the ring
    /// drains faster than it was sized for.
    public static let rates = 0.5...2.0

    struct State {
        var item: PlayerItem?
        var itemTask: Task<Void, Never>?
        /// Counts what ``itemTask`` has been: one that was replaced says nothing.
        var loads = 0
        /// Of the item, as observers were told last.
        var toldStatus: PlayerItem.Status?
        var error: PlaybackError?
        var clock: SourceClock?
        /// How far the output's own time is ahead of the local clock; see `Player+Clock.swift`.
        var deviceLead = Nanoseconds.zero
        var automaticallyWaits = true
        var defaultRate = 1.0
        var rate = 0.0
        var volume: Float = 1
        var isMuted = false
        var actionAtItemEnd = ActionAtItemEnd.pause
        var schedule = Schedule(stillAt: 0)
        /// Whose line is in force; stopped while paused, and then ready to go on.
        var sounding: Feed?
        /// Takes over at the instant of the schedule's last line.
        var upcoming: Feed?
        /// Prerolled, without a line.
        var prepared: Feed?
        var intent = Intent.decided
        var seek: Seek?
        /// Stopped for good, until they say that they are closed.
        var outgoing: [Feed] = []
        var seeks = 0
        var observers: [Int: AsyncStream<PlayerNotice>.Continuation] = [:]
        var observerCount = 0
        var droppedNotices = 0
        var cardObserver = 0
        var toldCard = true
    }

    /// Where the player sounds. Several players may share a port, eight of them at once.
    public let output: PlayerOutput
    let state = Mutex(State())

    /// A player without an item.
    public init(output: PlayerOutput) {
        self.output = output
        let number = output.port.observeCard { [weak self] _ in self?.hear { $0.cardDidChange() } }
        state.withLock {
            $0.cardObserver = number
            $0.toldCard = output.port.hasCard
        }
    }

    /// What counts is how it is now, not how it was when this was sent.
    private func cardDidChange() {
        state.withLock { state in
            let hasCard = output.port.hasCard
            guard state.toldCard != hasCard else { return }
            state.toldCard = hasCard
            // What the rings hold may be over by now; see `Feed.pause`.
            for feed in state.feeds { feed.wake() }
            announce(.outputDidChange(isAvailable: hasCard), &state)
        }
    }

    /// Whether the output has a card to play to.
    public var isOutputAvailable: Bool { output.port.hasCard }

    /// A player with an item, which it begins to load.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``.
    public convenience init(playerItem: PlayerItem, output: PlayerOutput) throws(PlaybackError) {
        self.init(output: output)
        try replaceCurrentItem(with: playerItem)
    }

    deinit {
        output.port.stopObservingCard(state.withLock { $0.cardObserver })
        let item = state.withLock { state in
            state.itemTask?.cancel()
            for feed in state.feeds { feed.cancel() }
            for observer in state.observers.values { observer.finish() }
            return state.item
        }
        item?.abandon()
    }

    // MARK: What it is doing

    public var currentItem: PlayerItem? { state.withLock { $0.item } }

    /// ``Status/failed`` exactly while ``error`` says why.
    public var status: Status {
        state.withLock { state in
            if state.error != nil { return .failed }
            return switch state.item?.status {
            case nil, .unknown: .unknown
            case .readyToPlay: .readyToPlay
            case .failed: .failed
            }
        }
    }

    /// Why playback failed last: of the item, or of playing it. What was decoded before was heard.
    /// Playing or seeking again is another attempt.
    public var error: PlaybackError? { state.withLock { $0.error ?? $0.item?.error } }

    /// The rate that was asked for; 0 is paused. See ``timeControlStatus`` for what is heard.
    public var rate: Double { state.withLock { $0.rate } }

    public var timeControlStatus: TimeControlStatus {
        state.withLock {
            if $0.rate == 0 { return .paused }
            return waitingReason($0) == nil ? .playing : .waitingToPlayAtSpecifiedRate
        }
    }

    /// `nil` unless waiting.
    public var reasonForWaitingToPlay: WaitingReason? { state.withLock { waitingReason($0) } }

    private func waitingReason(_ state: State) -> WaitingReason? {
        if state.rate == 0 { return nil }
        return output.port.hasCard ? state.waitingReason : .outputUnavailable
    }

    /// Item time that is audible now; cheap, never blocks.
    public func currentTime() -> MediaTime {
        locked { state in
            guard let sampleRate = state.item?.format?.sampleRate else { return .zero }
            return Self.time(
                ofFrame: currentFrame(state, at: output.now()), sampleRate: sampleRate)
        }
    }

    // MARK: Settings

    /// The clock that drives item time; `nil` is the clock of the output itself. Changing it while
    /// playing never makes item time jump.
    public var sourceClock: SourceClock? {
        get { state.withLock { $0.clock } }
        set { locked { change(clock: newValue, &$0) } }
    }

    /// True: playing waits until enough is buffered, and a stall turns into waiting. False: playing
    /// starts at once; needed for ``setRate(_:time:atHostTime:)``.
    public var automaticallyWaitsToMinimizeStalling: Bool {
        get { state.withLock { $0.automaticallyWaits } }
        set { state.withLock { $0.automaticallyWaits = newValue } }
    }

    public var actionAtItemEnd: ActionAtItemEnd {
        get { state.withLock { $0.actionAtItemEnd } }
        set { state.withLock { $0.actionAtItemEnd = newValue } }
    }

    /// Linear, 0…1; ramped. Of this player alone: the output has a volume of its own.
    public var volume: Float {
        get { state.withLock { $0.volume } }
        set { changeGain { $0.volume = newValue >= 0 ? min(newValue, 1) : 0 } }
    }

    public var isMuted: Bool {
        get { state.withLock { $0.isMuted } }
        set { changeGain { $0.isMuted = newValue } }
    }

    private func changeGain(_ body: (inout State) -> Void) {
        state.withLock {
            body(&$0)
            for feed in $0.feeds { feed.setGain($0.gain) }
        }
    }

    /// What ``play()`` plays at.
    public var defaultRate: Double { state.withLock { $0.defaultRate } }

    /// - Throws: ``PlaybackError/Code/rateNotSupported``.
    public func setDefaultRate(_ rate: Double) throws(PlaybackError) {
        try Self.check(rate, allowsZero: false)
        state.withLock { $0.defaultRate = rate }
    }

    static func check(_ rate: Double, allowsZero: Bool) throws(PlaybackError) {
        if rate == 0, allowsZero { return }
        guard rates.contains(rate) else {
            throw PlaybackError(
                .rateNotSupported,
                "rate \(rate) is not one of 0 and \(rates.lowerBound)…\(rates.upperBound)")
        }
    }
}

extension Player.State {
    /// All that have, or will have, a voice.
    var feeds: [Feed] {
        [sounding, upcoming, prepared, transition?.feed].compactMap { $0 } + outgoing
    }

    var transition: Player.Transition? {
        if case .awaitsFrames(let transition) = intent { transition } else { nil }
    }

    var gain: Float { isMuted ? 0 : volume }

    /// The item, once it is known what it is.
    var ready: (item: PlayerItem, format: MediaFormat)? {
        guard let item, item.status == .readyToPlay, let format = item.format else { return nil }
        return (item, format)
    }

    var waitingReason: Player.WaitingReason? {
        if rate == 0 { return nil }
        if item == nil { return .noItemToPlay }
        if ready == nil { return .evaluatingBufferingRate }
        return schedule.lines.last?.rate == 0 ? .toMinimizeStalls : nil
    }
}
