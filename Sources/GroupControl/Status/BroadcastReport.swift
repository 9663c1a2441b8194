public import TuttiTiming

/// How a room's clock fares with reference broadcasts: packets that several rooms hear at once,
/// from which the leader sees how far their clocks are apart.
public struct BroadcastReport: Equatable, Sendable {
    /// Whether the clock is corrected, or why not.
    public var state: BroadcastState
    /// Rooms that hear the same packets, this one included.
    public var rooms: Int
    /// Median deviation of the times at which two rooms hear a packet.
    public var spread: Nanoseconds
    /// In force in the room's clock; positive: it was set later than two-way exchange says.
    public var correction: Nanoseconds
    /// Standard deviation of what is corrected to.
    public var noise: Nanoseconds

    /// A report; a negative number of rooms counts as none.
    public init(
        state: BroadcastState = .absent, rooms: Int = 0, spread: Nanoseconds = .zero,
        correction: Nanoseconds = .zero, noise: Nanoseconds = .zero
    ) {
        self.state = state
        self.rooms = max(0, rooms)
        self.spread = spread
        self.correction = correction
        self.noise = noise
    }
}

/// The same, as shown to a person.
public struct BroadcastStatus: Codable, Equatable, Sendable {
    /// Whether the clock is corrected, or why not.
    public var state = BroadcastState.absent
    /// Rooms that hear the same packets, this one included.
    public var rooms = 0
    /// Median deviation of the times at which two rooms hear a packet, µs.
    public var spreadMicroseconds = 0.0
    /// In force in the room's clock, µs; positive: it was set later than two-way exchange says.
    public var correctionMicroseconds = 0.0
    /// Standard deviation of what is corrected to, µs.
    public var noiseMicroseconds = 0.0

    /// Nothing known; for a message to fill in.
    public init() {}

    init(_ report: BroadcastReport) {
        state = report.state
        rooms = report.rooms
        spreadMicroseconds = report.spread.microseconds
        correctionMicroseconds = report.correction.microseconds
        noiseMicroseconds = report.noise.microseconds
    }
}
