/// Maps a source clock to item time: from its anchor on, item time runs at `rate` per second of
/// the source.
///
/// A value, like everything that decides: a player keeps one and replaces it. Whoever changes the
/// rate or the source keeps item time continuous, because the new line begins at a point of the
/// old one.
@frozen
public struct Timebase<Source>: Equatable, Sendable {
    /// Item seconds per second of the source clock; 0 is paused.
    public private(set) var rate: Double
    /// Item time at ``anchorInstant``.
    public private(set) var anchorTime: MediaTime
    /// When item time was ``anchorTime``, by the source clock.
    public private(set) var anchorInstant: Instant<Source>

    /// A paused timebase that stands at `time`.
    public init(time: MediaTime = .zero, at instant: Instant<Source> = Instant(nanoseconds: 0)) {
        self.rate = 0
        self.anchorTime = time
        self.anchorInstant = instant
    }

    /// Item time when the source clock reads `instant`, also before the anchor.
    ///
    /// Exact at the anchor, elsewhere to a nanosecond; saturates to ±infinity.
    public func time(at instant: Instant<Source>) -> MediaTime {
        let elapsed = instant - anchorInstant
        guard rate != 0, elapsed != .zero, anchorTime.isNumeric else { return anchorTime }
        let anchor = anchorTime.converted(toTimescale: 1_000_000_000)
        // An anchor centuries away does not fit in nanoseconds; keep its own timescale then.
        return (anchor.isNumeric ? anchor : anchorTime)
            + MediaTime(elapsed).multiplied(by: rate)
    }

    /// When the source clock reads the moment of item time `time`; saturates.
    ///
    /// - Returns: `nil` while paused, or when a time is not a number.
    public func instant(of time: MediaTime) -> Instant<Source>? {
        guard rate != 0 else { return nil }
        let distance = (time - anchorTime).converted(toTimescale: 1_000_000_000)
            .multiplied(by: 1 / rate)
        guard let elapsed = distance.nanoseconds else { return nil }
        return anchorInstant + elapsed
    }

    /// From `instant` on, item time continues from where it is then, at another rate.
    public mutating func setRate(_ rate: Double, at instant: Instant<Source>) {
        setRate(rate, anchorTime: time(at: instant), immediateSourceTime: instant)
    }

    /// A new line: item time `anchorTime` at `immediateSourceTime` of the source.
    ///
    /// - Parameter rate: must be finite; may be negative.
    public mutating func setRate(
        _ rate: Double, anchorTime: MediaTime, immediateSourceTime: Instant<Source>
    ) {
        precondition(rate.isFinite, "a timebase cannot run at rate \(rate)")
        self.rate = rate
        self.anchorTime = anchorTime
        self.anchorInstant = immediateSourceTime
    }

    /// Item time jumps to `time` at `instant`; the rate stays.
    public mutating func setTime(_ time: MediaTime, at instant: Instant<Source>) {
        anchorTime = time
        anchorInstant = instant
    }

    /// The same item time driven by another clock from `instant` (of the old source) on.
    ///
    /// Item time at that moment is the same in both; from then on it follows the new clock at the
    /// same rate.
    ///
    /// - Parameter relation: how the new clock reads when the old one does.
    public func continued<New>(
        on relation: ClockMap<Source, New>, at instant: Instant<Source>
    ) -> Timebase<New> {
        var next = Timebase<New>()
        next.setRate(rate, anchorTime: time(at: instant), immediateSourceTime: relation(instant))
        return next
    }
}
