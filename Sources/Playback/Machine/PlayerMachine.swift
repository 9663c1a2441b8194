import TuttiPlayout
import TuttiTiming

/// All that a player decides, as a value: what is asked for and what happens goes in, what is to be
/// done comes out. Its feeds, its item and its clocks are numbers here; what is so with them at the
/// moment stands in ``PlayerWorld``.
///
///     perform / receive / advance ──► effects ──► feeds, observers, who waits for a seek
///
/// Whatever a player waits for may come after something newer was asked for. So what is waited for
/// stands in one place (``Intent``, ``Seek``), what was decided in another (``Program``), and every
/// report names the feed it is about.
struct PlayerMachine: Sendable {
    /// What was asked for and cannot be decided yet.
    enum Intent: Equatable, Sendable {
        /// All that was asked for stands in the program.
        case decided
        /// To play, once the item is ready.
        case awaitsItem(waits: Bool)
        /// A feed takes over once it has frames.
        case awaitsFrames(Transition)
    }

    struct Transition: Equatable, Sendable {
        var feed: FeedID
        /// Where it takes over from; `nil`: from wherever item time is by then.
        var frame: Double?
        /// For enough to play on, or for anything at all.
        var waits: Bool
    }

    /// A seek that has not arrived.
    struct Seek: Equatable, Sendable {
        enum Stage: Equatable, Sendable {
            /// Its item is not ready.
            case asked(MediaTime)
            /// The feed fills at that frame, or is about to be heard.
            case going(FeedID, Double)
        }
        /// Who waits for it; `nil`: nobody, it is the time of a line that begins at once.
        var id: SeekID?
        var stage: Stage
    }

    /// A feed that was begun and has not closed.
    struct FeedRecord: Equatable, Sendable {
        var item: ItemID
        var sampleRate: Int
        /// What it was made to begin with.
        var frame: Double
        var recipe: FeedRecipe
        var start: FeedStart?
        /// Its voice was seen to sound by that.
        var hasBegun = false
        /// Of its item, when that was known last.
        var itemGain: Float
    }

    // MARK: Settings

    var automaticallyWaits = true
    var defaultRate = 1.0
    var actionAtItemEnd = Player.ActionAtItemEnd.pause
    var actionAtOutputLoss = Player.ActionAtOutputLoss.pause

    // MARK: State

    var world: PlayerWorld
    var item: ItemID?
    /// What follows the item, in order.
    var queue: [ItemID] = []
    /// Feeds at the beginning of items that follow: they wait for their line, or have one.
    var kept: [ItemID: FeedID] = [:]
    /// The lines by which items may follow; `nil`: each does as soon as the one before it ends.
    var joinLines: [ItemID: Line]?
    /// Nothing sounds from then on, and another item plays before; see ``end(at:)``.
    var endsAt: GroupInstant?
    /// What drives item time; `nil`: the output's own clock.
    var clock: ClockID?
    /// How far the output's own time is ahead of the local clock; see `PlayerMachine+Clock.swift`.
    var deviceLead = Nanoseconds.zero
    var rate = 0.0
    var gain: Float = 1
    /// Why playing failed last, where that is not the item's own failure.
    var error: PlaybackError?
    var program = Program(stillAt: 0)
    /// Prerolled, without a line.
    var prepared: FeedID?
    var intent = Intent.decided
    /// Until then it is open whether what is waited for comes fast enough; `nil`: it did not.
    var evaluatesUntil: LocalInstant?
    var seek: Seek?
    var feeds: [FeedID: FeedRecord] = [:]
    /// Loads under way, by number: one that was replaced says nothing.
    var loading: [ItemID: Int] = [:]
    var loads = 0
    /// Of the item, as observers were told last.
    var toldStatus: PlayerItem.Status?
    var timeObservers: [ObserverID: TimeObserver] = [:]
    /// Of those who watch every interval: the one that was told last.
    var steps: [ObserverID: Int64] = [:]
    /// What lies before is told.
    var cuesToldTo: GroupInstant?
    var toldControl = Player.TimeControlStatus.paused
    var hasJumped = false
    private var toldCard: Bool
    var lastFeed = 0
    private var outbox: [PlayerEffect] = []

    init(in world: PlayerWorld) {
        self.world = world
        toldCard = world.hasCard
    }

    // MARK: The three verbs

    /// - Throws: ``PlaybackError`` when it cannot be done; then nothing has changed.
    mutating func perform(
        _ command: PlayerCommand, in world: PlayerWorld
    ) throws(PlaybackError) -> [PlayerEffect] {
        look(world)
        // Its item may be ready and nobody told yet: what is asked for now is newer than the seek.
        setOut()
        switch command {
        case .replaceItem(let item): replace(with: item)
        case .insert(let item, let place): insert(item, after: place)
        case .remove(let item): remove(item)
        case .removeAll: removeAll()
        case .advance: leaveItem(isOver: false)
        case .refresh:
            renewFeeds()
            endWaiting()
        case .joinsByLines(let byLines): joinLines = byLines ? joinLines ?? [:] : nil
        case .join(let item, let line): joinLines?[item] = line
        case .prerollNext(let item, let rate): try prerollNext(item, rate: rate)
        case .end(let instant): end(at: instant)
        case .rate(let rate, let waits): request(rate, waits: waits)
        case .line(let rate, let time, let hostTime):
            try setLine(rate, time: time, atHostTime: hostTime)
        case .seek(let id, let time): beginSeek(id, to: time)
        case .endSeek(let id): if seek?.id == id { giveUpSeek() }
        case .preroll(let rate, let time): try beginPreroll(rate, time)
        case .endPreroll(let feed): if feed == nil || prepared == feed { dropPrepared() }
        case .clock(let clock): change(to: clock)
        case .output(let there): change(toOutputIn: there)
        case .observe(let id, let observer): observe(id, observer)
        case .endObserving(let id): endObserving(id)
        case .gain(let gain):
            self.gain = gain
            setGains()
        }
        return turnEnds()
    }

    mutating func receive(_ event: PlayerEvent, in world: PlayerWorld) -> [PlayerEffect] {
        look(world)
        switch event {
        case .itemLoaded(let load): itemDidLoad(load)
        case .cardChanged: cardDidChange()
        case .supplied(let feed): supply(feed)
        case .failed(let feed, let error): fail(error, feed)
        case .starved(let feed): stall(feed)
        case .playedToEnd(let feed): end(feed)
        case .leftBehind(let feed): rejoin(insteadOf: feed)
        case .refusedStart(let feed): startAnother(insteadOf: feed)
        case .closed(let feed): forget(feed)
        }
        return turnEnds()
    }

    mutating func advance(in world: PlayerWorld) -> [PlayerEffect] {
        look(world)
        return turnEnds()
    }

    /// When something happens by itself; `nil`: never, by what is known.
    var nextDeadline: LocalInstant? {
        [lineDeadline, nextCue, joinDeadline, endDeadline, evaluationDeadline].compactMap(\.self)
            .min()
    }

    /// When the next line is in force: a seek arrives with it, and the item's timebase is another.
    private var lineDeadline: LocalInstant? {
        // Rounded, a clock's inverse may be a nanosecond early, and then again.
        program.pending(after: reading).first.map { local($0.line.instant) + .microseconds(1) }
    }

    /// Everything below is about this moment.
    mutating func look(_ world: PlayerWorld) {
        self.world = world
        measureDevice()
        passJoins()
    }

    private mutating func turnEnds() -> [PlayerEffect] {
        checkSeek()
        arrangeJoins()
        tellChanges()
        defer { outbox = [] }
        return outbox
    }

    mutating func emit(_ effect: PlayerEffect) {
        outbox.append(effect)
    }

    /// Says something of the item that is the current one now, whichever will be at the end of the turn.
    mutating func announce(_ notice: PlayerNotice) {
        if case .timeJumped = notice { hasJumped = true }
        emit(.announce(notice, of: item))
    }

    mutating func cardDidChange() {
        guard toldCard != world.hasCard else { return }
        toldCard = world.hasCard
        // What the rings hold may be over by now; see `Feed.pause`.
        for feed in feeds.keys { emit(.wake(feed)) }
        announce(.outputDidChange(isAvailable: world.hasCard))
        if !world.hasCard, rate != 0, clock == nil, actionAtOutputLoss == .pause {
            interrupt()
        }
    }

    // MARK: What it is doing

    /// What was decided last of the item that plays.
    var decided: Program.Entry { program.last(of: item) }

    var itemState: PlayerWorld.Item.State { item.flatMap { world.items[$0]?.state } ?? .unknown }

    /// Of the item, once it was ready; also when it has failed since.
    var itemFacts: PlayerWorld.ItemFacts? { item.flatMap { world.items[$0]?.facts } }

    /// The item, once it is known what it is.
    var ready: (item: ItemID, facts: PlayerWorld.ItemFacts)? {
        guard let item, case .ready = itemState, let facts = itemFacts else { return nil }
        return (item, facts)
    }

    var status: Player.Status {
        if error != nil { return .failed }
        guard item != nil else { return .unknown }
        return switch itemState {
        case .unknown: .unknown
        case .ready: .readyToPlay
        case .failed: .failed
        }
    }

    /// `nil` unless waiting.
    var waitingReason: Player.WaitingReason? {
        if rate == 0 { return nil }
        if !world.hasCard { return .outputUnavailable }
        if item == nil { return .noItemToPlay }
        if ready == nil { return .evaluatingBufferingRate }
        guard decided.line.rate == 0 else { return nil }
        return evaluationDeadline == nil ? .toMinimizeStalls : .evaluatingBufferingRate
    }

    /// When it is known that what a silent player waits for comes too slowly: half a second of sound
    /// has not come in as long. `nil`: it is known already, or nothing is waited for.
    var evaluationDeadline: LocalInstant? {
        guard transition?.waits == true, let evaluatesUntil, world.now < evaluatesUntil else {
            return nil
        }
        return evaluatesUntil
    }

    var timeControlStatus: Player.TimeControlStatus {
        if rate == 0 { return .paused }
        return waitingReason == nil ? .playing : .waitingToPlayAtSpecifiedRate
    }

    var transition: Transition? {
        if case .awaitsFrames(let transition) = intent { transition } else { nil }
    }

    /// Item time in frames, now.
    var currentFrame: Double {
        guard let facts = itemFacts else { return 0 }
        let line = program.entry(at: reading).line
        return limited(line.frame(at: reading, sampleRate: facts.sampleRate), by: line)
    }

    /// The line in force, in time instead of frames.
    var timebase: Timebase<GroupClock> {
        let line = program.entry(at: reading).line
        var timebase = Timebase<GroupClock>(time: time(of: currentFrame), at: reading)
        if line.rate != 0 {
            timebase.setRate(
                line.rate, anchorTime: time(of: line.itemFrame), immediateSourceTime: line.instant)
        }
        return timebase
    }

    /// Into the item, whatever its end times are.
    func clamped(_ frame: Double) -> Double {
        max(0, min(frame, itemFacts?.frameCount.map(Double.init) ?? .infinity))
    }

    /// A time as a frame within the item.
    func frame(of time: MediaTime) throws(PlaybackError) -> Double {
        guard let facts = itemFacts, let frame = time.frame(atSampleRate: facts.sampleRate)
        else { throw PlaybackError(.timeNotNumeric, "\(time) is not a time to play from") }
        return Double(max(0, min(frame, facts.frameCount ?? .max)))
    }

    func time(of frame: Double) -> MediaTime {
        Player.time(ofFrame: frame, sampleRate: itemFacts?.sampleRate ?? 1)
    }
}
