public import TuttiTiming

/// What a voice is doing.
@frozen
public enum VoiceState: Sendable, BitwiseCopyable {
    /// Not started yet.
    case idle
    /// Started; its line has not reached its beginning, or clock or card are not ready.
    case armed
    /// Audible.
    case playing
    /// On its line, but the ring does not hold the frames: silent until it does.
    case starved
    /// Stopped by command; can be started again.
    case stopped
    /// Played to the end of the item.
    case ended
}

/// One voice at the end of the period rendered last.
@frozen
public struct VoiceReport: Equatable, Sendable, BitwiseCopyable {
    /// Where the voice stands on its line.
    public var state: VoiceState
    /// The frame of the item that leaves the card at `at`; exact, with its fraction. Armed: where
    /// the line begins; stopped: where silence began; ended: the end.
    public var itemFrame: Double
    /// When that frame leaves the card (some time ahead of now), latency offset included.
    public var at: LocalInstant
    /// Nanoseconds; positive: we are late.
    public var errorNanoseconds: Double
    /// Resampling ratio against nominal: the ratio of the clocks plus the correction.
    public var ratioPartsPerMillion: Double
    /// Frames in the ring that the voice has not used yet.
    public var bufferedFrames: Int
    /// Output frames that were silent because the ring was empty, since the voice first sounded.
    public var starvedFrames: Int64
    /// Which start this is about, as its owner numbers them: a report from before the last start says
    /// nothing about it. 0 before the first.
    public var number: UInt64

    /// Of a voice that has no line.
    @_noLocks @_noAllocation
    public init(
        state: VoiceState = .idle, itemFrame: Double = 0,
        at: LocalInstant = LocalInstant(nanoseconds: 0), errorNanoseconds: Double = 0,
        ratioPartsPerMillion: Double = 0, bufferedFrames: Int = 0, starvedFrames: Int64 = 0,
        number: UInt64 = 0
    ) {
        self.number = number
        self.state = state
        self.itemFrame = itemFrame
        self.at = at
        self.errorNanoseconds = errorNanoseconds
        self.ratioPartsPerMillion = ratioPartsPerMillion
        self.bufferedFrames = bufferedFrames
        self.starvedFrames = starvedFrames
    }
}

/// One output at the end of the period rendered last.
@frozen
public struct OutputReport: Equatable, Sendable, BitwiseCopyable {
    /// Frames rendered since the engine was made, restarts included.
    public var framesWritten: Int64
    /// Rate of the card against the local clock; positive: the card is fast.
    public var cardPartsPerMillion: Double
    /// One standard deviation of the instant at which a frame leaves the card; 0 where nobody
    /// knows, as just after it was opened.
    public var cardUncertainty: Nanoseconds
    /// By how much the looks at a card whose pointer moves in steps are late at least; see
    /// `WakeFloor`.
    public var cardLateness: Nanoseconds
    /// Whether rate and phase of the card are known well enough to play in lockstep.
    public var cardSettled: Bool
    /// Whether there is nothing to wait for: the card is settled, or a second has shown that it will
    /// not be.
    public var cardDecided: Bool
    /// How the card's pointer moves.
    public var cardClass: CardClass
    /// Frames by which it moves at once; 0: not known yet.
    public var pointerStep: Int
    /// Of the playing voice that is worst; positive: we are late.
    public var error: Nanoseconds
    /// Of that voice: resampling ratio against nominal.
    public var ratioPartsPerMillion: Double
    /// Times the card ran dry.
    public var restarts: Int
    /// Output frames that were silent because a ring was empty, all voices so far; silence before
    /// a voice's first frame does not count.
    public var starvedFrames: Int64
    /// Frames between rendering and hearing.
    public var queuedFrames: Int
    /// Of these, behind the card's ring: in a bus, a DSP, a sound server, the air.
    public var framesAhead: Int
    /// When the report was made.
    public var at: LocalInstant

    /// Of an output that has rendered nothing.
    @_noLocks @_noAllocation
    public init(
        framesWritten: Int64 = 0, cardPartsPerMillion: Double = 0,
        cardUncertainty: Nanoseconds = Nanoseconds(0), cardLateness: Nanoseconds = Nanoseconds(0),
        cardSettled: Bool = false,
        error: Nanoseconds = Nanoseconds(0), ratioPartsPerMillion: Double = 0, restarts: Int = 0,
        starvedFrames: Int64 = 0, queuedFrames: Int = 0,
        at: LocalInstant = LocalInstant(nanoseconds: 0), cardClass: CardClass = .probing,
        pointerStep: Int = 0, cardDecided: Bool = false, framesAhead: Int = 0
    ) {
        self.cardDecided = cardDecided
        self.framesAhead = framesAhead
        self.cardClass = cardClass
        self.pointerStep = pointerStep
        self.framesWritten = framesWritten
        self.cardPartsPerMillion = cardPartsPerMillion
        self.cardUncertainty = cardUncertainty
        self.cardLateness = cardLateness
        self.cardSettled = cardSettled
        self.error = error
        self.ratioPartsPerMillion = ratioPartsPerMillion
        self.restarts = restarts
        self.starvedFrames = starvedFrames
        self.queuedFrames = queuedFrames
        self.at = at
    }
}

extension OutputReport {
    /// Of the position of the card, in standard deviations: a promise, where the model of the card
    /// says one. Three of a thousand moments lie beyond.
    private static let deviations: Int64 = 3

    /// When what was queued has been heard: a line that is started now, and runs already, is heard
    /// from then on, or some milliseconds later.
    ///
    /// - Parameter sampleRate: of the card.
    public func queueEnd(sampleRate: Int) -> LocalInstant {
        at + Nanoseconds(seconds: Double(queuedFrames) / Double(max(1, sampleRate)))
    }

    /// Half width of what may be wrong with the position of the card: what its model says, what no
    /// look can tell from it, and half a frame, since a pointer counts whole frames and nobody says
    /// from where. `nil` where nobody knows: the card was just opened, or does not say where it is.
    ///
    /// - Parameter sampleRate: of the card.
    public func bound(sampleRate: Int) -> Nanoseconds? {
        guard cardUncertainty > .zero else { return nil }
        let frame = Nanoseconds.seconds(1) / Int64(sampleRate)
        return cardUncertainty * Self.deviations + cardLateness + frame / 2
    }
}
