public import TuttiTiming

/// From `instant` on, the item runs through `itemFrame` at `rate`: the whole of what a room must
/// know to be in step with the others.
///
///     frame(t) = itemFrame + (t − instant) × sampleRate × rate
///
/// Rate 0 is a pause at `itemFrame`. Frames and instants are whole numbers, so that every room
/// computes the same line.
@frozen
public struct RateChange: Hashable, Sendable, BitwiseCopyable {
    /// Rates that messages may carry besides 0. A room may reach less far, and then says that it is
    /// not ready.
    public static let rates = 0.25...4.0

    /// Frame of the item, at the item's sample rate.
    public var itemFrame: Int64
    /// When that frame is audible, on the group clock.
    public var instant: GroupInstant
    /// Item time per group time; 1 is as recorded, 0 is paused.
    public var rate: Double

    /// A line as it is given; whether a room can play it is ``isPlayable``.
    public init(itemFrame: Int64, instant: GroupInstant, rate: Double) {
        self.itemFrame = itemFrame
        self.instant = instant
        self.rate = rate
    }

    /// Whether the rate is one a room can play and the frame is not negative.
    public var isPlayable: Bool {
        itemFrame >= 0 && (rate == 0 || Self.rates.contains(rate))
    }

    /// The frame audible at `instant`, with its fraction; runs on below and above the item.
    public func itemFrame(at instant: GroupInstant, sampleRate: Int) -> Double {
        Double(itemFrame) + Double((instant - self.instant).count) * 1e-9 * Double(sampleRate)
            * rate
    }

    /// When `frame` is audible, to the nearest nanosecond; `nil` while paused.
    ///
    /// At rate 1 the arithmetic is exact in integers, so that the end of one item and the beginning
    /// of the next are the same instant in every room however long the item is.
    public func instant(ofFrame frame: Int64, sampleRate: Int) -> GroupInstant? {
        guard rate > 0, sampleRate > 0 else { return nil }
        let frames = frame.subtracting(saturating: itemFrame)
        if rate == 1 {
            let twice = Int128(frames) * 2_000_000_000 / Int128(sampleRate)
            let nearest = (twice + (twice < 0 ? -1 : 1)) / 2
            return instant + Nanoseconds(Int64(clamping: nearest))
        }
        return instant + Nanoseconds(seconds: Double(frames) / (Double(sampleRate) * rate))
    }
}
