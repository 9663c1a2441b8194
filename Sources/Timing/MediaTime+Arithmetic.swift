extension MediaTime {
    /// The exact sum where one exists.
    ///
    /// The result has the common timescale of both (least common multiple, at most
    /// ``maximumTimescale``), halved while the value would overflow; then it is the nearest time
    /// and ``wasRounded``. Invalid wins over all, then infinity (+∞ − ∞ is invalid), then
    /// indefinite.
    public static func + (a: Self, b: Self) -> Self {
        guard a.isNumeric, b.isNumeric else { return sumWithoutNumbers(a, b) }
        let (scaleA, scaleB) = (Int128(a.timescale), Int128(b.timescale))
        let common = scaleA / scaleA.greatestCommonDivisor(with: scaleB) * scaleB
        return nearest(
            to: Int128(a.value) * scaleB + Int128(b.value) * scaleA, over: scaleA * scaleB,
            timescale: Int32(clamping: common), wasRounded: a.wasRounded || b.wasRounded)
    }

    public static func - (a: Self, b: Self) -> Self {
        // Not a + (−b): the least value has no negative at its timescale.
        guard a.isNumeric, b.isNumeric else { return sumWithoutNumbers(a, -b) }
        let (scaleA, scaleB) = (Int128(a.timescale), Int128(b.timescale))
        let common = scaleA / scaleA.greatestCommonDivisor(with: scaleB) * scaleB
        return nearest(
            to: Int128(a.value) * scaleB - Int128(b.value) * scaleA, over: scaleA * scaleB,
            timescale: Int32(clamping: common), wasRounded: a.wasRounded || b.wasRounded)
    }

    public static prefix func - (a: Self) -> Self { a * -1 }

    public static func += (a: inout Self, b: Self) { a = a + b }
    public static func -= (a: inout Self, b: Self) { a = a - b }

    /// The exact product; the timescale is halved while the value would overflow, and then the
    /// product is ``wasRounded``. Infinity times zero is invalid.
    public static func * (a: Self, multiplier: Int32) -> Self {
        a.multiplied(by: multiplier, over: 1)
    }

    /// `self × multiplier / divisor` at this timescale (halved while it would overflow), rounded
    /// once; ``invalid`` when the divisor is zero.
    public func multiplied(by multiplier: Int32, over divisor: Int32) -> MediaTime {
        guard divisor != 0 else { return .invalid }
        let negative = (multiplier < 0) != (divisor < 0)
        guard isNumeric else {
            return infinite(timesSign: multiplier == 0 ? 0 : (negative ? -1 : 1))
        }
        let magnitude = Int128(multiplier.magnitude)
        return Self.nearest(
            to: Int128(value) * (negative ? -magnitude : magnitude),
            over: Int128(timescale) * Int128(divisor.magnitude),
            timescale: timescale, wasRounded: wasRounded)
    }

    /// The product at this timescale, rounded once to the nearest unit; ±infinity when it does not
    /// fit, ``invalid`` when the multiplier is not a number.
    public func multiplied(by multiplier: Double) -> MediaTime {
        guard !multiplier.isNaN else { return .invalid }
        let sign = multiplier == 0 ? 0 : (multiplier < 0 ? -1 : 1)
        guard isNumeric else { return infinite(timesSign: sign) }
        if multiplier.isInfinite {
            return MediaTime(.positiveInfinity).infinite(timesSign: sign * Int(value.signum()))
        }
        return Self.product(Int128(value), multiplier, timescale: timescale, wasRounded: wasRounded)
    }

    /// `factor × multiplier` units, exact until the one rounding: a `Double` is a whole number of
    /// 53 bits times a power of two, so the product with 64 bits fits in 128.
    static func product(
        _ factor: Int128, _ multiplier: Double, timescale: Int32, wasRounded: Bool
    ) -> MediaTime {
        guard factor != 0, multiplier != 0 else {
            return MediaTime(value: 0, timescale: timescale, wasRounded: wasRounded)
        }
        let fractionBits = 52
        let isSubnormal = multiplier.exponentBitPattern == 0
        let bits = multiplier.significandBitPattern | (isSubnormal ? 0 : 1 << fractionBits)
        let exponent = max(Int(multiplier.exponentBitPattern), 1) - 1_023 - fractionBits
        let units = factor * (multiplier < 0 ? -Int128(bits) : Int128(bits))
        if exponent >= 0 {
            // 64 more bits would leave every value anyway.
            let fits = exponent < 64 && (units.magnitude >> UInt128(64 - exponent)) == 0
            guard fits else { return units < 0 ? .negativeInfinity : .positiveInfinity }
            return saturating(units << exponent, timescale: timescale, wasRounded: wasRounded)
        }
        // Below 2^-126 the 117-bit product is far less than half a unit.
        guard exponent >= -126 else {
            return MediaTime(value: 0, timescale: timescale, wasRounded: true)
        }
        let result = rounded(units, over: Int128(1) << -exponent, .halfAwayFromZero)
        return saturating(
            result.value, timescale: timescale, wasRounded: wasRounded || result.inexact)
    }

    /// The span without its sign.
    public var magnitude: MediaTime { self < .zero ? -self : self }

    private static func sumWithoutNumbers(_ a: Self, _ b: Self) -> Self {
        if !a.isValid || !b.isValid { return .invalid }
        if a.isInfinite && b.isInfinite { return a.kind == b.kind ? a : .invalid }
        if a.isInfinite { return a }
        if b.isInfinite { return b }
        return .indefinite
    }

    /// A time without a number, times something of the given sign.
    private func infinite(timesSign sign: Int) -> MediaTime {
        guard isInfinite else { return self }
        if sign == 0 { return .invalid }
        return (kind == .positiveInfinity) == (sign > 0) ? .positiveInfinity : .negativeInfinity
    }
}
