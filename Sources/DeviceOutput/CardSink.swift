import TuttiRealTime
import TuttiTiming

/// What becomes of the frames that leave a paced card. Called on the output thread; never waits.
protocol CardSink: AnyObject {
    /// Interleaved frames, in the order in which they left.
    func append(_ frames: UnsafePointer<Float>, count: Int)
    func note(_ event: CardEvent)
    /// Nothing follows; returns when the files are complete.
    func finish()
}

/// Something that happened to a card's time line.
struct CardEvent: BitwiseCopyable, Sendable {
    enum Kind: UInt8, BitwiseCopyable, Sendable { case start, anchor, underrun, end }
    var kind: Kind
    /// Counted from the first frame that ever left the card; may be fractional.
    var frame: Double
    /// When that frame leaves.
    var instant: LocalInstant
    /// Part of a nanosecond that `instant` leaves out, 0..<1.
    var fraction = 0.0
}
