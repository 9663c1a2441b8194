public import TuttiTiming

/// What a card was opened with.
@frozen
public struct OutputFormat: Equatable, Sendable, BitwiseCopyable {
    /// Nominal frames per second.
    public var sampleRate: Int
    /// Channels of a frame, interleaved.
    public var channelCount: Int
    /// Frames that are rendered and written at once.
    public var periodFrames: Int
    /// Frames the card can hold: the longest time between rendering and hearing.
    public var bufferFrames: Int

    /// Periods that a buffer is cut into where the card leaves the choice: two are rendered at once
    /// while two are heard.
    public static var usualPeriods: Int {
        @_noLocks @_noAllocation get { 4 }
    }

    /// Channels are rendered two by two.
    var pairCount: Int {
        @_noLocks @_noAllocation get { (channelCount + 1) / 2 }
    }

    /// A format as a card has it; an engine checks it.
    public init(sampleRate: Int, channelCount: Int, periodFrames: Int, bufferFrames: Int) {
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.periodFrames = periodFrames
        self.bufferFrames = bufferFrames
    }
}

/// One atomic look at a card: at `instant`, `framesHeard` frames had left it.
@frozen
public struct CardReading: Equatable, Sendable, BitwiseCopyable {
    /// Frames written so far minus frames still queued; counts from the last (re)start of the card.
    public var framesHeard: Double
    /// When it was looked, by the local clock.
    public var instant: LocalInstant
    /// What the card counts in: 1, whole frames, rounded down; 0, fractions, exactly.
    public var resolution: Double
    /// Frames that have left the card's ring and are not heard yet: what a bus, a DSP, a sound
    /// server or the air holds. There is room for new frames that much before the old are heard.
    public var framesAhead: Double

    /// A reading; without the last two it is exact, and what left the ring is heard at once.
    @inlinable
    public init(
        framesHeard: Double, instant: LocalInstant, resolution: Double = 0, framesAhead: Double = 0
    ) {
        self.framesHeard = framesHeard
        self.instant = instant
        self.resolution = resolution
        self.framesAhead = framesAhead
    }
}

/// What came of waiting for, or writing to, a card.
public enum OutputEvent: Equatable, Sendable {
    /// At least one period of room.
    case writable
    /// Between two periods, at the instant that was asked for: time for another look at the card.
    case glance
    /// The card ran dry and has been restarted: its frame count is 0 again.
    case restarted
    /// The same after a sleep of the card or its machine, which says nothing of how long its buffer
    /// should be.
    case awoken
    /// The same, but nothing of what should have sounded was lost: the card had not begun to play.
    case renewed
}

/// When the engine wants the output thread to run next.
@frozen
public struct WaitPlan: Equatable, Sendable, BitwiseCopyable {
    /// There is room for a period, or two, from here on, the engine believes: sleeping until then
    /// is cheaper than being woken, and decides at which point of a frame the position is read.
    /// `nil`: let the card say when.
    public var due: LocalInstant?
    /// Come back then even if there is no room yet, as ``OutputEvent/glance``.
    public var glance: LocalInstant?

    /// Without arguments: until there is room.
    @_noLocks @_noAllocation
    @inlinable
    public init(due: LocalInstant? = nil, glance: LocalInstant? = nil) {
        self.due = due
        self.glance = glance
    }
}

/// Port: a card, a virtual card or a file; driven by one output thread.
///
/// The thread calls, again and again: `wait`, `reading`, then (having rendered) `write`; after a
/// wait that ended as a glance only `reading`.
public protocol AudioOutput: AnyObject {
    /// What it is open with.
    var format: OutputFormat { get }
    /// How samples go to the card, for people: `S32_LE`.
    var sampleDescription: String { get }
    /// Frames per second that it can be opened with instead, as far as is known.
    var sampleRates: [Int] { get }

    /// Where its loudspeakers stand, where it says so.
    var channelLayout: ChannelLayout? { get }

    /// Blocks until a period can be written, or until the glance of the plan; at most about a
    /// second.
    func wait(_ plan: WaitPlan) throws(OutputError) -> OutputEvent

    /// The card's position now; `nil` while it cannot say.
    func reading() -> CardReading?

    /// Queues one period: interleaved Float, −1…1, `periodFrames × channelCount`.
    func write(_ frames: UnsafePointer<Float>) throws(OutputError) -> OutputEvent

    /// Returns once all that was written has been heard, or will not be, at the latest when a card
    /// that plays has had the time for it; only `close` follows.
    func playOut()

    /// Stops and frees the card; the object is not used afterwards.
    func close()
}

extension AudioOutput {
    public var sampleDescription: String { "" }
    public var channelLayout: ChannelLayout? { nil }
    public var sampleRates: [Int] { [format.sampleRate] }
    public func playOut() {}
}

/// Why a card cannot be opened or went away.
///
/// Its description is for people: what, why, what to do. The library's call and code are in the
/// debug description, for those who look into the library.
public struct OutputError: Error, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The library call.
    public var operation: String
    /// The library's code: a negative errno of ALSA, or an errno.
    public var code: Int32
    /// The card or path.
    public var device: String
    /// What the library said, and what the user can do.
    public var reason: String

    /// A failure of a library call, or of a step of our own with the code 0.
    public init(operation: String, code: Int32, device: String, reason: String) {
        self.operation = operation
        self.code = code
        self.device = device
        self.reason = reason
    }

    public var description: String { "\(device): \(reason)" }
    public var debugDescription: String { "\(device): \(reason) (\(call))" }
    /// The library's call and what it returned: `snd_pcm_open: -2`.
    public var call: String { "\(operation): \(code)" }
}
