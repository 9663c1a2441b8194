package import TuttiTiming

/// What a room is told when it is made.
package struct RoomConfiguration: Equatable, Sendable {
    package var room: RoomID
    /// See ``Hello/instance``.
    package var instance: UInt64
    package var outputLatency: Nanoseconds
    package var hasOutput: Bool
    /// Where the shell takes a ``CommitDatagram``; 0 when it does not.
    package var noticePort: UInt16
    /// See ``Hello/doorPort``.
    package var doorPort: UInt16
    /// See ``Hello/mayLead``.
    package var mayLead: Bool
    /// How loud it was when it ended.
    package var settings: RoomSettings?

    package init(
        room: RoomID, instance: UInt64, outputLatency: Nanoseconds, hasOutput: Bool,
        noticePort: UInt16 = 0, doorPort: UInt16 = 0, mayLead: Bool = false,
        settings: RoomSettings? = nil
    ) {
        self.doorPort = doorPort
        self.mayLead = mayLead
        self.settings = settings
        self.room = room
        self.instance = instance
        self.outputLatency = outputLatency
        self.hasOutput = hasOutput
        self.noticePort = noticePort
    }
}

/// How loading an asset went.
package enum FetchOutcome: Equatable, Sendable {
    /// The bytes are coming and can be played meanwhile; `.done` or `.failed` follows.
    case arriving
    /// The bytes are here and their hash is right.
    case done
    case failed(reason: String)
}

/// How a preroll went.
package enum PrepareOutcome: Equatable, Sendable {
    /// Could start now; the latency is the output's at this moment.
    case ready(latency: Nanoseconds)
    case failed(reason: String)
}

/// What happens to a room.
package enum RoomInput: Equatable, Sendable {
    /// The link asked for by ``RoomEffect/connect`` is up.
    case connected
    /// The link could not be made, or broke; harmless when there was none.
    case closed(reason: String)
    case received(LeaderToRoom)
    /// A datagram, from whoever it says.
    case notified(CommitDatagram)
    case fetched(ContentHash, FetchOutcome)
    case prepared(UInt64, PrepareOutcome)
    /// The file that this preparation is to be made from is gone, or not the one it was.
    case missing(UInt64)
    /// The shell's latest figures; the machine fills in the activity and sends them when due.
    case report(RoomReport)
    case clock(SharedClock.Quality)
    /// What the output plays; due at each ``RoomMachine/nextDeadline`` while a line sounds.
    case heard(OutputLook)
    /// The voice of this preparation has played its item to the end.
    case itemEnded(UInt64)
    /// It cannot go on, though it was ready: the rest of its bytes does not come, or is damaged.
    case itemFailed(UInt64, reason: String)
    /// Whether the node of this room leads, as ``RoomEffect/lead(_:_:)`` asked for.
    case leads(LeadAnswer)
    /// What came of ``RoomEffect/askWhoLeads(_:round:)``, in the order of those that were asked.
    case sights([SightAnswer], round: Int)
    /// Whether the node of this room leads, as ``RoomEffect/succeed(_:_:)`` asked for.
    case succeeded(LeadAnswer)
    /// The node of this room leads a group of its own by now, as ``RoomEffect/leadAlone`` asked for or
    /// since nobody else does.
    case leadsAfresh
    /// The person wants the room to leave.
    case leave
}

/// What the shell does for the room, in order.
package enum RoomEffect: Equatable, Sendable {
    /// Make a link to the leader; answer with `.connected` or `.closed`.
    case connect
    /// End the link or the attempt; no `.closed` is needed, and one does no harm.
    case disconnect
    case send(RoomToLeader)
    /// Welcomed: follow this leader's clock and load from its media service.
    case joined(Welcome)
    /// The name is taken in this group, which calls the room so; to be remembered.
    case renamed(RoomID)
    /// The link is gone. What plays goes on; the next attempt follows by itself.
    case disconnected(reason: String)
    /// The leader does not want this room; it is asked again after a while.
    case refused(reason: String)
    /// Load this asset into the cache; answer with `.fetched`, at once when it is there or on
    /// its way.
    case fetch(AssetDescriptor)
    /// Open, seek and decode ahead in a free voice; answer with `.prepared`.
    case prepare(Preparation)
    /// Put the prepared voice on this line. Unless `following`, whatever else sounds ends at the
    /// same instant. For a pause: end the voice of this preparation at that instant.
    case apply(Commit)
    /// Give back the voice of this preparation, ending it now when it sounds.
    case withdraw(UInt64)
    /// Silence now; give back every voice.
    case stop
    case settings(RoomSettings)
    /// Let what hangs on the output be this late, and remember it.
    case latencyOffset(LatencyOffset)
    /// For the log: what leaves the card is not what was committed, or is again.
    case lineAlarm(LineFinding, preparesAnew: Bool)
    /// The session as the leader has it, for display.
    case state(SessionState)
    /// Lead the group: go on with its clock and this session, take links, then answer with `.leads`.
    case lead(Handover, SessionState)
    /// The leader is not heard: ask all of these who leads, each for ``Bereavement/answerLimit`` at
    /// most, then answer with `.sights`. An empty host is that of the leader.
    case askWhoLeads([NextLeader], round: Int)
    /// The leader is lost: lead the group as with ``lead(_:_:)``, then answer with `.succeeded`.
    case succeed(Inheritance, SessionState)
    /// Lead a group of your own: the next ``connect`` goes to this node's leader.
    case leadAlone
    /// The next ``connect`` goes there.
    case follow(NextLeader)
    /// Datagrams of the leader that welcomed the room are sealed with this from now on.
    case datagramKey(DatagramKey)
}
