package import TuttiTiming

/// Runs a session: who takes part, what plays, and the common instants of every change.
///
/// Rooms are far away and slow in different ways, so nothing is ever ordered "now". The leader
/// asks for a preparation, hears who is ready, and commits a ``RateChange`` at the earliest
/// instant that every ready room can still meet:
///
///     instant = now + max over rooms (round trip / 2 + output latency) + margin
///
/// A room that was not ready gets the running line to itself as soon as it is. Three offers stand
/// beside each other for every member: for the line in force, for the start or seek that will
/// replace it, and for the item that follows it.
///
/// Pure: `now` is the group clock, which the leader defines; the shell performs the effects.
package struct LeaderMachine: Sendable {
    package let configuration: LeaderConfiguration
    package internal(set) var session: SessionState

    /// The queue with all that people see of it; rooms hear of ``SessionState/queue``.
    var queue: PlayQueue

    var members: [LeaderMember] = []
    var pending: PendingStart?
    var followUp: FollowUp?
    /// The items behind it, where they are so short that they too must be prepared by now.
    var chain: [FollowUp] = []
    /// What is to be gone to as soon as it is known.
    var awaited: AwaitedItem?
    /// How fast what starts plays; the line in force has its own.
    var rate = 1.0
    /// Whether anything has sounded in this session.
    var hasPlayed = false
    /// Rooms that a start was delayed for in vain, and that have answered nothing since. By name: who
    /// comes again and again without an answer is no better.
    var missing: Set<RoomID> = []
    var settings: [RoomID: RoomSettings] = [:]
    /// For rooms without settings of their own; moved by commands for all rooms.
    var commonSettings = RoomSettings.standard
    var lastPreparation: UInt64 = 0
    /// Items skipped in a row because no room could play them.
    var skipped = 0
    /// Why the session stopped by itself; empty when it did not.
    var complaint = ""
    var nextAlive = GroupInstant(nanoseconds: .min)
    /// Who was asked to lead, until it has answered.
    var successor: Successor?
    /// Why the last one that was asked to lead does not; `nil` while it may, and before.
    var declined: String?
    /// Who leads since this leader has handed over.
    var heir: NextLeader?
    /// Whom a leader that has taken over waits for.
    var returning: Returning?
    /// Of a leader that was lost.
    var inheritedVolumes: InheritedVolumes?
    /// The latest term that began, or went on, in company; see ``Precedence``.
    var reign: UInt64
    /// Of the rooms' links: where the rooms are, as others reach them too.
    var hosts: [LinkID: String] = [:]
    /// What the rooms know of who comes next, and when they may be told again.
    var toldSuccession: SuccessionKey?
    var successionFrom = GroupInstant(nanoseconds: .min)
    var successionDue: GroupInstant?
    /// Nodes that went without a goodbye, and when they are asked next.
    var missed: [MissedNode] = []
    var nextRivalLook = GroupInstant(nanoseconds: .min)
    /// When it did something last, and when it found that it had stood still.
    var lastTurn: GroupInstant?
    var wokeAt: GroupInstant?
    /// Effects of the verb being performed.
    var outbox: [LeaderEffect] = []

    package init(_ configuration: LeaderConfiguration) {
        self.configuration = configuration
        reign = configuration.reign ?? configuration.term
        queue = PlayQueue(
            configuration.queue, coming: configuration.coming,
            repeats: configuration.loops ? .all : .off)
        session = SessionState(
            term: configuration.term, sequence: 1, queue: queue.assets, index: 0, change: nil,
            phase: queue.count == 0 && queue.coming == 0 ? .stopped : .waiting)
        let required = max(0, configuration.roomsToWaitFor)
        if queue.count > 0 {
            pending = PendingStart(index: 0, frame: 0, starts: true, required: required)
        } else if queue.coming > 0 {
            awaited = AwaitedItem(place: .position(0), required: required)
        }
    }

    /// Takes in what came over a link.
    package mutating func receive(_ input: LeaderInput, at now: GroupInstant) -> [LeaderEffect] {
        noteTurn(at: now)
        passEnds(at: now)
        switch input {
        case .received(let message, let link): receive(message, from: link, at: now)
        case .linked(let link, let host): hosts[link] = host
        case .closed(let link):
            if let place = members.firstIndex(where: { $0.link == link }) {
                miss(members[place], at: now)
                tell(.left, of: members.remove(at: place))
            }
            hosts[link] = nil
            if successor?.link == link { giveUpSuccessor("its link has ended") }
        case .described(let assets, let coming): append(assets, coming: coming, at: now)
        case .listed(let items, let place, let coming):
            list(items, at: place, coming: coming, at: now)
        case .read(let id, let asset): read(id, as: asset, at: now)
        case .unplayable(let id, let reason): leaveOut(id, reason, at: now)
        case .absent(let ids, let reason):
            giveUpSuccessor("an item of the queue is on a machine that is away")
            passOver(ids, reason, at: now)
        case .changed(let hash, let items, let change):
            giveUpSuccessor("an item of the queue has changed")
            self.change(hash, of: items, to: change, at: now)
        case .sight(let sight, let place): take(sight, of: place, at: now)
        }
        return settled(at: now)
    }

    /// Performs or refuses a command; effects are empty when it is refused.
    package mutating func perform(
        _ command: GroupCommand, at now: GroupInstant
    ) -> (outcome: CommandOutcome, effects: [LeaderEffect]) {
        noteTurn(at: now)
        passEnds(at: now)
        let outcome = outcome(of: command, at: now)
        return (outcome, settled(at: now))
    }

    /// Does what is due; call it at ``nextDeadline``.
    package mutating func advance(to now: GroupInstant) -> [LeaderEffect] {
        noteTurn(at: now)
        passEnds(at: now)
        if now >= nextAlive {
            for member in members { send(.alive, to: member.link) }
            nextAlive = now + Self.aliveInterval
        }
        watchSuccessor(at: now)
        dropSilent(at: now)
        lookForRivals(at: now)
        retryFailed(at: now)
        return settled(at: now)
    }

    /// When ``advance(to:)`` is due next; in the past before the first call.
    package var nextDeadline: GroupInstant? {
        var deadlines = [nextAlive]
        if let deadline = pending?.deadline { deadlines.append(deadline) }
        if let deadline = missingDeadline { deadlines.append(deadline) }
        if let successor { deadlines.append(successor.until) }
        deadlines += [successionDue, rivalDeadline].compactMap(\.self)
        if isRunning, let end = session.endInstant {
            deadlines.append(end)
            if followUp == nil, pending == nil, indexAfter(session.index) != nil {
                deadlines.append(end - Self.followLead)
            }
            if let deadline = chainDeadline { deadlines.append(deadline) }
        }
        for member in members {
            deadlines.append(
                member.lastHeard + (member.isLost ? Self.silenceUntilClosed : Self.silenceUntilLost)
            )
            if let retry = member.retryAt { deadlines.append(retry) }
        }
        return deadlines.min()
    }

    /// Tells every room that the leader leaves; they fall silent.
    package mutating func leave(at now: GroupInstant) -> [LeaderEffect] {
        for member in members {
            send(.goodbye, to: member.link)
            outbox.append(.close(member.link))
        }
        members = []
        pending = nil
        followUp = nil
        chain = []
        awaited = nil
        session.change = nil
        session.phase = .stopped
        session.sequence += 1
        return takeOutbox()
    }

    private mutating func settled(at now: GroupInstant) -> [LeaderEffect] {
        noteMissing(at: now)
        leaveWhatNobodyPlays(at: now)
        decidePending(at: now)
        planFollowUp(at: now)
        planChain(at: now)
        planSuccession(at: now)
        return takeOutbox()
    }

    mutating func takeOutbox() -> [LeaderEffect] {
        defer { outbox = [] }
        return outbox
    }
}

// MARK: Constants

extension LeaderMachine {
    /// Most rooms of a group; keeps every loop over them and every broadcast small.
    package static let mostMembers = 256
    /// Most rooms whose volume is remembered after they left.
    static let mostSettings = 1_024

    /// Added to what rooms need: scheduling of the leader and of the slowest room, and one late
    /// packet. A host stalls for about 30 ms now and then; less makes starts miss their instant,
    /// more is felt on every key press.
    package static let margin = Nanoseconds.milliseconds(40)

    /// How long before its beginning the next item is prepared: enough to load it from the leader
    /// over a slow link, since rooms load one item ahead anyhow.
    static let followLead = Nanoseconds.seconds(10)

    /// A room doubts after two missed signs of life; see ``RoomMachine/doubt``.
    static let aliveInterval = Nanoseconds.milliseconds(400)
    /// Rooms report once a second: five missed reports.
    static let silenceUntilLost = Nanoseconds.seconds(5)
    /// Two missed reports: what the last one says may no longer be so.
    static let silenceUntilNoticed = Nanoseconds.milliseconds(2_500)
    static let silenceUntilClosed = Nanoseconds.seconds(30)
    /// In a full group, who has been silent for so long makes room for another.
    static let silenceUntilDisplaced = Nanoseconds.seconds(10)
    /// A link heard this recently is alive, and a second room may not take its name.
    static let silenceUntilReplaced = Nanoseconds.seconds(3)
    /// Rooms of one name: beyond, somebody makes them up.
    static let mostNamesakes = 64

    static let retryInterval = Nanoseconds.seconds(1)
    /// How often all rooms may fail at an item before it is skipped.
    static let mostAttempts = 3

    /// A seek goes no closer to the end than this, seconds: something is heard, and the next item
    /// can be prepared meanwhile.
    static let seekEndSeconds: Int64 = 1

    /// How fast a group can play.
    static let rates = RateChange.rates

    /// "Previous" within so many seconds of an item's beginning means the item before; later it
    /// means the beginning, as on every player with that button.
    static let restartSeconds = 3.0
}

// MARK: Small steps

extension LeaderMachine {
    /// Whether the line in force moves.
    var isRunning: Bool { (session.change?.rate ?? 0) > 0 }

    /// The item that follows by itself; `nil` at the end, and while the one that follows is being
    /// read.
    func indexAfter(_ index: Int) -> Int? {
        if case .item(let next) = queue.successor(of: index) { next } else { nil }
    }

    mutating func send(_ message: LeaderToRoom, to link: LinkID) {
        outbox.append(.send(message, to: link))
        if case .prepare(let preparation) = message,
            let place = members.firstIndex(where: { $0.link == link })
        {
            members[place].noteAsked(preparation.id)
        }
    }

    /// Commits; what has to be met soon goes as a datagram too.
    mutating func send(_ commit: Commit, to member: LeaderMember) {
        send(.commit(commit), to: member.link)
        guard !commit.following, member.hello.noticePort != 0 else { return }
        let notice = CommitDatagram(
            instance: member.hello.instance, term: session.term, commit: commit)
        outbox.append(.notify(notice, port: member.hello.noticePort, of: member.link))
    }

    /// Changes the session and tells every member; the queue they have had with the welcome.
    mutating func update(index: Int, change: RateChange?, phase: SessionPhase) {
        session.index = index
        session.change = change
        session.phase = phase
        session.sequence += 1
        if phase == .playing, let position = queue.position(of: index) {
            queue.note(nil, at: position)
        }
        for member in members { send(.progress(session.progress), to: member.link) }
    }

    mutating func makePreparation(
        of index: Int, frame: Int64, change: RateChange?
    ) -> Preparation {
        lastPreparation += 1
        return Preparation(
            id: lastPreparation, asset: session.queue[index], itemFrame: frame,
            rate: change?.rate ?? rate, change: change)
    }

    /// Takes one of a member's offers back, and tells it unless it had failed at it anyway.
    mutating func withdraw(_ slot: WritableKeyPath<LeaderMember, Offer?>, of place: Int) {
        guard let offer = members[place][keyPath: slot] else { return }
        members[place][keyPath: slot] = nil
        if offer.standing != .failed {
            send(.withdraw(preparation: offer.id), to: members[place].link)
        }
    }

    /// The earliest instant that all of these members can meet, never before the line in force.
    func earliestInstant(for members: [LeaderMember], at now: GroupInstant) -> GroupInstant {
        let reach = members.map(\.reach).max() ?? .zero
        let earliest = now + reach + Self.margin
        return max(earliest, session.change?.instant ?? earliest)
    }
}
