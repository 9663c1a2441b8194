public import TuttiTiming

/// How well one room keeps together with its group, as shown to a person; see ``SyncReport`` for
/// what is promised and what is only expected.
public struct SyncStatus: Codable, Equatable, Sendable {
    /// What the room's clock rests on.
    public var clock = ClockState.unmeasured
    /// The promise: the room is within ± this of the group's line. `nil`: nothing can be promised,
    /// and ``RoomStatus/promiseObstacle`` says why.
    public var boundMicroseconds: Double?
    /// What the promise is the sum of.
    public var parts = Parts()
    /// The guess, one standard deviation.
    public var expectedMicroseconds: Double?
    /// What the owner of the room accepts as bound, µs.
    public var targetMicroseconds = 0.0
    /// The bound is above the target, the room is not heard any more, or it does not play what the
    /// leader committed.
    public var alarm = false
    /// What leaves the card, against what the leader committed, in words; empty: nothing has to
    /// sound, or nobody can tell.
    public var line = ""
    /// It is not what was committed.
    public var lineAlarm = false
    /// The leader's rate against the room's; positive: the leader is faster.
    public var skewPartsPerMillion = 0.0
    /// Its standard deviation.
    public var skewDeviationPartsPerMillion = 0.0
    /// Who takes the time stamps in the room.
    public var ownStamps = StampKind.absent
    /// Who takes the time stamps at the leader.
    public var leaderStamps = StampKind.absent
    /// How the card's pointer moves, as far as that is known.
    public var cardClass = CardKind.undecided
    /// What the card is open with, for people.
    public var cardFormat: String?
    /// Time requests sent.
    public var packetsSent = 0
    /// Answers to them.
    public var packetsAnswered = 0
    /// Answers whose exchange made no sense.
    public var packetsRejected = 0
    /// How often the clock had to be measured anew.
    public var clockRestarts = 0
    /// Since the latest good exchange.
    public var clockAgeSeconds = 0.0
    /// Since the room said all this.
    public var reportAgeSeconds = 0.0
    /// Delay of what hangs behind the card, as it is allowed for, µs; positive: the sound is late
    /// without it.
    public var latencyOffsetMicroseconds = 0.0
    /// The room's settings give the offset, so that no command changes it.
    public var latencyOffsetFixed = false
    /// How the clock fares with reference broadcasts.
    public var broadcasts = BroadcastStatus()
    /// Datagrams that the room did not let in; `nil`: there were none.
    public var dropped: DatagramDrops?
    /// Errors and bounds of the last minutes.
    public var history = History()

    /// Each `nil` while it is not known.
    public struct Parts: Codable, Equatable, Sendable {
        /// What is known to be off, and is being corrected.
        public var errorMicroseconds: Double?
        /// Noise, wander and age of the clock's estimate.
        public var clockMicroseconds: Double?
        /// Half of the smallest round trip.
        public var pathMicroseconds: Double?
        /// What may be wrong with the position of the card.
        public var cardMicroseconds: Double?
        /// How surely the delay of what hangs behind the card is known (``LatencyOffset``); `nil`:
        /// it was not measured, and the bound is without.
        public var calibrationMicroseconds: Double?

        /// Nothing known yet.
        public init() {}
    }

    /// The last minutes, once a second while the room played and was heard.
    public struct History: Codable, Equatable, Sendable {
        /// Since the oldest point.
        public var seconds = 0
        /// Of the errors' magnitudes, microseconds.
        public var error: Spread?
        /// Of the bounds, microseconds.
        public var bound: Spread?
        /// Microseconds, oldest first; empty unless asked for.
        public var errors: [Float] = []
        /// The bounds at the same moments, µs.
        public var bounds: [Float] = []
        /// How many seconds ago that was. Where they leap, the room did not play or was not heard.
        public var ages: [Float] = []

        /// Without points.
        public init() {}

        /// - Parameter hasPoints: whether every point is told, or their spread alone.
        public init(_ history: SyncHistory, at now: GroupInstant, hasPoints: Bool) {
            let points = history.points(at: now)
            let (errors, bounds) = (points.map(\.error), points.map(\.bound))
            seconds = points.first.map { Int($0.age.rounded(.up)) } ?? 0
            error = Spread(magnitudesOf: errors)
            bound = Spread(magnitudesOf: bounds)
            guard hasPoints else { return }
            (self.errors, self.bounds, ages) = (errors, bounds, points.map(\.age))
        }
    }

    /// Nothing known; for a message to fill in.
    public init() {}

    /// Rooms report each second; one that was not heard for longer says nothing of now.
    public static let staleSeconds = 3.0

    /// Whether the room was not heard for longer than ``staleSeconds``: what it said is not of now.
    public var isStale: Bool { reportAgeSeconds > Self.staleSeconds }

    /// - Parameter age: since the report came.
    init(_ report: RoomReport, age: Nanoseconds, history: History) {
        let sync = report.sync
        reportAgeSeconds = age.seconds
        clock =
            switch sync.quality {
            case .none: .unmeasured
            case .holdover: .holdover
            case .acquiring: .acquiring
            case .locked: .locked
            }
        let isHeard = !isStale && report.activity != .lost
        if isHeard, report.activity.canPromise {
            boundMicroseconds = report.bound?.microseconds
            expectedMicroseconds = report.expectedError?.microseconds
        }
        // What does not sound is nowhere.
        if report.activity == .playing, boundMicroseconds != nil {
            parts.errorMicroseconds = report.error.magnitude.microseconds
        }
        if isHeard {
            if sync.quality > .none {
                parts.clockMicroseconds = report.clockPart.microseconds
                parts.pathMicroseconds = report.pathPart.microseconds
            }
            parts.cardMicroseconds = sync.card.map { max($0, .zero).microseconds }
        }
        parts.calibrationMicroseconds = sync.latencyOffset.uncertainty?.microseconds
        targetMicroseconds = sync.target.microseconds
        // A room that has just fallen silent is no better than it was.
        alarm = report.activity == .lost || sync.isAlarming || report.line.isAlarm
        line = report.line.words
        lineAlarm = report.line.isAlarm
        skewPartsPerMillion = sync.skewPartsPerMillion
        skewDeviationPartsPerMillion = sync.skewDeviationPartsPerMillion
        ownStamps = sync.ownStamps
        leaderStamps = sync.leaderStamps
        cardClass = sync.cardClass
        cardFormat = sync.cardFormat.isEmpty ? nil : sync.cardFormat
        packetsSent = sync.packetsSent
        packetsAnswered = sync.packetsAnswered
        packetsRejected = sync.packetsRejected
        clockRestarts = sync.clockRestarts
        clockAgeSeconds = sync.clockAge.seconds + age.seconds
        latencyOffsetMicroseconds = sync.latencyOffset.delay.microseconds
        latencyOffsetFixed = sync.isLatencyOffsetFixed
        broadcasts = BroadcastStatus(sync.broadcasts)
        dropped = sync.dropped == .zero ? nil : sync.dropped
        self.history = history
    }
}
