public import TuttiTiming

/// One event that all rooms of a medium witness: a datagram on multicast.
///
/// Two-way exchange sees half of the difference of two directions as an error, and on the air it
/// changes by tens of µs. But a frame that an access point sends once arrives at all of its
/// stations within a fraction of a µs, whatever queues and contention it went through before. Each
/// room says what the group's time was, by its own reckoning, when it heard the frame; where two
/// rooms disagree, their reckonings do. (Reference broadcast synchronisation; Elson, Girod, Estrin
/// 2002.)
///
/// When it was sent does not matter, so it says only which one it is.
public struct ReferenceBeacon: Equatable, Sendable {
    /// The leader's, as in its replies.
    public var epoch: UInt64
    /// Counts up, for each medium by itself.
    public var number: UInt32

    /// The beacon of that number, of a leader's line of time.
    public init(epoch: UInt64, number: UInt32) {
        self.epoch = epoch
        self.number = number
    }
}

/// What a room says of the beacons it heard, with each of its time requests.
public struct ReferenceReport: Equatable, Sendable {
    /// Beacons that a report has room for. At ten a second and eight requests a second each is told
    /// six times, so that a lost request loses nothing.
    public static let beaconLimit = 8

    /// The epoch of the beacons; zero before the first.
    public var epoch: UInt64
    /// The group's time at the request's `t1`, by two-way exchange alone: with a correction in it,
    /// rooms would correct each other's corrections.
    public var reading: GroupInstant
    /// Group clock against the room's own, minus one, in units of 1e-12.
    public var skewTrillionths: Int32
    /// What the room expects its error to be.
    public var expectedError: Nanoseconds
    /// The newest beacon heard.
    public var newest: UInt32
    /// How long before `t1` the beacon `newest − k` arrived, nanoseconds; zero: not heard, or too
    /// long ago.
    public var ages: SIMD8<UInt32>

    /// What a room tells of its line and of the beacons it heard; without the last two: of none.
    public init(
        epoch: UInt64, reading: GroupInstant, skewTrillionths: Int32, expectedError: Nanoseconds,
        newest: UInt32 = 0, ages: SIMD8<UInt32> = .zero
    ) {
        self.epoch = epoch
        self.reading = reading
        self.skewTrillionths = skewTrillionths
        self.expectedError = expectedError
        self.newest = newest
        self.ages = ages
    }
}

/// Whether a room's clock is corrected by reference broadcasts, or why not.
public enum ReferenceState: UInt8, Sendable, CaseIterable, CustomStringConvertible {
    /// Not wanted by the room's settings.
    case off = 0
    /// The room's interface takes no multicast.
    case noMulticast = 1
    /// Nobody but this room asks the leader for them on this medium.
    case alone = 2
    /// Asked for, and none arrives.
    case notHeard = 3
    /// Heard, and not yet often enough to compare.
    case gathering = 4
    /// Other rooms hear them at other times: each gets a packet of its own, or hangs on another
    /// access point.
    case scattered = 5
    /// The rooms hear them together but for an offset that stays, which may be the packets' own.
    case standingOffset = 6
    case inUse = 7
    /// The room's two-way line is sure enough by itself, as on wires.
    case unneeded = 8

    /// The state in a person's words; see the cases for what it means.
    public var description: String {
        switch self {
        case .off: "off"
        case .noMulticast: "no multicast"
        case .alone: "alone"
        case .notHeard: "not heard"
        case .gathering: "gathering"
        case .scattered: "scattered"
        case .standingOffset: "standing offset"
        case .inUse: "in use"
        case .unneeded: "not needed"
        }
    }
}

/// What the leader makes of all rooms' reports, for one of them.
public struct ReferenceVerdict: Equatable, Sendable {
    /// Whether the room's clock is corrected, or why not.
    public var state: ReferenceState
    /// Rooms that hear the same packets, this one included.
    public var rooms: Int
    /// To be added to the room's two-way line, to be where the rooms are on average; of that
    /// moment's request.
    public var correction: Nanoseconds
    /// How much of it is worth going, 0 to 1: the more, the surer it is and the less the room's own
    /// line is.
    public var share: Double
    /// Standard deviation of ``correction``.
    public var noise: Nanoseconds
    /// Median deviation of the times at which two rooms hear a packet: of its own rooms, or, where
    /// it has none, of the nearest other.
    public var spread: Nanoseconds

    /// A verdict; one with a state alone corrects nothing.
    public init(
        state: ReferenceState, rooms: Int = 0, correction: Nanoseconds = .zero,
        share: Double = 0, noise: Nanoseconds = .zero, spread: Nanoseconds = .zero
    ) {
        self.state = state
        self.rooms = rooms
        self.correction = correction
        self.share = share
        self.noise = noise
        self.spread = spread
    }
}

/// How a room fares with reference broadcasts, for its status.
public struct ReferenceStatistics: Equatable, Sendable {
    /// Whether the clock is corrected, or why not.
    public var state = ReferenceState.off
    /// Rooms that hear the same packets, this one included.
    public var rooms = 0
    /// Median deviation of the times at which two rooms hear a packet; see
    /// ``ReferenceVerdict/spread``.
    public var spread = Nanoseconds.zero
    /// The correction that is in force in the published line.
    public var correction = Nanoseconds.zero
    /// Standard deviation of what is corrected to.
    public var noise = Nanoseconds.zero
    /// Beacons heard.
    public var heard = 0

    /// Of a room that has heard nothing yet.
    public init() {}
}
