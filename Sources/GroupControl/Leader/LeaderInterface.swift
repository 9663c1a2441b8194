package import TuttiTiming

/// What a leader is told when it is made.
package struct LeaderConfiguration: Equatable, Sendable {
    /// Shown to rooms and people.
    package var name: String
    package var queue: [AssetDescriptor]
    /// Items that are still being read; each joins the end of the queue when it is known.
    package var coming: Int
    /// The first start waits until this many rooms with an output have answered, ready
    /// or not; 0 starts at once.
    package var roomsToWaitFor: Int
    /// After the last item the first follows.
    package var loops: Bool
    /// Higher than every term before it; from the shell.
    package var term: UInt64
    package var groupClockEpoch: UInt64
    /// See ``Welcome/groupClockOrigin``.
    package var groupClockOrigin: UInt64
    /// See ``Handover/session``.
    package var session: UInt64
    /// See ``Precedence``; `nil`: this term.
    package var reign: UInt64?
    /// Of the hello of the leader's own room, for which its name is kept; `nil`: it has none.
    package var ownInstance: UInt64?
    /// Which crystal the group clock is, told to rooms.
    package var crystal: CrystalID
    /// UDP port of the clock, told to rooms.
    package var timePort: UInt16
    /// TCP port of the media service, told to rooms.
    package var mediaPort: UInt16
    /// How long a start by hand, a seek or the next item waits for rooms that are still preparing;
    /// who is not ready by then joins late.
    package var preparationLimit: Nanoseconds
    /// How long the first start does, once ``roomsToWaitFor`` have answered, also after a seek
    /// before it: longer than a room measures the clock over a bad path before it says ready.
    package var firstStartLimit: Nanoseconds

    package init(
        name: String, queue: [AssetDescriptor], coming: Int = 0, roomsToWaitFor: Int = 1,
        loops: Bool = false,
        term: UInt64, groupClockEpoch: UInt64, timePort: UInt16, mediaPort: UInt16,
        preparationLimit: Nanoseconds = .seconds(5), firstStartLimit: Nanoseconds = .seconds(14),
        crystal: CrystalID = .unknown, ownInstance: UInt64? = nil,
        groupClockOrigin: UInt64? = nil, reign: UInt64? = nil, session: UInt64? = nil
    ) {
        self.session = session ?? groupClockOrigin ?? groupClockEpoch
        self.reign = reign
        self.name = name.limited(toBytes: RoomID.longestBytes)
        self.queue = queue
        self.coming = max(0, coming)
        self.roomsToWaitFor = roomsToWaitFor
        self.loops = loops
        self.term = term
        self.groupClockEpoch = groupClockEpoch
        self.groupClockOrigin = groupClockOrigin ?? groupClockEpoch
        self.crystal = crystal
        self.ownInstance = ownInstance
        self.timePort = timePort
        self.mediaPort = mediaPort
        self.preparationLimit = preparationLimit
        self.firstStartLimit = firstStartLimit
    }
}

/// What happens to a leader.
package enum LeaderInput: Equatable, Sendable {
    case received(RoomToLeader, from: LinkID)
    /// A link is up; `host` is where others reach what is at its other end, empty on the leader's own
    /// machine.
    case linked(LinkID, host: String)
    case closed(LinkID)
    /// These are known now and follow what was known; so many more are still being read.
    case described([AssetDescriptor], coming: Int)
    /// These are to be read, and stand at this place of the queue; so many more are being looked for.
    case listed([QueueEntry], at: QueuePlace, coming: Int)
    /// An item has been read, and is this.
    case read(QueueEntry.ID, as: AssetDescriptor)
    /// An item cannot be played.
    case unplayable(QueueEntry.ID, reason: String)
    /// The machine that has the bytes of these items is away: the group goes on without them, and
    /// comes back to them when it is there again.
    case absent([QueueEntry.ID], reason: String)
    /// What had these bytes has them no more.
    ///
    /// - Parameter of: the items that are meant: other files may have the same bytes; `nil`: all.
    case changed(ContentHash, of: Set<QueueEntry.ID>? = nil, to: ItemChange)
    /// What a node has answered that was asked with ``LeaderEffect/askWhoLeads(_:)``.
    case sight(LeadSight, of: NextLeader)
}

/// What an item has become whose bytes are others now.
package enum ItemChange: Equatable, Sendable {
    /// This one stands in its place.
    case other(AssetDescriptor)
    case unplayable(reason: String)
}

/// What the shell does for the leader, in order.
package enum LeaderEffect: Equatable, Sendable {
    case send(LeaderToRoom, to: LinkID)
    /// Say it as a datagram too, at once and once more a moment later, to this port of the room at
    /// the other end of the link; may be lost.
    case notify(CommitDatagram, port: UInt16, of: LinkID)
    /// End the link after what was sent has left; nothing more will be said on it.
    case close(LinkID)
    /// The queue has been played to its end. The session stays: play begins again.
    case ended
    /// These items are in the queue no more.
    case removed([QueueEntry.ID])
    /// The session goes on without an item, for the reason that the first of its rooms gives.
    case skipped(AssetDescriptor, reason: String)
    /// For the leader's log.
    case news(RoomNews, of: RoomID)
    /// The room at the other end of the link leads, on this port: say where that is with
    /// ``LeaderMachine/handedOver(to:)``.
    case handOver(to: RoomID, port: UInt16, at: LinkID)
    /// Another leads the session already, and goes before this one: the same as for a room that leads.
    case yield(to: NextLeader)
    /// Ask these who leads; who answers is told of with ``LeaderInput/sight(_:of:)``.
    case askWhoLeads([NextLeader])
}

/// What happened to a room, as far as its group is concerned.
package enum RoomNews: Equatable, Sendable {
    case joined
    /// It joined, and its name was taken.
    case renamed(from: RoomID)
    /// Said goodbye, or its link ended.
    case left
    /// Not heard for a while; the group goes on without it.
    case lost
    case heardAgain
    /// Cannot play an item.
    case failed(reason: String)
    /// Its bound rose above its target, or fell below.
    case alarm(Bool, bound: Nanoseconds)
    /// What leaves its card is not what was committed, or is again.
    case line(LineFinding)
    /// Its card has gone, or was not there; or is there again.
    case card(isLost: Bool)
    /// Was waited for in vain, and is not again until it answers.
    case missing
    /// Its hello was not accepted.
    case refused(reason: String)
    /// It leads from now on, as it was asked to.
    case leads
    /// It was asked to lead and does not.
    case declined(reason: String)
    /// It leads the same session, and goes before this leader.
    case yielded(to: RoomID)
    /// It was sent to another group, or to lead one of its own.
    case moved(to: RoomID)

    /// What a flood is counted by.
    var kind: Int {
        switch self {
        case .joined: 0
        case .left: 1
        case .lost: 2
        case .heardAgain: 3
        case .failed: 4
        case .alarm(let isRaised, _): isRaised ? 5 : 6
        case .renamed: 11
        case .line(let finding): finding.isAlarm ? 7 : 8
        case .missing: 9
        case .refused: 10
        case .leads: 12
        case .declined: 13
        case .yielded: 14
        case .moved: 15
        case .card(let isLost): isLost ? 16 : 17
        }
    }
}

/// Lets news of each kind pass once a second, and refusals once a minute: a room that says the same
/// again and again fills no log.
package struct NewsFilter: Sendable {
    /// Of all kinds and rooms together.
    static let most = 64
    static let interval = Nanoseconds.seconds(1)
    /// A room that was refused asks again every two seconds.
    static let refusalInterval = Nanoseconds.seconds(60)

    private struct Key: Hashable {
        var room: RoomID
        var kind: Int
    }
    private var last: [Key: GroupInstant] = [:]

    package init() {}

    package mutating func admits(_ news: RoomNews, of room: RoomID, at now: GroupInstant) -> Bool {
        let key = Key(room: room, kind: news.kind)
        let refused = RoomNews.refused(reason: "").kind
        last = last.filter {
            now - $0.value < ($0.key.kind == refused ? Self.refusalInterval : Self.interval)
        }
        guard last.count < Self.most, last[key] == nil else { return false }
        last[key] = now
        return true
    }
}
