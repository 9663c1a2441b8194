public import TuttiTiming

/// How a follower's clock is doing, for the status page and the log.
public struct ClockStatistics: Equatable, Sendable {
    /// How good the estimate is.
    public var quality = SharedClock.Quality.none
    /// Requests sent.
    public var sent = 0
    /// Replies that were ours.
    public var answered = 0
    /// Exchanges that became samples.
    public var accepted = 0
    /// Exchanges whose stamps made no sense or contradicted the estimate.
    public var rejected = 0
    /// Packets that answered nothing we asked: foreign, forged, duplicate or very late.
    public var ignored = 0
    /// How often everything had to be measured anew.
    public var restarts = 0
    /// Round trip of the latest exchange.
    public var roundTrip = Nanoseconds.zero
    /// Smallest round trip of the last five minutes; zero before the first exchange.
    public var roundTripFloor = Nanoseconds.zero
    /// Who stamped the latest exchange: the weaker of the two hosts' classes.
    public var stamps = StampClass.program
    /// Who stamped the latest exchange, each host by itself.
    public var ownStamps = StampClass.program
    /// Who stamps at the leader, of the latest exchange.
    public var leaderStamps = StampClass.program
    /// Leader's rate against ours: positive when the leader is faster.
    public var skewPartsPerMillion = 0.0
    /// Its standard deviation.
    public var skewDeviationPartsPerMillion = 0.0
    /// Half width of the interval that contains the leader's clock.
    public var bound = Nanoseconds.zero
    /// What the error of the estimate is expected to be; no promise.
    public var expectedError = Nanoseconds.zero
    /// Estimate minus the published line: what the line still leans by.
    public var deviation = Nanoseconds.zero
    /// Time since the latest accepted exchange.
    public var age = Nanoseconds.zero
    /// The leader's own epoch.
    public var leaderEpoch: UInt64 = 0

    /// The other source: what this room and its neighbours hear at once.
    public var reference = ReferenceStatistics()

    /// When the latest exchange became a sample.
    public var lastAcceptedAt: LocalInstant?

    /// Of a clock that has asked nothing yet.
    public init() {}
}
