/// What a simulated card is like: its crystal, and how it says where it is.
public struct CardModel: Sendable, Equatable {
    /// How the position that a driver reports moves. All of them are late, never early: the card
    /// has played at least what it says.
    public enum Pointer: Sendable, Equatable {
        /// It moves by whole frames.
        case fine
        /// It moves by bursts of so many frames, as DMA fetches them.
        case bursts(frames: Int)
        /// It moves at the interrupt of each period, which comes late by `meanLateness` seconds on
        /// average (exponential).
        case batch(meanLateness: Double)
        /// It moves by the frames of a millisecond, as a USB host counts.
        case milliseconds
    }

    /// What the table calls it.
    public var name: String
    /// How its position moves.
    public var pointer: Pointer
    /// Nominal frames per second.
    public var sampleRate = 48_000
    /// As `ALSANegotiation` chooses it: 20 ms, or 10 where the driver says that the pointer moves
    /// by more than frames.
    public var periodFrames: Int
    /// Constant deviation of the crystal, ppm; positive: fast.
    public var partsPerMillion = 0.0
    /// Random walk of its rate, ppm per √s.
    public var walk = 0.01
    /// The rate changes by so many ppm, once, at `stepSeconds`.
    public var step = 2.0
    /// Seconds after it was opened.
    public var stepSeconds = 100.0
    /// From the instant that the thread waits for to its running, seconds (exponential).
    public var wakeLateness = 20e-6
    /// By so much each wake-up is late at least, seconds: no interrupt gets a thread to run in no
    /// time.
    public var wakeFloor = 0.0
    /// Share of the wake-ups that are late by up to a millisecond more.
    public var preempted = 0.01
    /// From the position to its time stamp, seconds (exponential).
    public var stampLateness = 0.5e-6

    /// A card at 48 kHz of that kind; its periods follow from the pointer.
    public init(name: String, pointer: Pointer) {
        self.name = name
        self.pointer = pointer
        periodFrames =
            switch pointer {
            case .fine, .bursts: 960
            case .batch, .milliseconds: 480
            }
    }

    /// The card models of the comparison: a fine pointer; 8-frame bursts (HDA); a pointer that
    /// moves at the period's interrupt only; a USB millisecond counter.
    public static let standard = [
        CardModel(name: "fine", pointer: .fine),
        CardModel(name: "hda", pointer: .bursts(frames: 8)),
        CardModel(name: "batch", pointer: .batch(meanLateness: 15e-6)),
        CardModel(name: "usb", pointer: .milliseconds),
    ]
}
