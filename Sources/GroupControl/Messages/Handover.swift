/// What a leader hands to the next one, besides the session that every room has: with both the group
/// goes on as if nothing had happened.
public struct Handover: Equatable, Sendable {
    /// Rooms whose settings are handed over: more are not there at a time.
    public static let mostSettings = LeaderMachine.mostMembers
    /// Addresses of one hand-over: the others are its items' names until their turn comes nearer.
    public static let mostAddresses = 500
    /// Bytes of all of them.
    public static let mostAddressBytes = 65_536

    /// What rooms were set to, by their names; at most ``mostSettings``.
    public var settings: [RoomID: RoomSettings]
    /// For rooms without settings of their own.
    public var commonSettings: RoomSettings
    /// What follows the last item, or each.
    public var repeats: RepeatMode
    /// Rooms with an output that will come: a start waits for so many.
    public var rooms: Int
    /// The whole queue in order: the known items, which the session has too, and those that the
    /// leader before goes on reading.
    public var items: [QueueListing.Item]
    /// How fast what starts plays, as ``GroupCommand/rate(_:)`` has it.
    public var rate: Double
    /// Where items come from that every machine can fetch, by their identities: those that are nearest to
    /// come, at most ``mostAddresses``, with ``mostAddressBytes`` together.
    public var addresses: [QueueEntry.ID: String]

    /// Which session it is: the same whoever leads it, also after a power cut, which begins the clock
    /// anew. 0: the leader before did not say.
    public var session: UInt64

    /// What a leader hands over; the defaults are those of a group that set nothing.
    public init(
        settings: [RoomID: RoomSettings] = [:], commonSettings: RoomSettings = .standard,
        repeats: RepeatMode = .off, rooms: Int = 1, items: [QueueListing.Item] = [],
        rate: Double = 1, session: UInt64 = 0, addresses: [QueueEntry.ID: String] = [:]
    ) {
        self.addresses = addresses
        self.session = session
        self.settings = settings
        self.commonSettings = commonSettings
        self.repeats = repeats
        self.rooms = rooms
        self.items = items
        self.rate = rate
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

    /// The name of the node that leads from now on.
    public var name: RoomID
    /// Empty: the host of the leader before.
    public var host: String
    /// TCP port of its control service.
    public var port: UInt16

    /// Why whoever led before does nothing any more; ``init(refusal:)`` finds the way there in it.
    package var refusal: String {
        "\"\(name)\"" + Self.leadsNow
            + (host.isEmpty ? "port \(port)" + Self.sameMachine : "\(host), port \(port)") + ")"
    }

    /// Who leads by now, from the refusal of the leader before; `nil` for any other.
    public init?(refusal: String) {
        guard refusal.hasPrefix("\""), refusal.hasSuffix(")"),
            let middle = refusal.ranges(of: "\"" + Self.leadsNow).last,
            let name = try? RoomID(String(refusal[..<middle.lowerBound].dropFirst()))
        else { return nil }
        let place = String(refusal[middle.upperBound...].dropLast())
        let here = "port "
        let there = ", port "
        if place.hasPrefix(here), place.hasSuffix(Self.sameMachine),
            let port = UInt16(place.dropFirst(here.count).dropLast(Self.sameMachine.count))
        {
            self.init(name: name, host: "", port: port)
        } else if let comma = place.ranges(of: there).last,
            let port = UInt16(place[comma.upperBound...])
        {
            self.init(name: name, host: String(place[..<comma.lowerBound]), port: port)
        } else {
            return nil
        }
    }

    /// Why nothing is done while a room is asked to lead: it lasts
    /// ``LeaderMachine/handoverLimit`` at most.
    static func refusal(before room: RoomID) -> String { "\"\(room)\"" + soon }

    /// Whether this is such a refusal.
    public static func isSoon(_ refusal: String) -> Bool {
        refusal.hasSuffix(soon) || refusal == stoodStill
    }

    /// Why nothing is done by a leader that has just woken.
    static let stoodStill =
        "this leader stood still, and does not know yet whether another leads by now; try again in a moment"

    private static let leadsNow = " leads this group now; ask there ("
    private static let sameMachine = " of this leader's machine"
    private static let soon = " is about to lead; try again in a moment"

    /// Where rooms turn to; an empty host is that of the leader before.
    public init(name: RoomID, host: String, port: UInt16) {
        self.name = name
        self.host = host
        self.port = port
    }
}
