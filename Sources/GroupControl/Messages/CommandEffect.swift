public import TuttiTiming

/// What a command did, as the leader has committed it.
public struct CommandEffect: Equatable, Sendable {
    /// What a room was told of how loud it shall be.
    public struct Loudness: Equatable, Sendable {
        /// The room as the group calls it.
        public var room: String
        /// Percent.
        public var volume: Int
        /// Whether it is silent whatever its volume is.
        public var isMuted: Bool

        /// What the room has from now on; `volume` in percent, 0 to 100.
        public init(room: String, volume: Int, isMuted: Bool) {
            self.room = room
            self.volume = volume
            self.isMuted = isMuted
        }
    }

    /// An answer does not wait longer for the rooms to prepare.
    public static let longestWait = Nanoseconds.seconds(2)

    /// Where the session stands after the command.
    public var phase: SessionPhase
    /// Of the item that the session is at; empty: none.
    public var title: String
    /// When the rooms begin to do what they were told, on the group clock; `nil` while they prepare,
    /// and where nothing plays.
    public var instant: GroupInstant?
    /// From the answer to the instant; negative when that is over.
    public var delay: Nanoseconds?
    /// Place in the item at the instant, or now where that is over, seconds; `nil` where nothing
    /// plays.
    public var positionSeconds: Double?
    /// The rooms that a command about loudness was for.
    public var rooms: [Loudness]
    /// Of the group, percent, after a command about it; the rooms keep theirs.
    public var groupVolume: Int?

    /// An effect; without the last four the command changed nothing that is heard at an instant.
    public init(
        phase: SessionPhase, title: String, instant: GroupInstant? = nil,
        delay: Nanoseconds? = nil, positionSeconds: Double? = nil, rooms: [Loudness] = [],
        groupVolume: Int? = nil
    ) {
        self.groupVolume = groupVolume
        self.phase = phase
        self.title = title
        self.instant = instant
        self.delay = delay
        self.positionSeconds = positionSeconds
        self.rooms = rooms
    }
}
