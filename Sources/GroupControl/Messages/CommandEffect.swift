public import Timing

/// What a command did, as the leader has committed it.
public struct CommandEffect: Equatable, Sendable {
    /// What a room was told of how loud it shall be.
    public struct Loudness: Equatable, Sendable {
        public var room: String
        /// Percent.
        public var volume: Int
        public var isMuted: Bool

        public init(room: String, volume: Int, isMuted: Bool) {
            self.room = room
            self.volume = volume
            self.isMuted = isMuted
        }
    }

    /// An answer does not wait longer for the rooms to prepare.
    public static let longestWait = Nanoseconds.seconds(2)

    public var phase: SessionPhase
    /// Of the item that the session is at; empty: none.
    public var title: String
    /// When the rooms begin to do what they were told, on the group clock; `nil` while they prepare,
    /// and where nothing plays.
    public var instant: GroupInstant?
    /// From the answer to the instant; negative when that is over.
    public var delay: Nanoseconds?
    /// Place in the item at the instant, seconds; `nil` where nothing plays.
    public var positionSeconds: Double?
    /// The rooms that a command about loudness was for.
    public var rooms: [Loudness]

    public init(
        phase: SessionPhase, title: String, instant: GroupInstant? = nil,
        delay: Nanoseconds? = nil, positionSeconds: Double? = nil, rooms: [Loudness] = []
    ) {
        self.phase = phase
        self.title = title
        self.instant = instant
        self.delay = delay
        self.positionSeconds = positionSeconds
        self.rooms = rooms
    }
}
