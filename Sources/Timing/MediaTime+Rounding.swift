extension MediaTime {
    /// The largest timescale; sums whose common timescale would be larger are rounded to this one.
    public static let maximumTimescale = Int32.max

    /// How an exact result that lies between two units is brought to one of them.
    public enum Rounding: Sendable, CaseIterable {
        /// To the nearest; a half goes away from zero. What arithmetic uses.
        case halfAwayFromZero
        case towardZero
        case awayFromZero
        case towardPositiveInfinity
        case towardNegativeInfinity
    }

    /// The same time in units of `1/timescale` seconds.
    ///
    /// - Returns: times without a number unchanged; ±infinity when the value does not fit;
    ///   ``invalid`` when the timescale is below 1. ``wasRounded`` is set when units were lost.
    public func converted(
        toTimescale timescale: Int32, rounding: Rounding = .halfAwayFromZero
    ) -> MediaTime {
        guard isNumeric else { return self }
        guard timescale > 0 else { return .invalid }
        let units = Self.rounded(
            Int128(value) * Int128(timescale), over: Int128(self.timescale), rounding)
        return Self.saturating(
            units.value, timescale: timescale, wasRounded: wasRounded || units.inexact)
    }

    /// `numerator / denominator` as a whole number; the denominator is positive.
    static func rounded(
        _ numerator: Int128, over denominator: Int128, _ rounding: Rounding
    ) -> (value: Int128, inexact: Bool) {
        let (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: denominator)
        guard remainder != 0 else { return (quotient, false) }
        let away: Int128 = numerator < 0 ? -1 : 1
        let step: Int128 =
            switch rounding {
            // Written without doubling, which could leave 128 bits.
            case .halfAwayFromZero:
                remainder.magnitude >= denominator.magnitude - remainder.magnitude ? away : 0
            case .towardZero: 0
            case .awayFromZero: away
            case .towardPositiveInfinity: max(away, 0)
            case .towardNegativeInfinity: min(away, 0)
            }
        return (quotient + step, true)
    }

    /// A value of any size at a timescale, ±infinity where it does not fit.
    static func saturating(_ value: Int128, timescale: Int32, wasRounded: Bool) -> MediaTime {
        guard let fitting = Int64(exactly: value) else {
            return value < 0 ? .negativeInfinity : .positiveInfinity
        }
        return MediaTime(value: fitting, timescale: timescale, wasRounded: wasRounded)
    }

    /// The time nearest to `numerator / denominator` seconds at `timescale`, or, where that
    /// overflows, at the first of its halves that can hold it; ±infinity when not even whole
    /// seconds can.
    ///
    /// The numerator has at most 96 bits and the denominator is positive: times a 31-bit timescale
    /// that is exact in 128 bits.
    static func nearest(
        to numerator: Int128, over denominator: Int128, timescale: Int32, wasRounded: Bool
    ) -> MediaTime {
        var scale = timescale
        while true {
            let units = rounded(numerator * Int128(scale), over: denominator, .halfAwayFromZero)
            let time = saturating(
                units.value, timescale: scale, wasRounded: wasRounded || units.inexact)
            if time.isNumeric || scale <= 1 { return time }
            scale /= 2
        }
    }
}

extension Int128 {
    /// The greatest common divisor; at least 1 unless both are zero.
    func greatestCommonDivisor(with other: Int128) -> Int128 {
        var (a, b) = (self < 0 ? -self : self, other < 0 ? -other : other)
        while b != 0 { (a, b) = (b, a % b) }
        return a
    }
}
