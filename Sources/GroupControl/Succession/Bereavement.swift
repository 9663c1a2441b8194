package import TuttiTiming

/// What a room does that has lost its leader without a goodbye: it asks everybody it knows who leads,
/// and goes on as what it finds out demands.
///
///     lost ── ask all ──► the leader answers            → back to it
///                         another leads                 → follow that one
///                         somebody hears the leader     → ask again: the way there is broken
///                         an heir before is there       → its turn; ask again
///                         nobody before                 → lead
///                         nobody at all                 → alone: lead after a while
///
/// No vote is taken: who is first in the order and there leads. Two that both take themselves for the
/// first, since neither reaches the other, meet when they do (``Precedence``).
///
/// Pure: `now` is the local clock; the shell asks and reports.
package struct Bereavement: Equatable, Sendable {
    package enum Step: Equatable, Sendable {
        /// Ask these, all at once, each for ``Bereavement/answerLimit``; then call ``answered(_:at:)``.
        case ask([NextLeader])
        case follow(NextLeader)
        /// Lead. In company the reign begins with this term.
        case lead(inCompany: Bool)
        /// The leader is there after all.
        case goBack
    }

    /// A question takes a handshake and an answer: a hundredth of a second by wire, a tenth on busy
    /// air, more where the first packet is lost.
    package static let answerLimit = Nanoseconds.milliseconds(400)
    /// Between two rounds of questions.
    package static let pause = Nanoseconds.milliseconds(250)
    /// An heir that is there and has not begun after so long is passed over: its clock is not good
    /// enough, or it cannot open its ports.
    package static let patience = Nanoseconds.milliseconds(1_500)
    /// Who reaches nobody at all is cut off itself, as a rule, and soon back: nothing is lost by
    /// waiting, since what is committed plays on. And something is by leading: whoever is back measures the
    /// leader's clock anew, and is milliseconds off where the air is as bad then. Roaming, and a network
    /// that was full for a moment, are over by then.
    package static let lonelyPatience = Nanoseconds.seconds(8)
    /// How often that doubles with each time that it led in vain.
    private static let mostDoublings = 2
    /// After this the room looks for any leader, like one that was just started.
    package static let limit = Nanoseconds.seconds(60)

    private enum State: Equatable, Sendable {
        case asking
        case waiting(until: LocalInstant)
        case over
    }

    package let room: RoomID
    package let origin: UInt64
    package let leader: NextLeader
    package let succession: Succession
    package let since: LocalInstant
    /// The node can lead: it has the ports, the session and the clock.
    package var canLead: Bool
    /// How much longer than usual it waits when it is alone; grows with each time that it led in
    /// vain.
    private let lonelyPatience: Nanoseconds
    private var state = State.asking
    /// When each heir before this room was first found there.
    private var seenAt: [RoomID: LocalInstant] = [:]

    /// - Parameters:
    ///   - leader: who is lost.
    ///   - timesInVain: this room led alone lately, and had to give it up so often.
    package init(
        of leader: NextLeader, origin: UInt64, room: RoomID, _ succession: Succession,
        canLead: Bool, timesInVain: Int, at now: LocalInstant
    ) {
        self.leader = leader
        self.origin = origin
        self.room = room
        self.succession = succession
        self.canLead = canLead
        lonelyPatience =
            Self.lonelyPatience * Int64(1 << min(max(timesInVain, 0), Self.mostDoublings))
        since = now
    }

    /// The first step.
    package var first: Step { .ask(places) }

    /// Who is asked, in this order: the leader, the heirs, and nodes that the leader missed itself.
    package var places: [NextLeader] {
        let heirs = succession.heirs.map(\.place)
        let known = [leader.name, room] + heirs.map(\.name)
        return [leader] + heirs.filter { $0.name != room }
            + succession.missed.filter { !known.contains($0.name) }
    }

    /// When ``advance(to:)`` is due; `nil` while answers are awaited, and at the end.
    package var nextDeadline: LocalInstant? {
        if case .waiting(let until) = state { until } else { nil }
    }

    package var isOver: Bool { state == .over }

    package mutating func advance(to now: LocalInstant) -> Step? {
        guard case .waiting(let until) = state, now >= until else { return nil }
        state = .asking
        return .ask(places)
    }

    /// Takes the answers of those in ``places``, in their order.
    package mutating func answered(_ answers: [SightAnswer], at now: LocalInstant) -> Step? {
        guard state == .asking, answers.count == places.count else { return nil }
        guard let step = decision(answers, at: now) else {
            state = now >= since + Self.limit ? .over : .waiting(until: now + Self.pause)
            return nil
        }
        state = .over
        return step
    }

    private mutating func decision(_ answers: [SightAnswer], at now: LocalInstant) -> Step? {
        var leaders: [(precedence: Precedence, place: NextLeader)] = []
        var isLeaderHeard = false
        var followed: NextLeader?
        var present: Set<RoomID> = []
        for (place, answer) in zip(places, answers) {
            guard case .sight(let sight) = answer, sight.origin == origin else { continue }
            present.insert(sight.room)
            switch sight.lead {
            case .own(let precedence):
                var found = place
                found.name = sight.room
                leaders.append((precedence, found))
            case .heard(let other) where other.name == leader.name: isLeaderHeard = true
            case .heard(var other):
                if other.host.isEmpty { other.host = place.host }
                if other.name != room { followed = other }
            case .none: break
            }
        }
        let best = leaders.max { one, other in
            other.precedence.wins(
                of: other.place.name, against: one.precedence, of: one.place.name)
        }
        if let best {
            return best.place.name == leader.name && best.precedence == succession.precedence
                ? .goBack : .follow(best.place)
        }
        // Nobody that this room knows leads, but somebody else does.
        if let followed { return .follow(followed) }
        if isLeaderHeard { return nil }
        guard canLead, let own = succession.heirs.firstIndex(where: { $0.room == room }) else {
            return nil
        }
        for heir in succession.heirs[..<own] where present.contains(heir.room) {
            let seen = seenAt[heir.room] ?? now
            seenAt[heir.room] = seen
            if now < seen + Self.patience { return nil }
        }
        let hasCompany = !present.isEmpty
        // A machine whose node has ended, or stands still, is on the same network as this one.
        let isConnected =
            hasCompany || answers.contains { $0 == .refused || $0 == .stalled }
        guard isConnected || now >= since + lonelyPatience else { return nil }
        // Whoever is the only room there is has nobody to be outvoted by.
        return .lead(inCompany: hasCompany || places.count == 1 && answers[0] == .refused)
    }
}
