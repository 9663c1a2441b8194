/// A signed span of time as a whole number of nanoseconds; ±292 years.
///
/// Arithmetic saturates at the ends of the range instead of trapping: a nonsense value from a peer
/// must become a useless schedule, never a crash. Allowed on the output thread (no `Duration`,
/// whose arithmetic may allocate).
@frozen
public struct Nanoseconds: Hashable, Comparable, Sendable, BitwiseCopyable {
    /// How many; negative: backwards.
    public var count: Int64

    /// A span of so many nanoseconds.
    @inlinable
    public init(_ count: Int64) { self.count = count }

    /// The nearest whole nanosecond; NaN is zero, values out of range saturate.
    ///
    /// - Parameter seconds: any `Double`.
    @inlinable
    public init(seconds: Double) { self.count = Int64(saturating: seconds * 1e9) }

    /// The span in seconds, to the 53 bits of a `Double`.
    @inlinable public var seconds: Double { Double(count) * 1e-9 }
    /// The span in microseconds, to the 53 bits of a `Double`.
    @inlinable public var microseconds: Double { Double(count) * 1e-3 }

    /// No time at all.
    public static let zero = Nanoseconds(0)
    /// `n` microseconds; saturates.
    @inlinable public static func microseconds(_ n: Int64) -> Self {
        Nanoseconds(n.multiplied(bySaturating: 1_000))
    }
    /// `n` milliseconds; saturates.
    @inlinable public static func milliseconds(_ n: Int64) -> Self {
        Nanoseconds(n.multiplied(bySaturating: 1_000_000))
    }
    /// `n` seconds; saturates beyond 292 years.
    @inlinable public static func seconds(_ n: Int64) -> Self {
        Nanoseconds(n.multiplied(bySaturating: 1_000_000_000))
    }

    @inlinable public static func < (a: Self, b: Self) -> Bool { a.count < b.count }
    @inlinable public static func + (a: Self, b: Self) -> Self {
        Nanoseconds(a.count.adding(saturating: b.count))
    }
    @inlinable public static func - (a: Self, b: Self) -> Self {
        Nanoseconds(a.count.subtracting(saturating: b.count))
    }
    @inlinable public static prefix func - (a: Self) -> Self {
        Nanoseconds(Int64(0).subtracting(saturating: a.count))
    }
    @inlinable public static func * (a: Self, n: Int64) -> Self {
        Nanoseconds(a.count.multiplied(bySaturating: n))
    }
    /// Division truncates towards zero; `n` must not be zero.
    @inlinable public static func / (a: Self, n: Int64) -> Self {
        let (quotient, overflow) = a.count.dividedReportingOverflow(by: n)
        return Nanoseconds(overflow ? (n == 0 ? 0 : Int64.max) : quotient)
    }
    @inlinable public static func += (a: inout Self, b: Self) { a = a + b }
    @inlinable public static func -= (a: inout Self, b: Self) { a = a - b }
    /// The span without its sign; saturates.
    @inlinable public var magnitude: Self { count < 0 ? -self : self }
}

extension Int64 {
    /// Sum, clamped to the range of `Int64`.
    @inlinable public func adding(saturating other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
    /// Difference, clamped to the range of `Int64`.
    @inlinable public func subtracting(saturating other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }
    /// Product, clamped to the range of `Int64`.
    @inlinable public func multiplied(bySaturating other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
    /// Nearest integer (halves away from zero); NaN is zero, values out of range are clamped.
    @inlinable public init(saturating x: Double) {
        if x >= 0x1p63 {
            self = .max
        } else if x < -0x1p63 {
            self = .min
        } else if x != x {
            self = 0
        } else {
            // Adding a half before truncating would itself round, for values just below a half.
            let whole = Int64(x)
            let rest = x - Double(whole)
            self = rest >= 0.5 ? whole + 1 : (rest <= -0.5 ? whole - 1 : whole)
        }
    }
}
