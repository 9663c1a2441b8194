public import TuttiTiming

/// Version of the messages below. Nodes of different versions do not play together.
public let protocolVersion: UInt32 = 9

/// One connection of a leader to a room; numbered by the shell, never used twice.
public typealias LinkID = Int

/// The first thing a room says.
public struct Hello: Equatable, Sendable {
    /// The protocol that it speaks, as ``protocolVersion``; a leader of another one refuses it.
    public var version: UInt32
    /// The name by which the group knows the room.
    public var room: RoomID
    /// Random, and the same after a restart where something can be kept: tells a room that comes
    /// back from a second one of the same name.
    public var instance: UInt64
    /// From handing a frame to the output until it is audible.
    public var outputLatency: Nanoseconds
    /// False for a node that only watches and controls.
    public var hasOutput: Bool
    /// UDP port of the room that takes a ``CommitDatagram``; 0 when it takes none.
    public var noticePort: UInt16
    /// TCP port on which its node says who leads and hands out what it has fetched; 0 when it does not.
    public var doorPort: UInt16
    /// Whether its node leads there when the leader is lost.
    public var mayLead: Bool
    /// How loud it is just now, and what it plays: for a leader that has not had this room. `nil`: nobody
    /// has said since it began.
    public var settings: RoomSettings?

    /// A room's hello; without a notice port it takes commits by its connection alone.
    public init(
        version: UInt32 = protocolVersion, room: RoomID, instance: UInt64,
        outputLatency: Nanoseconds, hasOutput: Bool, noticePort: UInt16 = 0,
        doorPort: UInt16 = 0, mayLead: Bool = false, settings: RoomSettings? = nil
    ) {
        self.version = version
        self.room = room
        self.instance = instance
        self.outputLatency = outputLatency
        self.hasOutput = hasOutput
        self.noticePort = noticePort
        self.doorPort = doorPort
        self.mayLead = mayLead
        self.settings = settings
    }

    var canLead: Bool { mayLead && doorPort != 0 }
}

/// What a room tells its leader.
public enum RoomToLeader: Equatable, Sendable {
    case hello(Hello)
    /// The preparation is done; the latency is the output's at this moment.
    case ready(preparation: UInt64, latency: Nanoseconds)
    /// The preparation failed, or is not known here.
    case notReady(preparation: UInt64, reason: String)
    case report(RoomReport)
    /// Whether it leads, as it was asked to.
    case lead(LeadAnswer)
    /// The room leaves on purpose.
    case goodbye
}

/// The leader's answer to a ``Hello``.
public struct Welcome: Equatable, Sendable {
    /// The protocol that the leader speaks.
    public var version: UInt32
    /// The leader's name, for people.
    public var leaderName: String
    /// UDP port of the clock on the leader's address.
    public var timePort: UInt16
    /// TCP port of the media service on the leader's address.
    public var mediaPort: UInt16
    /// Number of the leader's session; the highest that a room has heard counts.
    public var term: UInt64
    /// What the leader's time service calls its clock: each leader's is another crystal.
    public var groupClockEpoch: UInt64
    /// The epoch of the leader that began the group clock. Whoever continues it says the same; another
    /// origin is another line of time.
    public var groupClockOrigin: UInt64
    /// Which machine's crystal the group clock is.
    public var crystal: CrystalID
    /// What the group calls this room, where its own name is taken.
    public var room: RoomID?
    /// What the room's datagrams are sealed with; `nil`: they carry no tags.
    public var datagramKey: DatagramKey?

    /// An answer; without an origin the group clock begins with this leader's epoch.
    public init(
        version: UInt32 = protocolVersion, leaderName: String, timePort: UInt16,
        mediaPort: UInt16, term: UInt64, groupClockEpoch: UInt64,
        groupClockOrigin: UInt64? = nil, crystal: CrystalID = .unknown, room: RoomID? = nil,
        datagramKey: DatagramKey? = nil
    ) {
        self.version = version
        self.groupClockOrigin = groupClockOrigin ?? groupClockEpoch
        self.leaderName = leaderName.limited(toBytes: RoomID.longestBytes)
        self.timePort = timePort
        self.mediaPort = mediaPort
        self.term = term
        self.groupClockEpoch = groupClockEpoch
        self.crystal = crystal
        self.room = room
        self.datagramKey = datagramKey
    }
}

/// Names the crystal behind a leader's clock, so that a room recognises it and knows its rate.
public struct CrystalID: Hashable, Sendable {
    /// Of the node, kept on its disk; 0 where nothing is kept.
    public var node: UInt64
    /// Of this start of its machine: some kernels calibrate the rate of their clock at each.
    public var boot: UInt64

    /// A crystal by its machine and the machine's start.
    public init(node: UInt64, boot: UInt64) {
        self.node = node
        self.boot = boot
    }

    /// Of a leader that does not say; nothing is remembered of it.
    public static let unknown = CrystalID(node: 0, boot: 0)
}

/// "Be able to start this item here": fetch, open, seek, preroll, then say ready.
public struct Preparation: Equatable, Sendable {
    /// Never used twice within a term.
    public var id: UInt64
    /// What is to be played, by its content.
    public var asset: AssetDescriptor
    /// First frame that will sound when `change` is `nil`.
    public var itemFrame: Int64
    /// Item time per group time at which it will run once it begins.
    public var rate: Double
    /// The line to be joined when it is already known: it runs, or begins when the item before
    /// ends. Prepare for where it will be, and for its first frame while it has not begun.
    public var change: RateChange?

    /// A preparation; with `change` the line to join, else the start is told by a ``Commit``.
    public init(
        id: UInt64, asset: AssetDescriptor, itemFrame: Int64, rate: Double, change: RateChange?
    ) {
        self.id = id
        self.asset = asset
        self.itemFrame = itemFrame
        self.rate = rate
        self.change = change
    }
}

/// "From this instant on, this": puts a preparation on its line, or pauses the line of one.
public struct Commit: Equatable, Sendable {
    /// The preparation that begins to sound; for rate 0 the one that sounds and shall pause.
    public var id: UInt64
    /// Place in the queue.
    public var index: Int
    /// Content hash of the item that is meant.
    public var hash: ContentHash
    /// From which frame, at which instant, at which rate.
    public var change: RateChange
    /// The line begins where the running one ends, and does not cut it off.
    public var following: Bool

    /// A commit of the preparation `id`.
    public init(
        id: UInt64, index: Int, hash: ContentHash, change: RateChange, following: Bool
    ) {
        self.id = id
        self.index = index
        self.hash = hash
        self.change = change
        self.following = following
    }

    /// Whether what sounds stops at the instant.
    public var isPause: Bool { change.rate == 0 }
}

/// A commit once more, as a datagram: a segment that a stream loses comes 50 to 200 ms late, and
/// with it whatever is behind; the instant of the commit is over by then.
///
/// The room applies whichever comes first. A notice that does not fit what the room has is no
/// error: the stream tells the whole story.
public struct CommitDatagram: Equatable, Sendable {
    /// Of the room's hello: what only the room and its leader know.
    public var instance: UInt64
    /// Of the leader's session.
    public var term: UInt64
    /// What was committed, as the stream says it too.
    public var commit: Commit

    /// A commit for the room with that `instance`, of the session `term`.
    public init(instance: UInt64, term: UInt64, commit: Commit) {
        self.instance = instance
        self.term = term
        self.commit = commit
    }
}

/// What a leader tells a room.
public enum LeaderToRoom: Equatable, Sendable {
    case welcome(Welcome)
    /// The hello was not accepted; the reason says what to do.
    case refused(reason: String)
    case prepare(Preparation)
    case commit(Commit)
    /// Forget this preparation; when it sounds already, end it now.
    case withdraw(preparation: UInt64)
    case settings(RoomSettings)
    case state(SessionState)
    /// The session goes on like this, with the queue as it was.
    case progress(SessionProgress)
    /// The session goes on as it was, with these items in its queue.
    case queue(QueueChange)
    /// The latency offset of this room's output, from now on.
    case latencyOffset(LatencyOffset)
    /// Silence now; forget every preparation.
    case stop
    /// Nothing but a sign of life, once a second.
    case alive
    /// The leader leaves on purpose.
    case goodbye
    /// Lead this group from now on, and say whether you do.
    case lead(Handover)
    /// The group is led from there now, and nothing else changes.
    case follow(NextLeader)
    /// Datagrams are sealed with this from now on.
    case datagramKey(DatagramKey)
    /// Lead a group of your own from now on, with nothing in its queue.
    case separate
    /// Who goes on without this leader, and with what; from now on.
    case succession(Succession)
}
