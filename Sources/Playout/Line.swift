public import TuttiRealTime
public import TuttiTiming

/// One playing rule: `itemFrame` is audible at `instant`, and from there the item runs at `rate`.
@frozen
public struct Line: Equatable, Sendable, BitwiseCopyable {
    /// Frames of the item; may have a fractional part.
    public var itemFrame: Double
    /// Of the clock that the voice was started with; without one, local time in nanoseconds.
    public var instant: GroupInstant
    /// Seconds of the item per second of the clock; greater than 0, at most 16.
    public var rate: Double

    /// The line on which `itemFrame` is heard at `instant`.
    @inlinable
    public init(itemFrame: Double, instant: GroupInstant, rate: Double = 1) {
        self.itemFrame = itemFrame
        self.instant = instant
        self.rate = rate
    }

    /// Whether a voice can play by it.
    @inlinable
    public var isPlayable: Bool {
        rate > 0 && rate <= 16 && itemFrame > -1e15 && itemFrame < 1e15
    }
}

/// Where voices take their clock from: written by the clock service, read by the output thread.
public typealias ClockCell = LatestValue<SharedClock>

/// Which part of a stereo item a room plays.
public enum ChannelRole: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    case stereo, left, right, mono
}
