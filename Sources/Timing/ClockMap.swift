/// An affine relation of two clocks: `to = toAnchor + rate × (from − fromAnchor)`.
///
/// Everything that keeps rooms in lockstep is a composition of such maps. The offset is kept in
/// whole nanoseconds and only the *deviation* of the rate from 1 is multiplied in floating point,
/// so that a map is exact to a nanosecond for hours around its anchor.
@frozen
public struct ClockMap<From, To>: Equatable, Sendable, BitwiseCopyable {
    /// The reading of `From` at the moment around which the map is exact.
    public var fromAnchor: Instant<From>
    /// The reading of `To` at that moment.
    public var toAnchor: Instant<To>
    /// Rate of `To` against `From`, minus one; dimensionless, 1e-6 is one ppm.
    public var skew: Double

    /// The map of two clocks that read `from` and `to` at one moment; without a skew they run
    /// alike.
    @inlinable
    public init(from: Instant<From>, to: Instant<To>, skew: Double = 0) {
        self.fromAnchor = from
        self.toAnchor = to
        self.skew = skew
    }

    /// Rate of `To` against `From`, 1 where they run alike.
    @inlinable public var rate: Double { 1 + skew }

    /// The reading of `To` at the moment when `From` reads `instant`.
    @inlinable
    public func callAsFunction(_ instant: Instant<From>) -> Instant<To> {
        let elapsed = instant - fromAnchor
        let correction = Nanoseconds(Int64(saturating: Double(elapsed.count) * skew))
        // The span first: a sum that has saturated must not be pulled back into the range.
        return toAnchor + (elapsed + correction)
    }

    /// The same relation read the other way.
    @inlinable
    public var inverted: ClockMap<To, From> {
        ClockMap<To, From>(from: toAnchor, to: fromAnchor, skew: -skew / (1 + skew))
    }

    /// First this map, then `next`, anchored where this map is anchored.
    @inlinable
    public func composed<Last>(with next: ClockMap<To, Last>) -> ClockMap<From, Last> {
        ClockMap<From, Last>(
            from: fromAnchor, to: next(toAnchor), skew: skew + next.skew + skew * next.skew)
    }

    /// The same line with another anchor; use it before the anchor is hours away.
    @inlinable
    public func reanchored(at instant: Instant<From>) -> Self {
        ClockMap(from: instant, to: self(instant), skew: skew)
    }
}

extension ClockMap where From == To {
    /// A clock's relation to itself.
    public static var identity: Self {
        ClockMap(from: Instant(nanoseconds: 0), to: Instant(nanoseconds: 0))
    }
}
