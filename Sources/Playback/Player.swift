import Observation
import Synchronization
import TuttiPlayout
public import TuttiTiming

/// Plays one item through one output, by its own clock or in lockstep with other players.
///
/// Lockstep: set ``sourceClock`` to the clock all share, clear
/// ``automaticallyWaitsToMinimizeStalling``, ``preroll(atRate:time:)`` everywhere, then give all
/// the same ``setRate(_:time:atHostTime:)``. From the host time on, the item time leaves every
/// output at that rate, to within a sample; who is late joins where the line is now.
///
/// All members may be used from any thread. None waits for a decoder or the output, except those
/// that are `async`.
///
/// `@unchecked Sendable`: a class with a subclass cannot be checked; all it has are constants and a
/// lock, and ``QueuePlayer``, the only subclass, adds nothing to them.
public class Player: @unchecked Sendable {
    /// Whether it can play.
    public enum Status: Equatable, Sendable {
        case unknown, readyToPlay, failed
    }
    /// Whether it plays, and if not, whether it wants to.
    public enum TimeControlStatus: Equatable, Sendable {
        case paused, waitingToPlayAtSpecifiedRate, playing
    }
    /// Why a player that shall play does not.
    @nonexhaustive
    public enum WaitingReason: Equatable, Sendable {
        /// What comes, comes too slowly to play on: more of it is waited for.
        case toMinimizeStalls
        /// The item is being opened, or its first half second is awaited, which tells whether what
        /// comes is enough: of that nobody needs to be told.
        case evaluatingBufferingRate
        case noItemToPlay
        /// The card is gone; playing goes on when it is back.
        case outputUnavailable
    }
    /// What becomes of a player at the end of its item.
    public enum ActionAtItemEnd: Equatable, Sendable {
        /// The next item plays; only of a ``QueuePlayer``, elsewhere as ``pause``.
        case advance
        case pause
        /// Time runs on past the end.
        case none
    }

    /// What a card that goes away does to a player that plays.
    public enum ActionAtOutputLoss: Equatable, Sendable {
        /// The rate becomes 0, where the sound ended. As ``wait`` for a player with a
        /// ``Player/sourceClock``: the line that is shared with others goes on.
        case pause
        /// The rate stays; item time runs on, and so does the sound when the card is back.
        case wait
    }

    /// How fast items can be played, forwards and, where they have an end to begin at, backwards.
    public static let speeds = FrameTransforms.rateLimits

    struct State {
        var machine: PlayerMachine
        var output: PlayerOutput
        var nextOutput: PlayerOutput?
        /// The current one and those that follow it.
        var items: [ItemID: PlayerItem] = [:]
        var loads: [ItemID: Task<Void, Never>] = [:]
        /// What was open for items that have left; closing may take its time, outside of the lock.
        var closing: [SourcePool.Cursor] = []
        /// The same of outputs: a device may end with them.
        var leftOutputs: [PlayerOutput] = []
        /// The same of those who watched an item that has left.
        var endedObservers: [Observer] = []
        /// Those that have not closed.
        var feeds: [FeedID: Feed] = [:]
        var clocks: [ClockID: MediaClock] = [:]
        /// Who waits for what comes of a seek.
        var seeks: [SeekID: CheckedContinuation<Bool, Never>] = [:]
        var seekCount = 0
        var itemCount = 0
        var clockCount = 0
        var criteria: [MediaCharacteristic: MediaSelectionCriteria] = [:]
        var appliesCriteria = true
        var allowsExternalPlayback = true
        var isExternalPlaybackActive = false
        var volume: Float = 1
        var isMuted = false
        var observers: [Int: Observer] = [:]
        var observerCount = 0
        var timeObservers: [ObserverID: AsyncStream<MediaTime>.Continuation] = [:]
        var text = TextState()
        var droppedNotices = 0
        var cardObserver = 0
        /// Failed in this turn, and their observers do not know yet.
        var failedItems: [PlayerItem] = []
        var observed: Player.Observed?
        /// The current item, as observers know it.
        var observedItem: PlayerItem?
        /// Advances the machine when something is due by itself.
        var alarm: (deadline: LocalInstant, task: Task<Void, Never>)?
    }

    struct Observer {
        enum Stream {
            case notices(AsyncStream<PlayerNotice>.Continuation)
            case itemNotices(AsyncStream<ItemNotice>.Continuation)
        }

        var stream: Stream
        /// Of this item alone; `nil`: of the player.
        var item: ItemID?
    }

    let state: Mutex<State>
    let observation = ObservationRegistrar()

    /// A player without an item.
    public init(output: PlayerOutput) {
        state = Mutex(
            State(machine: PlayerMachine(in: Self.world(of: output)), output: output))
        turn { observeCard(&$0) }
    }

    /// Where the player sounds. Several players may share a port, which has `OutputPort.voiceLimit`
    /// voices.
    ///
    /// Another one takes over where item time is: without a shared clock its ``PlayerOutput/latency``
    /// and a tenth of a second later, by one where the line is by then.
    public var output: PlayerOutput {
        get {
            observation.access(self, keyPath: \.output)
            return state.withLock { $0.output }
        }
        set {
            turn { state in
                guard state.output.port !== newValue.port else { return }
                state.nextOutput = newValue
                perform(.output(world(state, on: newValue)), &state)
            }
        }
    }

    func observeCard(_ state: inout State) {
        state.cardObserver = state.output.port.observeCard { [weak self] _ in
            // What counts is how it is now, not how it was when this was sent. Not on the output's
            // own thread: the last reference to the player, and with it to the output, may be this.
            Task { [weak self] in
                self?.hear { player in player.turn { player.receive(.cardChanged, &$0) } }
            }
        }
    }

    /// Whether the output has a card to play to.
    public var isOutputAvailable: Bool {
        observation.access(self, keyPath: \.isOutputAvailable)
        return state.withLock { $0.output.port.hasCard }
    }

    /// Whether items may follow the current one.
    var hasQueue: Bool { false }

    /// A player with an item, which it begins to load.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``.
    public convenience init(playerItem: PlayerItem, output: PlayerOutput) throws(PlaybackError) {
        self.init(output: output)
        try replaceCurrentItem(with: playerItem)
    }

    deinit {
        let items = state.withLock { state in
            state.output.port.stopObservingCard(state.cardObserver)
            for load in state.loads.values { load.cancel() }
            state.alarm?.task.cancel()
            for feed in state.feeds.values { feed.cancel() }
            for observer in state.observers.values { observer.finish() }
            for observer in state.timeObservers.values { observer.finish() }
            state.text.loading?.cancel()
            for observer in state.text.observers.values { observer.finish() }
            return state.items.values
        }
        for item in items { item.abandon() }
    }

    // MARK: What it is doing

    /// The item that plays, or would; `nil`: none. Of a ``QueuePlayer`` the first of the queue.
    public var currentItem: PlayerItem? {
        observation.access(self, keyPath: \.currentItem)
        return now { $0.item }
    }

    /// The current item, and those that follow it.
    var queuedItems: [PlayerItem] {
        observation.access(self, keyPath: \.queuedItems)
        return now { state in
            ([state.machine.item].compactMap(\.self) + state.machine.queue)
                .compactMap { state.items[$0] }
        }
    }

    /// ``Status/failed`` exactly while ``error`` says why.
    public var status: Status {
        observation.access(self, keyPath: \.status)
        return looking { $0.status }
    }

    /// Why playback failed last: of the item, or of playing it. What was decoded before was heard.
    /// Playing or seeking again is another attempt.
    public var error: PlaybackError? {
        observation.access(self, keyPath: \.error)
        return now { $0.machine.error ?? $0.item?.error }
    }

    /// The rate that was asked for; 0 is paused. See ``timeControlStatus`` for what is heard.
    public var rate: Double {
        observation.access(self, keyPath: \.rate)
        return looking { $0.rate }
    }

    /// Whether it plays, is paused, or waits in order to play.
    public var timeControlStatus: TimeControlStatus {
        observation.access(self, keyPath: \.timeControlStatus)
        return looking { $0.timeControlStatus }
    }

    /// `nil` unless waiting.
    public var reasonForWaitingToPlay: WaitingReason? {
        observation.access(self, keyPath: \.reasonForWaitingToPlay)
        return looking { $0.waitingReason }
    }

    /// Item time that is audible now; cheap, never blocks.
    public func currentTime() -> MediaTime { looking { $0.time(of: $0.currentFrame) } }

    /// Whether a group of rooms plays the item instead of this player; see `TuttiRoom`.
    public var isExternalPlaybackActive: Bool {
        observation.access(self, keyPath: \.isExternalPlaybackActive)
        return state.withLock { $0.isExternalPlaybackActive }
    }

    package func setExternalPlayback(_ isActive: Bool) {
        turn { $0.isExternalPlaybackActive = isActive }
    }

    // MARK: Settings

    /// Whether what it plays may be handed over to a group of rooms; true at first.
    public var allowsExternalPlayback: Bool {
        get {
            observation.access(self, keyPath: \.allowsExternalPlayback)
            return state.withLock { $0.allowsExternalPlayback }
        }
        set { turn { $0.allowsExternalPlayback = newValue } }
    }

    /// The clock that drives item time: the output is resampled to it. `nil` is the clock of the output
    /// itself. Changing it while playing never makes item time jump.
    public var sourceClock: MediaClock? {
        get {
            observation.access(self, keyPath: \.sourceClock)
            return state.withLock { state in state.machine.clock.flatMap { state.clocks[$0] } }
        }
        set {
            turn { state in
                let clock = newValue.map { number(of: $0, &state) }
                perform(.clock(clock), &state)
            }
        }
    }

    /// What time it is for this player: what ``setRate(_:time:atHostTime:)`` understands by a host time.
    /// Without a ``sourceClock`` the output's own time, which is local time when sound begins and then runs
    /// away from it with the crystal.
    public func hostTime() -> GroupInstant { looking { $0.reading } }

    /// Whether a line can be met to a sample: the clock is measured, and so is the card. Changes without
    /// a word; ``readyForLockstep()`` waits for it.
    public var isReadyForLockstep: Bool {
        state.withLock { state in
            let clock = state.machine.clock.flatMap { state.clocks[$0] }
            return clock?.isPlayable != false && state.output.port.hasCard
                && state.output.port.isPrepared && state.output.port.report.cardDecided
        }
    }

    /// Returns when ``isReadyForLockstep``: a card is known some tenths after it was opened. One that is
    /// not there is waited for.
    ///
    /// Clock and card are written by who has no time to tell; they are looked at every 20 ms, while
    /// somebody waits.
    ///
    /// - Throws: ``PlaybackError/Code/cancelled`` when the task that waits is cancelled.
    public func readyForLockstep() async throws(PlaybackError) {
        while !isReadyForLockstep {
            if Task.isCancelled {
                throw PlaybackError(.cancelled, "waiting for clock and card was given up")
            }
            await output.sleep(Self.lookInterval)
        }
    }

    /// A period or two of an output: more often than that nothing becomes known.
    private static let lookInterval = Nanoseconds.milliseconds(20)

    /// True: playing waits until enough is buffered, and a stall turns into waiting. False: playing
    /// starts at once; needed for ``setRate(_:time:atHostTime:)``.
    public var automaticallyWaitsToMinimizeStalling: Bool {
        get {
            observation.access(self, keyPath: \.automaticallyWaitsToMinimizeStalling)
            return state.withLock { $0.machine.automaticallyWaits }
        }
        set {
            turn { state in
                state.machine.automaticallyWaits = newValue
                perform(.refresh, &state)
            }
        }
    }

    /// What happens at the end of the item; ``ActionAtItemEnd/advance`` is
    /// ``ActionAtItemEnd/pause`` where there is no queue.
    public var actionAtItemEnd: ActionAtItemEnd {
        get {
            observation.access(self, keyPath: \.actionAtItemEnd)
            return state.withLock { $0.machine.actionAtItemEnd }
        }
        set {
            turn { state in
                state.machine.actionAtItemEnd =
                    newValue == .advance && !hasQueue ? .pause : newValue
                perform(.refresh, &state)
            }
        }
    }

    /// What happens when the card goes away.
    public var actionAtOutputLoss: ActionAtOutputLoss {
        get {
            observation.access(self, keyPath: \.actionAtOutputLoss)
            return state.withLock { $0.machine.actionAtOutputLoss }
        }
        set { turn { $0.machine.actionAtOutputLoss = newValue } }
    }

    /// Linear, 0…1; ramped. Of this player alone: the output has a volume of its own.
    public var volume: Float {
        get {
            observation.access(self, keyPath: \.volume)
            return state.withLock { $0.volume }
        }
        set { changeGain { $0.volume = newValue >= 0 ? min(newValue, 1) : 0 } }
    }

    /// Silent whatever ``volume`` is; ramped. Item time runs on.
    public var isMuted: Bool {
        get {
            observation.access(self, keyPath: \.isMuted)
            return state.withLock { $0.isMuted }
        }
        set { changeGain { $0.isMuted = newValue } }
    }

    /// What an item is to be made of is another.
    func itemDidChange() { perform(.refresh) }

    /// An item is to be played at another loudness.
    func gainDidChange() { changeGain { _ in } }

    private func changeGain(_ body: (inout State) -> Void) {
        turn { state in
            body(&state)
            perform(.gain(state.isMuted ? 0 : state.volume), &state)
        }
    }

    /// What ``play()`` plays at.
    public var defaultRate: Double {
        observation.access(self, keyPath: \.defaultRate)
        return state.withLock { $0.machine.defaultRate }
    }

    /// - Throws: ``PlaybackError/Code/rateNotSupported``.
    public func setDefaultRate(_ rate: Double) throws(PlaybackError) {
        try Self.check(rate, allowsZero: false)
        turn { $0.machine.defaultRate = rate }
    }

    static func check(_ rate: Double, allowsZero: Bool) throws(PlaybackError) {
        if rate == 0, allowsZero { return }
        guard speeds.contains(abs(rate)) else {
            let zero = allowsZero ? "0, " : ""
            let (least, most) = (speeds.lowerBound, speeds.upperBound)
            throw PlaybackError(
                .rateNotSupported, "rate \(rate) is not one of \(zero)±\(least)…\(most)")
        }
    }
}

extension Player.State {
    var item: PlayerItem? { machine.item.flatMap { items[$0] } }

    func id(of item: PlayerItem) -> ItemID? { items.first { $0.value === item }?.key }
}
