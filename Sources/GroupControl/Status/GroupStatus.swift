public import Timing

/// One room, as shown to a person.
public struct RoomStatus: Codable, Equatable, Sendable {
    public var name: String
    public var state: RoomActivity
    public var bufferSeconds: Double
    /// Estimate of the group clock minus the line that is played by; `nil` without an estimate.
    public var clockOffsetMicroseconds: Double?
    public var clockBoundMicroseconds: Double?
    /// `nil` before the first measurement.
    public var roundTripMicroseconds: Double?
    public var stamps: StampKind
    public var cardPartsPerMillion: Double
    public var ratioPartsPerMillion: Double
    /// Positive: the room is late; `nil` where nobody knows.
    public var errorMicroseconds: Double?
    public var volume: Int
    public var muted: Bool
    /// Times that decoded audio ran out while a voice sounded.
    public var dropouts: Int
    /// Times that the card ran dry, or broke off, and was started again.
    public var xruns: Int
    public var detail: String
    /// Of the room's lockstep; `nil` before its first report.
    public var sync: SyncStatus?

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
    public var leader: String
    public var phase: SessionPhase
    public var title: String
    /// Place of the current item, from 0.
    public var index: Int
    public var count: Int
    public var positionSeconds: Double
    public var durationSeconds: Double
    public var rate: Double
    /// Of the item, frames per second; a card that has another rate is resampled for.
    public var sampleRate: Int?
    /// What follows the last item, or each.
    public var repeats: RepeatMode
    /// Counts the changes of the queue: a listing of another revision is out of date.
    public var queueRevision: UInt64
    /// What is wrong with the group as a whole, for people; mostly empty.
    public var detail: String?
    /// Sorted by name.
    public var rooms: [RoomStatus]

    public init(
        leader: String, phase: SessionPhase, title: String, index: Int, count: Int,
        positionSeconds: Double, durationSeconds: Double, rate: Double, sampleRate: Int? = nil,
        repeats: RepeatMode = .off, queueRevision: UInt64 = 0, detail: String? = nil,
        rooms: [RoomStatus]
    ) {
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
