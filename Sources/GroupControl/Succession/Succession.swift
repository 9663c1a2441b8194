/// A room that can lead when the leader is lost, and where it would.
public struct Heir: Equatable, Sendable {
    /// As the group calls it.
    public var room: RoomID
    /// Of its machine, as the leader sees it; empty: the leader's own.
    public var host: String
    /// TCP port on which it answers who leads, and on which it would lead.
    public var port: UInt16

    /// A room that answers at `host`, on `port`.
    public init(room: RoomID, host: String, port: UInt16) {
        self.room = room
        self.host = host
        self.port = port
    }

    var place: NextLeader { NextLeader(name: room, host: host, port: port) }
}

/// What every room is told beforehand, to go on without its leader.
public struct Succession: Equatable, Sendable {
    /// Rooms that come next; with more, the others are not asked.
    public static let mostHeirs = 8
    /// Nodes that a leader remembers to miss.
    public static let mostMissed = 16

    /// In order: the first of them that is there leads.
    public var heirs: [Heir]
    /// Nodes of the session that the leader does not reach just now, and that may lead a part of the
    /// house.
    public var missed: [NextLeader]
    /// Of the leader that says so; see ``Precedence``.
    public var precedence: Precedence
    /// What the session lacks; its items are the whole queue.
    public var handover: Handover

    /// What a leader of this precedence would leave behind.
    public init(
        heirs: [Heir] = [], missed: [NextLeader] = [], precedence: Precedence,
        handover: Handover = Handover()
    ) {
        self.heirs = heirs
        self.missed = missed
        self.precedence = precedence
        self.handover = handover
    }
}

extension NextLeader {
    /// Where nobody but the machine that says so reaches it.
    var isLoopback: Bool { Self.isLoopback(host) }

    /// Whether a host, by name or number, can be the machine alone that says so.
    package static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }
}

/// Which of two leaders of one session goes on when they meet.
///
/// A leader that others followed when it took over has heard more of the house than one that found
/// itself alone: it wins. A healthy leader gives nothing up to one that was alone when it began.
public struct Precedence: Equatable, Comparable, Sendable {
    /// The latest term that began, or went on, in company.
    public var reign: UInt64
    /// Of its session: of two that began alone, the one before wins.
    public var term: UInt64

    /// Of the leader of `term`, who had company in the term `reign`.
    public init(reign: UInt64, term: UInt64) {
        self.reign = reign
        self.term = term
    }

    /// Whether `room`, which leads by this, goes on where it meets `other`, which leads by `rival`. Of
    /// two that both had company, as in two parts of a house, the one whose name comes first does.
    func wins(of room: RoomID, against rival: Precedence, of other: RoomID) -> Bool {
        self == rival ? room < other : rival < self
    }

    /// Whether the right one wins.
    public static func < (left: Precedence, right: Precedence) -> Bool {
        left.reign != right.reign ? left.reign < right.reign : left.term > right.term
    }
}

/// What a node knows of who leads; said to rooms that have lost their leader, and to leaders that
/// have lost rooms.
public struct LeadSight: Equatable, Sendable {
    /// Who leads, as far as it knows.
    public enum Lead: Equatable, Sendable {
        /// It does itself.
        case own(Precedence)
        /// This one, which it has heard just now; an empty host is that of who answers.
        case heard(NextLeader)
        /// It has lost its leader too, or has none.
        case none
    }

    /// The name of who answers.
    public var room: RoomID
    /// Which line of time its group is on; see ``Welcome/groupClockOrigin``. 0: it was in none.
    public var origin: UInt64
    /// Who leads there.
    public var lead: Lead

    /// The answer of `room`.
    public init(room: RoomID, origin: UInt64, lead: Lead) {
        self.room = room
        self.origin = origin
        self.lead = lead
    }
}

/// What a leader says of itself when it asks who leads: of two that meet, the one that does not go on
/// learns of the other, whoever asks.
public struct LeadClaim: Equatable, Sendable {
    /// As it would answer.
    public var sight: LeadSight
    /// TCP port on which it leads.
    public var port: UInt16

    /// A leader's.
    public init(sight: LeadSight, port: UInt16) {
        self.sight = sight
        self.port = port
    }
}

/// What came of asking somebody who leads.
public enum SightAnswer: Equatable, Sendable {
    case sight(LeadSight)
    /// Its machine is there, and nobody answers on that port: that node has ended.
    case refused
    /// Its machine takes connections, and the node says nothing: it stands still.
    case stalled
    /// Nobody answered in time.
    case silent
}
