/// One immutable estimate of the group clock, as seen from this machine.
///
/// Whoever publishes a sequence of these publishes a continuous line: the map of a newer one
/// agrees with the older at the moment of hand-over and only its rate differs. `epoch` changes
/// when continuity could not be kept (another group, a suspended machine).
@frozen
public struct SharedClock: Equatable, Sendable, BitwiseCopyable {
    /// Local clock to group clock.
    public var map: ClockMap<LocalClock, GroupClock>
    /// Half width of the interval around the map that contains the true group clock.
    public var uncertainty: Nanoseconds
    /// When the estimate was made; the uncertainty holds for this instant and grows with age.
    public var estimatedAt: LocalInstant
    /// Changes when the line is not the continuation of the one before it.
    public var epoch: UInt64
    /// What the estimate rests on, and so what it may be used for.
    public var quality: Quality

    /// How far an estimate may be trusted, in rising order.
    @frozen
    public enum Quality: UInt8, Sendable, BitwiseCopyable, Comparable {
        /// No measurement yet: do not play by it.
        case none
        /// Was locked and runs on an old estimate: the leader is silent.
        case holdover
        /// Measured, not yet well enough to play by.
        case acquiring
        /// Measured and settled.
        case locked

        /// Whether something may be begun by it: it is locked, or was.
        @inlinable public var isPlayable: Bool { self == .locked || self == .holdover }

        @inlinable public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    /// An estimate as of `estimatedAt`, local time.
    @inlinable
    public init(
        map: ClockMap<LocalClock, GroupClock>, uncertainty: Nanoseconds,
        estimatedAt: LocalInstant, epoch: UInt64, quality: Quality
    ) {
        self.map = map
        self.uncertainty = uncertainty
        self.estimatedAt = estimatedAt
        self.epoch = epoch
        self.quality = quality
    }

    /// Nothing is known of the group clock yet.
    public static let unknown = SharedClock(
        map: ClockMap(from: LocalInstant(nanoseconds: 0), to: GroupInstant(nanoseconds: 0)),
        uncertainty: .seconds(1), estimatedAt: LocalInstant(nanoseconds: 0), epoch: 0,
        quality: .none)

    /// The group clock of the machine that defines it: its own local clock, without error.
    @inlinable
    public static func own(at now: LocalInstant, epoch: UInt64) -> SharedClock {
        SharedClock(
            map: ClockMap(from: now, to: GroupInstant(nanoseconds: now.nanoseconds)),
            uncertainty: .zero, estimatedAt: now, epoch: epoch, quality: .locked)
    }

    /// The group clock of the machine that defines it from now on: it goes on where the estimate of
    /// it stands, at the rate that is known of it. What the estimate is wrong by is nobody's error
    /// any more: the others come to where this one is.
    ///
    /// - Parameter skew: the group clock's rate against this machine's, minus one. The map's own
    ///   would do, but for the lean that it may have at this moment.
    @inlinable
    public static func continuing(
        _ clock: SharedClock, at now: LocalInstant, skew: Double, epoch: UInt64
    ) -> SharedClock {
        SharedClock(
            map: ClockMap(from: now, to: clock.map(now), skew: skew), uncertainty: .zero,
            estimatedAt: now, epoch: epoch, quality: .locked)
    }
}
