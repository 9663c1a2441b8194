package import TuttiTiming

// One leader after another. The session, the group clock and what sounds stay as they are; only who
// decides is another.

extension LeaderMachine {
    /// A room that was asked to lead.
    struct Successor: Equatable, Sendable {
        var link: LinkID
        var room: RoomID
        /// When it is not waited for any more.
        var until: GroupInstant
    }

    /// Rooms on their way from the leader before, which play what that one committed: nobody has to
    /// say that they are ready for it.
    struct Returning: Equatable, Sendable {
        /// So many have an output.
        var rooms: Int
        /// When they are not waited for any more.
        var until: GroupInstant
    }

    /// What it takes to open two ports and to read the clock, with room to spare; commands are
    /// refused meanwhile.
    package static let handoverLimit = Nanoseconds.seconds(5)

    /// Why the lead stays while somebody looks for items: what is found would join the old queue.
    package static let stillListing =
        "folders or playlists are still being looked through; try again in a moment"

    /// Goes on with the session of the leader before.
    ///
    /// What sounds in the rooms goes on: who joins and plays the line in force is told that it does.
    ///
    /// - Parameters:
    ///   - configuration: its term is higher than the session's; its queue does not count.
    ///   - session: as the rooms have it.
    ///   - others: nodes that do not know of this leader yet, and may follow another or lead.
    ///   - patience: a start that was being prepared waits so long for the rooms of before, and then begins
    ///     with those that are there; `nil`: for all of them, however long they take to be switched on.
    package init(
        _ configuration: LeaderConfiguration, resuming session: SessionState, _ handover: Handover,
        missing others: [NextLeader] = [], waitingFor patience: Nanoseconds? = nil,
        at now: GroupInstant
    ) {
        var configuration = configuration
        configuration.queue = []
        configuration.coming = 0
        if handover.session != 0 { configuration.session = handover.session }
        self.init(configuration)
        queue = PlayQueue(
            handover.items, knowing: session.queue, from: handover.addresses,
            repeats: handover.repeats)
        self.session = session
        self.session.term = configuration.term
        self.session.sequence = 1
        settings = handover.settings
        commonSettings = handover.commonSettings
        rate = handover.rate
        if patience != nil {
            inheritedVolumes = InheritedVolumes(
                rooms: Set(handover.settings.keys), until: now + Self.handoverLimit)
        }
        lastPreparation = Self.preparationsBefore(configuration.term)
        hasPlayed = session.change != nil
        for place in others { miss(place, at: now) }
        let required = max(1, handover.rooms)
        guard let current = session.current else {
            self.session.change = nil
            self.session.phase = .stopped
            guard session.phase == .waiting || session.phase == .preparing, queue.count > 0 else {
                return
            }
            // Nobody had read an item yet.
            self.session.phase = .waiting
            awaitItem(at: 0, rooms: patience == nil ? required : nil, now)
            return
        }
        let frame = session.change?.itemFrame ?? 0
        switch session.phase {
        case .playing:
            returning = Returning(rooms: handover.rooms, until: now + Self.handoverLimit)
            planFollowUp(at: now)
        case .paused:
            pending = PendingStart(
                index: session.index, frame: min(frame, current.frameCount - 1), starts: false)
        case .waiting, .preparing:
            guard frame < current.frameCount else {
                // It is over; what comes behind it may still have to be read.
                awaitItem(
                    at: queue.position(of: session.index).map { $0 + 1 } ?? queue.count,
                    rooms: patience == nil ? required : nil, now)
                return
            }
            pending = PendingStart(
                index: session.index, frame: frame, starts: true, required: required,
                deadline: patience.map { now + $0 })
        case .stopped, .ended: break
        }
    }

    private mutating func awaitItem(at position: Int, rooms: Int?, _ now: GroupInstant) {
        awaited = AwaitedItem(place: .position(position), required: rooms)
        goToAwaited(at: now)
    }

    /// Numbers of preparations begin elsewhere in each term: what rooms still play by a number of the
    /// leader before is never taken for another preparation.
    private static func preparationsBefore(_ term: UInt64) -> UInt64 {
        (1 + term % (1 << 16)) << 40
    }

    // MARK: Handing over

    mutating func handOver(to wanted: RoomID, at now: GroupInstant) -> CommandOutcome {
        let member: LeaderMember
        switch self.member(wanted) {
        case .success(let found): member = found
        case .failure(let refusal): return .refused(reason: refusal.reason)
        }
        let room = member.hello.room
        if member.hello.instance == configuration.ownInstance {
            return .refused(reason: "\"\(room)\" leads this group already")
        }
        guard !member.isLost else {
            return .refused(reason: "\"\(room)\" is not heard just now")
        }
        guard coming == 0 else {
            return .refused(reason: Self.stillListing)
        }
        guard pending?.starts != true, awaited == nil else {
            return .refused(reason: "a start is being prepared; try again in a moment")
        }
        send(.lead(handover), to: member.link)
        declined = nil
        successor = Successor(link: member.link, room: room, until: now + Self.handoverLimit)
        return .accepted
    }

    /// What rooms are set to by name, also those that are not here: at most ``Handover/mostSettings``.
    package var rememberedRooms: [RoomID: RoomSettings] { settings }

    /// What is handed to the next leader, as things are.
    package var handover: Handover {
        let present = Set(members.map(\.hello.room))
        return Handover(
            settings: settings.filter { present.contains($0.key) },
            commonSettings: commonSettings, repeats: queue.repeats,
            rooms: max(members.count { $0.takesPart }, returning?.rooms ?? 0),
            items: queue.entries.map(QueueListing.Item.init), rate: rate,
            session: configuration.session,
            addresses: queue.addresses(from: queue.position(of: session.index) ?? 0))
    }

    /// Why a command is refused while another leads, or is about to.
    public var refusalAfterHandover: CommandOutcome? {
        if let heir { return .refused(reason: heir.refusal) }
        return successor.map { .refused(reason: NextLeader.refusal(before: $0.room)) }
    }

    mutating func receiveLead(_ answer: LeadAnswer, from place: Int) {
        guard let successor, successor.link == members[place].link else {
            // It was not waited for any more: this one leads, and it follows again.
            if case .leads = answer, let own = try? RoomID(configuration.name) {
                let here = NextLeader(name: own, host: "", port: configuration.mediaPort)
                send(.follow(here), to: members[place].link)
            }
            return
        }
        switch answer {
        case .leads(let port):
            tell(.leads, of: members[place])
            outbox.append(.handOver(to: successor.room, port: port, at: successor.link))
        case .cannot(let reason):
            giveUpSuccessor(reason.limited(toBytes: RoomReport.longestText))
        }
    }

    /// Whether a room was asked to lead and has not answered.
    package var isHandingOver: Bool { successor != nil }

    mutating func giveUpSuccessor(_ reason: String) {
        guard let room = successor?.room else { return }
        successor = nil
        declined = reason
        outbox.append(.news(.declined(reason: reason), of: room))
    }

    mutating func watchSuccessor(at now: GroupInstant) {
        guard let successor, now >= successor.until else { return }
        giveUpSuccessor("it did not answer within \(Int(Self.handoverLimit.seconds)) s")
    }

    /// Until every room has come and says itself what it is ready for, what follows in the queue
    /// follows: rooms that are on their way, or are being asked, have it from the leader before, which
    /// went on by the order of the queue alone or did not give up the lead.
    mutating func noteReturned(at now: GroupInstant) {
        guard let returning else { return }
        let parts = members.filter(\.takesPart)
        let areBack =
            parts.count >= returning.rooms
            && parts.allSatisfy { $0.isOnLine && $0.follow?.standing != .sent }
        if areBack || now >= returning.until { self.returning = nil }
    }

    /// Another leads: every room is told where, and goes there with what it plays.
    package mutating func handedOver(to next: NextLeader) -> [LeaderEffect] {
        for member in members {
            send(.follow(next), to: member.link)
            outbox.append(.close(member.link))
        }
        heir = next
        successor = nil
        missed = []
        returning = nil
        members = []
        pending = nil
        followUp = nil
        chain = []
        awaited = nil
        complaint = "\"\(next.name)\" leads this group now"
        session.change = nil
        session.phase = .stopped
        session.sequence += 1
        return takeOutbox()
    }
}
