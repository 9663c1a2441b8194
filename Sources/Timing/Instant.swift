/// The clock of this machine that no time daemon steers: CLOCK_MONOTONIC_RAW.
public enum LocalClock {}

/// The line of time that all rooms of a group share.
///
/// It is the leader's local clock, number for number, and goes on while that stands still because
/// the machine sleeps; another leader has another one, told apart by the epoch of ``SharedClock``.
/// Nothing ever steps it.
public enum GroupClock {}

/// A point in time on one named clock, in nanoseconds since that clock's own epoch.
///
/// The clock is a phantom type: subtracting instants of two clocks does not compile; map one of
/// them with a ``ClockMap`` first. Arithmetic saturates.
@frozen
public struct Instant<Clock>: Hashable, Comparable, Sendable, BitwiseCopyable {
    /// Whole nanoseconds since the clock's zero, which is the clock's own business.
    public var nanoseconds: Int64

    /// The instant at which the clock reads so many nanoseconds.
    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    @inlinable public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }
    @inlinable public static func - (a: Self, b: Self) -> Nanoseconds {
        Nanoseconds(a.nanoseconds.subtracting(saturating: b.nanoseconds))
    }
    @inlinable public static func + (a: Self, d: Nanoseconds) -> Self {
        Instant(nanoseconds: a.nanoseconds.adding(saturating: d.count))
    }
    @inlinable public static func - (a: Self, d: Nanoseconds) -> Self {
        Instant(nanoseconds: a.nanoseconds.subtracting(saturating: d.count))
    }
    @inlinable public static func += (a: inout Self, d: Nanoseconds) { a = a + d }
}

/// A moment on this machine's own clock, which nobody steers.
public typealias LocalInstant = Instant<LocalClock>
/// A moment on the clock that a group shares.
public typealias GroupInstant = Instant<GroupClock>
