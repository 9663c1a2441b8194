public import TuttiTiming

import func Glibc.sqrt

/// What a room promises, and what it expects, of its own lockstep; part of every report.
///
/// Two different things are told, and never mixed up. The *promise* is an interval around the
/// group's line that contains the sound of this room, however the delay of the network divides
/// between its two directions. It is the sum of what may be wrong:
///
///     bound = |error| + clock + path + card + calibration
///
/// with the error that is known and being corrected, the estimate of the group clock (noise,
/// wander, age), half of the smallest round trip, and the position of the card. Any two rooms that
/// promise for the same place are within the sum of their bounds. The *expectation* is a guess of
/// the same distance without the worst case of the path, usually many times smaller, and no
/// promise.
///
/// What hangs behind the card (converter, amplifier, air) nobody can measure from here.
/// ``latencyOffset`` is what the owner says of it. Where that was measured, its uncertainty is the
/// last part, and the promise is about what leaves the loudspeaker. Otherwise it is about what
/// leaves the card.
public struct SyncReport: Equatable, Sendable {
    /// Of the estimate of the group clock; `none` before there is one.
    public var quality: SharedClock.Quality
    /// Half of the smallest round trip, the part of the clock's bound that no measurement of two
    /// ends can make smaller.
    public var path: Nanoseconds
    /// What may be wrong with the position of the card; `nil` while it is not known.
    public var card: Nanoseconds?
    /// Expected error of the estimate of the group clock.
    public var expectedClock: Nanoseconds
    /// One standard deviation of the position of the card.
    public var expectedCard: Nanoseconds
    /// What the owner of the room accepts as bound.
    public var target: Nanoseconds
    /// Whether the bound is, or was a moment ago, above the target; never without a bound. See
    /// ``SyncAlarm``.
    public var isAlarming: Bool
    /// The leader's rate against this room's clock; positive: the leader is faster.
    public var skewPartsPerMillion: Double
    /// Its standard deviation.
    public var skewDeviationPartsPerMillion: Double
    /// Who takes the time stamps in this room, and at its leader.
    public var ownStamps: StampKind
    /// Who takes the time stamps at the leader.
    public var leaderStamps: StampKind
    /// How the card's pointer moves, as far as that is known.
    public var cardClass: CardKind
    /// What the card is open with, for people: "44100 Hz, S32_LE, 2 channels, buffer 80 ms".
    public var cardFormat: String
    /// Time requests sent; answers to them; of these, exchanges that made no sense.
    public var packetsSent: Int
    /// Answers to them.
    public var packetsAnswered: Int
    /// Of these, exchanges that made no sense.
    public var packetsRejected: Int
    /// How often the clock had to be measured anew.
    public var clockRestarts: Int
    /// Since the latest good exchange.
    public var clockAge: Nanoseconds
    /// Of what hangs behind the card; in force.
    public var latencyOffset: LatencyOffset
    /// The room's settings give the offset, so that no command changes it.
    public var isLatencyOffsetFixed: Bool
    /// How the clock fares with reference broadcasts.
    public var broadcasts: BroadcastReport
    /// Datagrams that the room did not let in.
    public var dropped: DatagramDrops

    /// A report; rates that are not finite become 0, negative counts too, and a long text is cut.
    public init(
        quality: SharedClock.Quality = .none, path: Nanoseconds = .zero, card: Nanoseconds? = nil,
        expectedClock: Nanoseconds = .zero, expectedCard: Nanoseconds = .zero,
        target: Nanoseconds = SyncAlarm.standardTarget, isAlarming: Bool = false,
        skewPartsPerMillion: Double = 0, skewDeviationPartsPerMillion: Double = 0,
        ownStamps: StampKind = .absent, leaderStamps: StampKind = .absent,
        cardClass: CardKind = .undecided, cardFormat: String = "",
        packetsSent: Int = 0, packetsAnswered: Int = 0, packetsRejected: Int = 0,
        clockRestarts: Int = 0, clockAge: Nanoseconds = .zero, latencyOffset: LatencyOffset = .zero,
        isLatencyOffsetFixed: Bool = false, broadcasts: BroadcastReport = BroadcastReport(),
        dropped: DatagramDrops = .zero
    ) {
        self.quality = quality
        self.path = path
        self.card = card
        self.expectedClock = expectedClock
        self.expectedCard = expectedCard
        self.target = target
        self.isAlarming = isAlarming
        self.skewPartsPerMillion = skewPartsPerMillion.isFinite ? skewPartsPerMillion : 0
        self.skewDeviationPartsPerMillion =
            skewDeviationPartsPerMillion.isFinite ? skewDeviationPartsPerMillion : 0
        self.ownStamps = ownStamps
        self.leaderStamps = leaderStamps
        self.cardClass = cardClass
        self.cardFormat = cardFormat.limited(toBytes: RoomReport.longestText)
        self.packetsSent = max(0, packetsSent)
        self.packetsAnswered = max(0, packetsAnswered)
        self.packetsRejected = max(0, packetsRejected)
        self.clockRestarts = max(0, clockRestarts)
        self.clockAge = clockAge
        self.latencyOffset = latencyOffset
        self.isLatencyOffsetFixed = isLatencyOffsetFixed
        self.broadcasts = broadcasts
        self.dropped = dropped
    }
}

extension RoomReport {
    /// Wider than this is no promise. A clock that stood still, or was set, says an hour until it
    /// has been measured again.
    static let widestBound = Nanoseconds.seconds(60)

    /// The promise: half width of the interval around the group's line that contains the sound of
    /// this room; `nil` while clock or card are not known or the line is not played as committed,
    /// and nothing can be promised.
    public var bound: Nanoseconds? {
        guard sync.quality > .none, let card = sync.card, !line.isAlarm else { return nil }
        let sum =
            error.magnitude + max(clockBound, .zero) + max(card, .zero)
            + (sync.latencyOffset.uncertainty ?? .zero)
        return sum <= Self.widestBound ? sum : nil
    }

    /// The part of the clock's bound that more exchanges would make smaller.
    public var clockPart: Nanoseconds { max(.zero, clockBound - pathPart) }

    /// The part that only a shorter path would.
    public var pathPart: Nanoseconds { max(.zero, min(sync.path, clockBound)) }

    /// The guess: how far the sound of this room is likely to be off the group's line; one
    /// standard deviation. `nil` where ``bound`` is.
    public var expectedError: Nanoseconds? {
        guard bound != nil else { return nil }
        let parts = [error, clockDeviation, sync.expectedClock, sync.expectedCard]
        // Of the calibration's interval no part is more likely than another.
        let calibration = (sync.latencyOffset.uncertainty ?? .zero).seconds
        let squares = parts.reduce(calibration * calibration / 3) { $0 + $1.seconds * $1.seconds }
        return Nanoseconds(seconds: sqrt(squares))
    }
}
