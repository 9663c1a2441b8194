/// What a person may ask of a group.
public enum GroupCommand: Equatable, Sendable {
    case play
    case pause
    /// To this position in the current item; clamped into the item.
    case seek(seconds: Double)
    /// By so much from where it is, or is going to be, when the leader hears of it; clamped.
    case seekBy(seconds: Double)
    /// To this share of the current item, 0…1.
    case seekTo(share: Double)
    /// How fast the group plays from now on, this item and those that follow; 1 is as recorded.
    case rate(Double)
    /// Percent, 0 to 100; all rooms when `room` is `nil`.
    case volume(room: RoomID?, percent: Int)
    /// Percent to add to what each room has, −100 to 100; clamped into 0 to 100.
    case volumeBy(room: RoomID?, percent: Int)
    /// All rooms when `room` is `nil`.
    case mute(room: RoomID?, muted: Bool)
    /// What the room plays of an item; `nil`: as its own settings have it.
    case role(room: RoomID, RoomRole?)
    /// The room plays earlier by as much, and remembers it.
    case latencyOffset(room: RoomID, LatencyOffset)
    case next
    /// To the beginning of the item, or, within its first seconds, to the item before it.
    case previous
    /// Silence in each room at once. The queue and the place in it stay: play begins that item
    /// anew.
    case stop
    /// The group is led by the node of this room from now on.
    case handOver(to: RoomID)
    /// The room plays in the group that is led there from now on; an empty host is this leader's.
    case move(room: RoomID, to: NextLeader)
    /// The room leads a group of its own from now on, with nothing in its queue.
    case separate(room: RoomID)
    case queue(QueueEdit)
}

/// The verdict on a command, at once.
public enum CommandOutcome: Equatable, Sendable {
    case accepted
    /// One sentence: why, and what to do instead.
    case refused(reason: String)
}

/// What a control client asks of a leader.
public enum ControlRequest: Equatable, Sendable {
    case command(GroupCommand)
    case status
    /// The status with every point of the rooms' histories.
    case syncStatus
    /// So many items of the queue from this position on.
    case queue(first: Int, count: Int)
    /// To put something into the queue.
    case add(QueueAddition)
    /// From a leader before, which goes on reading what it has put into the queue: the identities of
    /// the items that are to be read next; see `LeaderMachine.wanted(ahead:most:)`.
    case wanted(ahead: Int, most: Int)
    /// From a leader before: what it has read.
    case read([ReadItem])
    /// To be told of every change from now on, until the connection ends.
    case watch
    /// What the client's time requests are sealed with, for as long as this connection lives.
    case datagramKey
    /// Who leads, as the node knows it; asked by rooms and leaders that have lost each other, and by
    /// these with what they say themselves.
    case lead(claim: LeadClaim?)
}

/// What became of an item that was still to be read.
public struct ReadItem: Equatable, Sendable {
    /// What is known of an item once its bytes were looked at.
    public enum Outcome: Equatable, Sendable {
        case known(AssetDescriptor)
        case unplayable(reason: String)
    }

    /// Of one request; they fit a message to a leader.
    public static let mostTogether = 16

    /// Which entry of the queue it is about.
    public var id: QueueEntry.ID
    /// What was found.
    public var outcome: Outcome

    /// What became of the entry `id`.
    public init(id: QueueEntry.ID, outcome: Outcome) {
        self.id = id
        self.outcome = outcome
    }
}

/// What a leader answers; one reply for each request, in order. For a client that watches there is
/// ``event(_:)`` after ``event(_:)`` in between; ``ControlRequest/watch`` itself is answered by the
/// first of them.
public enum ControlReply: Equatable, Sendable {
    case done(CommandEffect)
    /// One sentence: why, and what to do instead.
    case refused(reason: String)
    case status(GroupStatus)
    case queue(QueueListing)
    case wanted([QueueEntry.ID])
    case event(GroupEvent)
    /// `nil`: datagrams carry no tags.
    case datagramKey(DatagramKey?)
    case lead(LeadSight)
}

/// The state of a group, one of a sequence.
///
/// Each is whole: who missed some, or connects again, goes on with the next one. The first of a
/// subscription is the present state.
public struct GroupEvent: Equatable, Sendable {
    /// Counts the states that this leader told anybody; the next one begins anew.
    public var sequence: UInt64
    /// The group as it was then; without the points of the rooms' histories.
    public var status: GroupStatus

    /// The state that was told as number `sequence`.
    public init(sequence: UInt64, status: GroupStatus) {
        self.sequence = sequence
        self.status = status
    }
}
