public import TuttiTiming

/// What a room is doing, as a word for its owner.
public enum RoomActivity: String, CaseIterable, Codable, Sendable {
    /// Looking for the group, or for its clock.
    case joining
    /// In the group, with nothing to play.
    case idle
    /// Loading the bytes of an item.
    case fetching
    /// Decoding ahead for a start.
    case prerolling
    /// Could start at once.
    case ready
    case playing
    case paused
    /// Could not prepare; the detail says why.
    case failed
    /// Has not been heard for a while. Said by the leader, not by the room.
    case lost
    /// Takes part without a loudspeaker.
    case noOutput
    /// The card is gone, and is looked for; the detail says how.
    case cardLost

    /// Whether the room sounds, or would at an instant: then its bound is a promise.
    var canPromise: Bool {
        switch self {
        case .idle, .ready, .playing, .paused: true
        case .joining, .fetching, .prerolling, .failed, .lost, .noOutput, .cardLost: false
        }
    }
}

/// How a room is doing, told once a second, and when it does something else.
///
/// Values a person reads; numbers that are not finite become 0 and long texts are cut, so that a
/// status can always be shown.
public struct RoomReport: Equatable, Sendable {
    /// Longest text in a report, bytes of UTF-8.
    public static let longestText = 200

    /// What the room is doing.
    public var activity: RoomActivity
    /// Decoded audio in hand, seconds.
    public var bufferSeconds: Double
    /// Estimate of the group clock minus the line that is played by: what is still leaned away.
    public var clockDeviation: Nanoseconds
    /// Half width of the interval that contains the group clock.
    public var clockBound: Nanoseconds
    /// To the leader and back, as measured by the clock exchange; `nil` before the first.
    public var roundTrip: Nanoseconds?
    /// Who takes the time stamps: the weaker end of the exchange.
    public var stamps: StampKind
    /// The card's crystal against the local clock; positive: the card runs fast.
    public var cardPartsPerMillion: Double
    /// The correction in force in the resampler.
    public var ratioPartsPerMillion: Double
    /// Audible position against the line that the leader committed; positive: we are late.
    public var error: Nanoseconds
    /// Times that a sounding voice ran dry, as seen at each report.
    public var dropouts: Int
    /// Times that the card ran dry, or broke off, and was started again.
    public var xruns: Int
    /// What is wrong, or what it waits for, for people; at most ``longestText`` bytes, mostly
    /// empty.
    public var detail: String
    /// What leaves the card, against what the leader committed.
    public var line: LineFinding
    /// The card is gone. Told as ``RoomActivity/cardLost``.
    public var isCardLost = false
    /// What the room promises of its lockstep, and why.
    public var sync: SyncReport

    /// A report; numbers that are not finite become 0, and long texts are cut.
    public init(
        activity: RoomActivity = .joining, bufferSeconds: Double = 0,
        clockDeviation: Nanoseconds = .zero, clockBound: Nanoseconds = .zero,
        roundTrip: Nanoseconds? = nil, stamps: StampKind = .absent, cardPartsPerMillion: Double = 0,
        ratioPartsPerMillion: Double = 0, error: Nanoseconds = .zero, dropouts: Int = 0,
        xruns: Int = 0, detail: String = "", line: LineFinding = .nothing,
        sync: SyncReport = SyncReport()
    ) {
        self.activity = activity
        self.bufferSeconds = bufferSeconds.isFinite ? bufferSeconds : 0
        self.clockDeviation = clockDeviation
        self.clockBound = clockBound
        self.roundTrip = roundTrip
        self.stamps = stamps
        self.cardPartsPerMillion = cardPartsPerMillion.isFinite ? cardPartsPerMillion : 0
        self.ratioPartsPerMillion = ratioPartsPerMillion.isFinite ? ratioPartsPerMillion : 0
        self.error = error
        self.dropouts = max(0, dropouts)
        self.xruns = max(0, xruns)
        self.detail = detail.limited(toBytes: Self.longestText)
        self.line = line
        self.sync = sync
    }
}
