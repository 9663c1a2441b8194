import TuttiTiming

/// The published line while it differs from the two-way line: their difference changes at a rate,
/// and never steps.
///
/// The rate is chosen so that the corrected line leans no more than the two-way line does by
/// itself, or ``slewLimit``: mostly it leans less, because it does not follow the coming and going
/// of two-way errors.
struct ReferenceCorrection: Sendable {
    /// Largest lean of the corrected line, unless the two-way line leans more. At 20 ppm, 0.03 cent
    /// of pitch, an error of 50 µs is gone after 2.5 s.
    static let slewLimit = 20e-6
    /// How fast the difference follows what it should be; seconds.
    static let followTime = 1.5
    /// How often it is decided anew while the two-way line goes straight on.
    static let interval = Nanoseconds.milliseconds(500)
    /// Nobody decided anew for so long: the difference stays as it is.
    static let pieceLimit = Nanoseconds.seconds(2)

    private struct Piece {
        var corrected: ClockMap<LocalClock, GroupClock>
        var twoWay: ClockMap<LocalClock, GroupClock>
        /// When both are as written.
        var begin: LocalInstant { corrected.fromAnchor }
        var end: LocalInstant { begin + ReferenceCorrection.pieceLimit }

        func difference(at instant: LocalInstant) -> Nanoseconds {
            let instant = min(max(instant, begin), end)
            return corrected(instant) - twoWay(instant)
        }
    }

    private var piece: Piece?

    /// The difference at `now`: positive: the published line is ahead.
    func value(at now: LocalInstant) -> Nanoseconds { piece?.difference(at: now) ?? .zero }

    /// Decides how the line goes on from `now`.
    ///
    /// - Parameters:
    ///   - twoWay: the line from now on, continuous at `now` unless `maySet`.
    ///   - skew: of the crystal: the rate of a line that does not lean.
    ///   - wanted: what the difference should be, seconds; `nil`: zero, for good.
    ///   - slope: how that changes.
    ///   - maySet: nobody plays by the line yet.
    mutating func aim(
        at now: LocalInstant, _ twoWay: ClockMap<LocalClock, GroupClock>, skew: Double,
        wanted: Double?, slope: Double, maySet: Bool
    ) {
        guard let before = piece else {
            guard let wanted else { return }
            let start = maySet ? Nanoseconds(seconds: wanted) : .zero
            return begin(at: now, twoWay, start, skew: skew, wanted: wanted, slope: slope)
        }
        guard maySet || twoWay != before.twoWay || now - before.begin >= Self.interval else {
            return
        }
        // Where the published line is now, to the nanosecond: it must go on from there.
        let isRunning = now >= before.begin && now <= before.end
        let value =
            isRunning ? before.corrected(now) - twoWay(now) : before.difference(at: now)
        if wanted == nil, value == .zero || maySet { return piece = nil }
        let start = maySet ? Nanoseconds(seconds: wanted ?? 0) : value
        begin(at: now, twoWay, start, skew: skew, wanted: wanted ?? 0, slope: slope)
    }

    private mutating func begin(
        at now: LocalInstant, _ twoWay: ClockMap<LocalClock, GroupClock>, _ value: Nanoseconds,
        skew: Double, wanted: Double, slope: Double
    ) {
        let own = twoWay.skew - skew
        let limit = max(Self.slewLimit, own.magnitude)
        let lean = own + slope + (wanted - value.seconds) / Self.followTime
        piece = Piece(
            corrected: ClockMap(
                from: now, to: twoWay(now) + value, skew: skew + min(max(lean, -limit), limit)),
            twoWay: twoWay)
    }

    /// `clock`, the two-way line, with the difference in it.
    func corrected(_ clock: SharedClock, at now: LocalInstant) -> SharedClock {
        guard let piece else { return clock }
        var clock = clock
        if clock.map == piece.twoWay, now <= piece.end {
            clock.map = piece.corrected
        } else {
            let anchor = min(max(now, piece.begin), piece.end)
            clock.map = ClockMap(
                from: anchor, to: clock.map(anchor) + piece.difference(at: anchor),
                skew: clock.map.skew)
        }
        // The truth is where it was; the line is not.
        clock.uncertainty += piece.difference(at: now).magnitude
        return clock
    }
}
