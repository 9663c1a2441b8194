import Timing

/// One room, as shown to a person.
public struct RoomStatus: Codable, Equatable, Sendable {
    public var name: String
    public var state: RoomActivity
    public var bufferSeconds: Double
    /// Estimate of the group clock minus the line that is played by.
    public var clockOffsetMicroseconds: Double
    public var clockBoundMicroseconds: Double
    /// `nil` before the first measurement.
    public var roundTripMicroseconds: Double?
    public var stamps: String
    public var cardPartsPerMillion: Double
    public var ratioPartsPerMillion: Double
    /// Positive: the room is late.
    public var errorMicroseconds: Double
    public var volume: Int
    public var muted: Bool
    public var dropouts: Int
    public var restarts: Int
    public var detail: String

    public init(name: String, report: RoomReport, settings: RoomSettings) {
        self.name = name
        state = report.activity
        bufferSeconds = report.bufferSeconds
        clockOffsetMicroseconds = report.clockDeviation.microseconds
        clockBoundMicroseconds = report.clockBound.microseconds
        roundTripMicroseconds = report.roundTrip?.microseconds
        stamps = report.stamps
        cardPartsPerMillion = report.cardPartsPerMillion
        ratioPartsPerMillion = report.ratioPartsPerMillion
        errorMicroseconds = report.error.microseconds
        volume = settings.volume
        muted = settings.muted
        dropouts = report.dropouts
        restarts = report.restarts
        detail = report.detail
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
    /// Sorted by name.
    public var rooms: [RoomStatus]

    public init(
        leader: String, phase: SessionPhase, title: String, index: Int, count: Int,
        positionSeconds: Double, durationSeconds: Double, rate: Double, rooms: [RoomStatus]
    ) {
        self.leader = leader
        self.phase = phase
        self.title = title
        self.index = index
        self.count = count
        self.positionSeconds = positionSeconds
        self.durationSeconds = durationSeconds
        self.rate = rate
        self.rooms = rooms
    }
}
