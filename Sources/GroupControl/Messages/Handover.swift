/// What a leader hands to the next one, besides the session that every room has: with both the group
/// goes on as if nothing had happened.
public struct Handover: Equatable, Sendable {
    /// Rooms whose settings are handed over: more are not there at a time.
    public static let mostSettings = LeaderMachine.mostMembers

    public var settings: [RoomID: RoomSettings]
    /// For rooms without settings of their own.
    public var commonSettings: RoomSettings
    public var repeats: RepeatMode
    /// Rooms with an output that will come: a start waits for so many.
    public var rooms: Int
    /// The whole queue in order: the known items, which the session has too, and those that the
    /// leader before goes on reading.
    public var items: [QueueListing.Item]

    public init(
        settings: [RoomID: RoomSettings] = [:], commonSettings: RoomSettings = .standard,
        repeats: RepeatMode = .off, rooms: Int = 1, items: [QueueListing.Item] = []
    ) {
        self.settings = settings
        self.commonSettings = commonSettings
        self.repeats = repeats
        self.rooms = rooms
        self.items = items
    }
}

/// A room's answer to being asked to lead.
public enum LeadAnswer: Equatable, Sendable {
    /// It does, on this TCP port.
    case leads(port: UInt16)
    case cannot(reason: String)
}

/// Where the group is led from now on.
public struct NextLeader: Equatable, Sendable {
    /// Bytes of a host's name or address.
    public static let longestHost = 255

    public var name: RoomID
    /// Empty: the host of the leader before.
    public var host: String
    public var port: UInt16

    public init(name: RoomID, host: String, port: UInt16) {
        self.name = name
        self.host = host
        self.port = port
    }
}
