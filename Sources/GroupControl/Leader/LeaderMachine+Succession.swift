import TuttiTiming

// Who goes on when this leader is lost: said beforehand, since it is too late then. And what happens
// when two of them meet.

extension LeaderMachine {
    /// What decides whether rooms have to be told something else.
    struct SuccessionKey: Equatable, Sendable {
        var heirs: [Heir]
        var missed: [NextLeader]
        var precedence: Precedence
        var revision: UInt64
        var settings: [RoomID: RoomSettings]
        var commonSettings: RoomSettings
        var rooms: Int
        var rate: Double
    }

    /// A node that went without a goodbye: it is asked who leads until it has come back.
    struct MissedNode: Equatable, Sendable {
        var place: NextLeader
        var since: GroupInstant
    }

    /// Changes that come closer are told together: a long queue is a long message.
    static let successionInterval = Nanoseconds.milliseconds(250)
    /// For each item of the queue: of ten thousand the rooms hear every ten seconds.
    static let successionPause = Nanoseconds.milliseconds(1)
    /// Bytes of why an item is left out; with more a long queue would not fit a message.
    package static let longestReason = 40
    /// Between two questions to nodes that are missed.
    static let rivalInterval = Nanoseconds.seconds(2)
    /// Who is away for longer is asked no more: it looks for a leader itself when it comes back.
    static let missedFor = Nanoseconds.seconds(3_600)
    static let mostMissed = Succession.mostMissed

    /// See ``Precedence``.
    package var precedence: Precedence { Precedence(reign: reign, term: session.term) }

    /// The rooms that would go on if this leader were lost now, the first first.
    package var heirRooms: [RoomID] { heirs.map(\.room) }

    /// Whether rooms are silent since the bytes of what plays do not come.
    package var hasStarvedRooms: Bool { members.contains { $0.report?.line == .starved } }

    /// Where other rooms hand out what they have fetched; an empty host is this leader's.
    package var doors: [NextLeader] {
        members.filter { $0.hello.doorPort != 0 && !isOwn($0) }.map {
            NextLeader(
                name: $0.hello.room, host: hosts[$0.link] ?? "", port: $0.hello.doorPort)
        }
    }

    /// What this leader answers who asks.
    package var sight: LeadSight? {
        guard let name = try? RoomID(configuration.name) else { return nil }
        return LeadSight(
            room: name, origin: configuration.groupClockOrigin,
            lead: heir.map(LeadSight.Lead.heard) ?? .own(precedence))
    }

    /// Rooms that can lead, the best first: what sounds there now, then near ones, then who has been
    /// here longest.
    private var heirs: [Heir] {
        members.enumerated()
            .filter { $1.takesPart && $1.hello.canLead && !isOwn($1) }
            .sorted { left, right in
                let (one, other) = (left.element, right.element)
                if one.isAudible != other.isAudible { return one.isAudible }
                if one.isNear != other.isNear { return one.isNear }
                return left.offset < right.offset
            }
            .prefix(Succession.mostHeirs)
            .map { Heir(member: $0.element, host: hosts[$0.element.link] ?? "") }
    }

    func isOwn(_ member: LeaderMember) -> Bool {
        member.hello.instance == configuration.ownInstance
    }

    private var successionKey: SuccessionKey {
        let present = Set(members.map(\.hello.room))
        return SuccessionKey(
            heirs: heirs, missed: missed.map(\.place), precedence: precedence,
            revision: queue.revision,
            settings: settings.filter { present.contains($0.key) },
            commonSettings: commonSettings,
            // Where this leader is lost, its own room is too.
            rooms: members.count { $0.takesPart && !isOwn($0) }, rate: rate)
    }

    /// Tells the rooms what has changed of that.
    mutating func planSuccession(at now: GroupInstant) {
        guard heir == nil, members.contains(where: { !isOwn($0) }) else {
            successionDue = nil
            return
        }
        let key = successionKey
        // Where nobody can go on there is nothing to tell.
        guard key != toldSuccession, !key.heirs.isEmpty || toldSuccession != nil else {
            successionDue = nil
            return
        }
        guard now >= successionFrom else {
            successionDue = successionFrom
            return
        }
        toldSuccession = key
        successionDue = nil
        successionFrom =
            now + Self.successionInterval + Self.successionPause * Int64(queue.count)
        let succession = succession(key)
        for member in members where !isOwn(member) {
            send(.succession(succession), to: member.link)
        }
    }

    /// Who has just joined learns what the others know.
    mutating func tellSuccession(to member: LeaderMember) {
        guard let toldSuccession, !isOwn(member) else { return }
        send(.succession(succession(toldSuccession)), to: member.link)
    }

    private func succession(_ key: SuccessionKey) -> Succession {
        var left = handover
        left.rooms = key.rooms
        for place in left.items.indices {
            left.items[place].reason =
                left.items[place].reason?.limited(toBytes: Self.longestReason)
        }
        return Succession(
            heirs: key.heirs, missed: key.missed, precedence: key.precedence, handover: left)
    }

    /// A leader that was alone when it began, and is not any more, leads like any other.
    mutating func noteCompany(_ hello: Hello) {
        guard hello.hasOutput, hello.instance != configuration.ownInstance else { return }
        reign = session.term
    }

    // MARK: A leader that stood still

    /// It has something to do every 0.4 s. After so long its rooms ask who leads, and another may.
    private static let standstill = RoomMachine.doubt
    /// So long after it has woken it knows whether its links have ended.
    private static let waking = Nanoseconds.milliseconds(600)

    mutating func noteTurn(at now: GroupInstant) {
        if let lastTurn, now - lastTurn > Self.standstill, heir == nil,
            members.contains(where: { !isOwn($0) })
        {
            wokeAt = now
        }
        lastTurn = now
    }

    /// A command that it took now would be lost if another leads by now.
    func refusalAfterWaking(at now: GroupInstant) -> CommandOutcome? {
        guard let wokeAt, now < wokeAt + Self.waking else { return nil }
        return .refused(reason: NextLeader.stoodStill)
    }

    // MARK: Others that lead

    mutating func miss(_ member: LeaderMember, at now: GroupInstant) {
        guard heir == nil, let host = hosts[member.link], member.hello.canLead,
            !isOwn(member)
        else { return }
        miss(
            NextLeader(name: member.hello.room, host: host, port: member.hello.doorPort), at: now)
        nextRivalLook = now
    }

    mutating func miss(_ place: NextLeader, at now: GroupInstant) {
        missed.removeAll { $0.place.name == place.name }
        if missed.count >= Self.mostMissed { missed.removeFirst() }
        missed.append(MissedNode(place: place, since: now))
    }

    /// Who was missed may follow another leader by now, or lead.
    mutating func lookForRivals(at now: GroupInstant) {
        missed.removeAll { now >= $0.since + Self.missedFor }
        guard !missed.isEmpty, heir == nil, now >= nextRivalLook else { return }
        nextRivalLook = now + Self.rivalInterval
        outbox.append(.askWhoLeads(missed.map(\.place)))
    }

    var rivalDeadline: GroupInstant? { missed.isEmpty || heir != nil ? nil : nextRivalLook }

    /// What one of them has answered: a leader that goes before this one takes its rooms over.
    mutating func take(_ sight: LeadSight, of place: NextLeader, at now: GroupInstant) {
        guard heir == nil, sight.origin == configuration.groupClockOrigin,
            let own = try? RoomID(configuration.name),
            sight.room != own || sight.lead != .own(precedence)
        else { return }
        switch sight.lead {
        case .own(let other) where other.wins(of: sight.room, against: precedence, of: own):
            let rival = NextLeader(name: sight.room, host: place.host, port: place.port)
            tellRoom(.yielded(to: rival.name), sight.room)
            outbox.append(.yield(to: rival))
        case .heard(let other) where other.name.name != configuration.name:
            // It is asked itself, since only its own word says what it goes by.
            var rival = other
            if rival.host.isEmpty { rival.host = place.host }
            guard !missed.contains(where: { $0.place == rival }) else { return }
            miss(rival, at: now)
            outbox.append(.askWhoLeads([rival]))
        case .own, .heard, .none: break
        }
    }

    private mutating func tellRoom(_ news: RoomNews, _ room: RoomID) {
        outbox.append(.news(news, of: room))
    }
}

extension Heir {
    fileprivate init(member: LeaderMember, host: String) {
        self.init(room: member.hello.room, host: host, port: member.hello.doorPort)
    }
}
