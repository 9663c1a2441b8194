import TuttiPlayout
import TuttiTiming

/// Numbers that a player gives to its feeds, items and clocks: never the same twice.
struct FeedID: Hashable, Sendable { var number: Int }
struct ItemID: Hashable, Sendable { var number: Int }
struct ClockID: Hashable, Sendable { var number: Int }

/// What the machine is told of everything around it, at one moment.
struct PlayerWorld: Sendable {
    /// Of the item that plays, and of those that follow it soon.
    struct Item: Sendable {
        enum State: Sendable {
            case unknown, ready
            case failed(PlaybackError)
        }

        var state = State.unknown
        /// Once it was ready; also when it has failed since.
        var facts: ItemFacts?
    }

    struct ItemFacts: Equatable, Sendable {
        var sampleRate: Int
        /// `nil` when only the source knows.
        var frameCount: Int64?
        /// The first frame that is not played; `nil` when only the source knows.
        var endFrame: Int64?
        /// Where playing backwards ends.
        var startFrame: Int64 = 0
        var algorithm = TimePitchAlgorithm.varispeed
        /// Those that are heard; `nil`: the item's default.
        var tracks: [Int]?
        /// Counts changes of what becomes of its samples.
        var edition = 0
        /// What its own loudness asks for; linear.
        var gain: Float = 1
    }

    /// Of a feed that was begun.
    struct FeedFacts: Sendable {
        enum Supply: Sendable { case nothing, frames, enough }

        var isAlive = true
        var supply = Supply.nothing
        /// Frames from which it can play soon: they are buffered, or decoding comes by them.
        var reach: ClosedRange<Double>?
        /// What its voice says of the last start; `nil` until the output has seen that.
        var report: VoiceReport?
        /// The end of the item, once the decoder has come to it.
        var endFrame: Int64?
        /// What is not decoded yet will come in time, by the last that was.
        var keepsUp = false
        /// Decoding rests: there is no room for more, or no more to come.
        var isFull = false
    }

    var now: LocalInstant
    /// How far ahead an instant must lie for every sample from it on to be heard.
    var latency: Nanoseconds
    var hasCard = true
    var items: [ItemID: Item] = [:]
    /// Those by which the player or a feed of it goes.
    var clocks: [ClockID: SharedClock] = [:]
    var feeds: [FeedID: FeedFacts] = [:]
}

/// What a player is asked for.
enum PlayerCommand: Sendable {
    /// Another item, or none, in the place of the one that there is; plays on at the rate that there is.
    case replaceItem(ItemID?)
    /// Behind an item of the queue; `nil`: at its end.
    case insert(ItemID, after: ItemID?)
    /// Out of the queue; the one that plays is left for the next.
    case remove(ItemID)
    case removeAll
    case advance
    /// Whether items follow only by lines that they are given.
    case joinsByLines(Bool)
    /// An item of the queue may follow by this line, and by no other.
    case join(ItemID, by: Line)
    /// Fills a feed at the beginning of an item of the queue; it is in ``PlayerMachine/kept`` then.
    case prerollNext(ItemID, rate: Double)
    /// Silent from then on, whichever item plays by then.
    case end(at: GroupInstant)
    /// A setting is another.
    case refresh
    /// At once; 0 pauses. `waits`: for enough to play on, `nil`: as the player is set.
    case rate(Double, waits: Bool?)
    /// From an instant of the clock on; see ``Player/setRate(_:time:atHostTime:)``.
    case line(rate: Double, time: MediaTime, hostTime: GroupInstant?)
    /// To another place; what comes of it is told by ``PlayerEffect/seekEnded(_:finished:)``.
    case seek(SeekID, to: MediaTime)
    case endSeek(SeekID)
    /// Fills a feed for the current time (invalid) or another; it is ``PlayerMachine/prepared`` then.
    case preroll(rate: Double, time: MediaTime)
    /// Gives up what was prerolled; `nil`: whichever that is.
    case endPreroll(FeedID?)
    case clock(ClockID?)
    /// Another output, and the world as it is there.
    case output(PlayerWorld)
    case gain(Float)
    /// What is to be told comes as ``PlayerEffect/tell(_:_:)``.
    case observe(ObserverID, TimeObserver)
    case endObserving(ObserverID)
}

struct SeekID: Hashable, Sendable { var number: Int }

/// What a player is told.
enum PlayerEvent: Sendable {
    /// The loading of this number has come to its end, whatever that is.
    case itemLoaded(Int)
    case cardChanged
    /// A feed has frames, or more than before.
    case supplied(FeedID)
    /// Nothing more can be decoded, and what was has been heard.
    case failed(FeedID, PlaybackError)
    case starved(FeedID)
    case playedToEnd(FeedID)
    /// Its line is further ahead than decoding can make good.
    case leftBehind(FeedID)
    /// It had ended before a start reached it.
    case refusedStart(FeedID)
    case closed(FeedID)
}

/// What is to be done, in order.
enum PlayerEffect: Sendable {
    /// Load the item; tell ``PlayerEvent/itemLoaded(_:)`` with this number.
    case load(ItemID, Int)
    case stopLoading(ItemID)
    /// It was ready, and then could not be played on.
    case failItem(ItemID, PlaybackError)
    /// It has left the queue: nothing of it is needed any more.
    case release(ItemID)
    /// Another item is the current one, or none.
    case itemChanged(ItemID?)
    case playedToEnd(ItemID)
    /// It was to play, and cannot, or not on.
    case itemFailed(ItemID, PlaybackError)
    /// It was to follow, and its turn has not come.
    case failedAhead(ItemID, PlaybackError)
    case make(FeedID, ItemID, frame: Double, recipe: FeedRecipe, gain: Float)
    case start(FeedID, FeedStart)
    /// `nil`: now.
    case stop(FeedID, at: GroupInstant?)
    /// It ends once its voice has come to rest.
    case retire(FeedID)
    case cancel(FeedID)
    /// Nobody waits for its frames any more.
    case endWaiting(FeedID)
    case wake(FeedID)
    case setGain(FeedID, Float)
    /// What follows is for the other output.
    case changeOutput
    /// `nil`: without an item.
    case announce(PlayerNotice, of: ItemID?)
    case seekEnded(SeekID, finished: Bool)
    /// Item time is, or has come by, this.
    case tell(ObserverID, MediaTime)
}

/// What a feed plays by.
struct FeedStart: Equatable, Sendable {
    var line: Line
    /// `nil`: the output's own time.
    var clock: ClockID?
    var endFrame: Int64?
    var fadesIn: Bool
    /// For the output: by its own time, the line begins when it can.
    var waits = false
}
