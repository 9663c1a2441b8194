public import TuttiTiming

/// One room, as shown to a person.
public struct RoomStatus: Codable, Equatable, Sendable {
    /// The room as the group calls it.
    public var name: String
    /// What it is doing.
    public var state: RoomActivity
    /// Decoded audio in hand, seconds.
    public var bufferSeconds: Double
    /// Estimate of the group clock minus the line that is played by; `nil` without an estimate.
    public var clockOffsetMicroseconds: Double?
    /// Half width of the interval that contains the group clock, µs; `nil` without an estimate.
    public var clockBoundMicroseconds: Double?
    /// `nil` before the first measurement.
    public var roundTripMicroseconds: Double?
    /// Who takes the time stamps: the weaker end of the exchange.
    public var stamps: StampKind
    /// The card's crystal against the room's clock; positive: the card runs fast.
    public var cardPartsPerMillion: Double
    /// The correction that the resampler has in force.
    public var ratioPartsPerMillion: Double
    /// Positive: the room is late; `nil` where nobody knows.
    public var errorMicroseconds: Double?
    /// Percent, 0 to 100.
    public var volume: Int
    /// Whether it is silent whatever its volume is.
    public var muted: Bool
    /// What it plays of an item; `nil`: as its own settings have it.
    public var role: RoomRole?
    /// Times that decoded audio ran out while a voice sounded.
    public var dropouts: Int
    /// Times that the card ran dry, or broke off, and was started again.
    public var xruns: Int
    /// What is wrong, or what it waits for, for people; mostly empty.
    public var detail: String
    /// Of the room's lockstep; `nil` before its first report.
    public var sync: SyncStatus?

    /// A room as it said itself, without what the report's age and the history tell: ``sync`` is
    /// `nil`.
    public init(name: String, report: RoomReport, settings: RoomSettings) {
        self.name = name
        state = report.activity
        bufferSeconds = report.bufferSeconds
        roundTripMicroseconds = report.roundTrip?.microseconds
        stamps = report.stamps
        cardPartsPerMillion = report.cardPartsPerMillion
        ratioPartsPerMillion = report.ratioPartsPerMillion
        volume = settings.volume
        muted = settings.muted
        role = settings.role
        dropouts = report.dropouts
        xruns = report.xruns
        detail = report.detail
    }

    /// - Parameters:
    ///   - reportedAt: when the report came.
    ///   - history: of this room.
    ///   - hasPoints: whether every point of the history is told.
    public init(
        name: String, report: RoomReport, settings: RoomSettings, reportedAt: GroupInstant,
        history: SyncHistory, at now: GroupInstant, hasPoints: Bool
    ) {
        self.init(name: name, report: report, settings: settings)
        let sync = SyncStatus(
            report, age: max(.zero, now - reportedAt),
            history: .init(history, at: now, hasPoints: hasPoints))
        if sync.parts.errorMicroseconds != nil { errorMicroseconds = report.error.microseconds }
        if sync.parts.clockMicroseconds != nil {
            clockOffsetMicroseconds = report.clockDeviation.microseconds
            clockBoundMicroseconds = report.clockBound.microseconds
        }
        self.sync = sync
    }
}

/// A group, as shown to a person; the JSON of `tutti status --json`.
public struct GroupStatus: Codable, Equatable, Sendable {
    /// The leader's name.
    public var leader: String
    /// Where the session stands.
    public var phase: SessionPhase
    /// Title of the current item; empty: none.
    public var title: String
    /// Place of the current item, from 0.
    public var index: Int
    /// Items in the queue.
    public var count: Int
    /// Place in the current item, seconds.
    public var positionSeconds: Double
    /// Length of the current item, seconds.
    public var durationSeconds: Double
    /// Item time per group time of the line in force; 0 is paused.
    public var rate: Double
    /// Of the item, frames per second; a card that has another rate is resampled for.
    public var sampleRate: Int?
    /// Which session it is, hexadecimal: the same whoever leads it, also after a power cut.
    public var session: String
    /// The term in which something last happened to it: the later one knows more of it.
    public var sessionTerm: UInt64
    /// Of the group, percent, 0 to 100; a room is as loud as this and its own together say.
    public var volume: Int
    /// What follows the last item, or each.
    public var repeats: RepeatMode
    /// Counts the changes of the queue under one leader, where a listing of another revision is out
    /// of date; the next leader begins anew.
    public var queueRevision: UInt64
    /// What is wrong with the group as a whole, for people; mostly empty.
    public var detail: String?
    /// Datagrams that the leader did not let in; `nil`: there were none.
    public var dropped: DatagramDrops?
    /// Sorted by name.
    public var rooms: [RoomStatus]

    /// A status as a leader tells it.
    public init(
        leader: String, phase: SessionPhase, title: String, index: Int, count: Int,
        positionSeconds: Double, durationSeconds: Double, rate: Double, sampleRate: Int? = nil,
        repeats: RepeatMode = .off, queueRevision: UInt64 = 0, detail: String? = nil,
        dropped: DatagramDrops? = nil, volume: Int = 100, session: String = "",
        sessionTerm: UInt64 = 0, rooms: [RoomStatus]
    ) {
        self.session = session
        self.sessionTerm = sessionTerm
        self.volume = volume
        self.leader = leader
        self.phase = phase
        self.title = title
        self.index = index
        self.count = count
        self.positionSeconds = positionSeconds
        self.durationSeconds = durationSeconds
        self.rate = rate
        self.sampleRate = sampleRate
        self.repeats = repeats
        self.queueRevision = queueRevision
        self.detail = detail
        self.dropped = dropped
        self.rooms = rooms
    }
}

extension GroupStatus {
    /// The same a little later, while nobody says anything else.
    public mutating func advance(by seconds: Double) {
        guard phase == .playing, rate > 0, seconds > 0 else { return }
        positionSeconds = min(durationSeconds, positionSeconds + seconds * rate)
    }
}

extension GroupStatus {
    /// Bytes of ``session``.
    package static let longestSession = 16

    /// A session's number as ``session`` has it.
    package static func text(of session: UInt64) -> String {
        String(session, radix: 16)
    }
}
