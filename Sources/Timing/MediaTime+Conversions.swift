extension MediaTime {
    /// The time nearest to `seconds`; NaN is ``invalid``, infinities stay, and what does not fit at
    /// the timescale is infinite.
    ///
    /// - Parameter preferredTimescale: units per second of the result; below 1 gives ``invalid``.
    public init(seconds: Double, preferredTimescale: Int32 = 1_000_000_000) {
        if seconds.isNaN || preferredTimescale < 1 {
            self = .invalid
        } else if seconds.isInfinite {
            self = seconds < 0 ? .negativeInfinity : .positiveInfinity
        } else {
            self = Self.product(
                Int128(preferredTimescale), seconds, timescale: preferredTimescale,
                wasRounded: false)
        }
    }

    /// Seconds, within one unit in the last place; ±infinity, or NaN when invalid or indefinite.
    public var seconds: Double {
        switch kind {
        case .number:
            // The whole seconds apart: a 64-bit value would lose its fraction in one division.
            Double(value / Int64(timescale))
                + Double(value % Int64(timescale)) / Double(timescale)
        case .positiveInfinity: .infinity
        case .negativeInfinity: -.infinity
        case .indefinite, .invalid: .nan
        }
    }

    /// The instant at which frame `frame` begins; ``invalid`` for a rate outside `Int32`.
    ///
    /// - Parameter sampleRate: frames per second.
    public init(frame: Int64, sampleRate: Int) {
        self.init(value: frame, timescale: Int32(exactly: sampleRate) ?? 0)
    }

    /// The frame that begins at this time; between two frames, the one that `rounding` says.
    ///
    /// Times that came through nanoseconds or seconds lie beside a frame: the default finds it.
    ///
    /// - Returns: saturated at the ends of `Int64` (infinities too); `nil` when the time is
    ///   invalid or indefinite, or the rate is not in 1…`Int32.max`.
    public func frame(
        atSampleRate sampleRate: Int, rounding: Rounding = .halfAwayFromZero
    ) -> Int64? {
        guard let scale = Int32(exactly: sampleRate), scale > 0 else { return nil }
        let frames = converted(toTimescale: scale, rounding: rounding)
        switch frames.kind {
        case .number: return frames.value
        case .positiveInfinity: return .max
        case .negativeInfinity: return .min
        case .indefinite, .invalid: return nil
        }
    }

    /// Units of one nanosecond.
    public init(_ span: Nanoseconds) {
        self.init(value: span.count, timescale: 1_000_000_000)
    }

    /// The nearest nanosecond, saturated; `nil` when invalid or indefinite.
    public var nanoseconds: Nanoseconds? {
        frame(atSampleRate: 1_000_000_000).map { Nanoseconds($0) }
    }

    /// The nearest nanosecond, or second where nanoseconds overflow; then ±infinity.
    public init(_ duration: Duration) {
        let nanoseconds = Self.rounded(duration.attoseconds, over: 1_000_000_000, .halfAwayFromZero)
        let fine = Self.saturating(
            nanoseconds.value, timescale: 1_000_000_000, wasRounded: nanoseconds.inexact)
        if fine.isNumeric {
            self = fine
        } else {
            let whole = Self.rounded(
                duration.attoseconds, over: 1_000_000_000_000_000_000, .halfAwayFromZero)
            self = Self.saturating(whole.value, timescale: 1, wasRounded: whole.inexact)
        }
    }

    /// The nearest attosecond; `nil` unless the time is a number.
    public var duration: Duration? {
        guard isNumeric else { return nil }
        let attosecondsPerSecond: Int128 = 1_000_000_000_000_000_000
        let attoseconds = Self.rounded(
            Int128(value) * attosecondsPerSecond, over: Int128(timescale), .halfAwayFromZero)
        return Duration(attoseconds: attoseconds.value)
    }
}
