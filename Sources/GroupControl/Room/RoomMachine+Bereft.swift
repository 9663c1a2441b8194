package import TuttiTiming

// Without a leader that said goodbye: somebody goes on, perhaps this node.

extension RoomMachine {
    /// What came of the loss of the leader.
    enum Bereft: Equatable, Sendable {
        /// Asks around. Where the link still stands, the leader may speak again.
        case asking(Bereavement)
        /// The node was told to lead.
        case succeeding(Bereavement)

        var search: Bereavement {
            switch self {
            case .asking(let search), .succeeding(let search): search
            }
        }
    }

    /// After two missed signs of life and a half of one the leader is asked for, and the others.
    static let doubt = Nanoseconds.milliseconds(900)
    /// Who has heard nothing for so long does not say that the leader is there: whoever asks has
    /// doubted longer, and would have to ask again.
    static let freshness = Nanoseconds.milliseconds(600)
    /// A lead of so long was not in vain.
    static let vainLead = Nanoseconds.seconds(60)

    /// What this room answers who asks it who leads, besides where that is.
    package func sight(at now: LocalInstant) -> (origin: UInt64, hearsLeader: Bool) {
        guard case .joined(let heard) = link, now < heard + Self.freshness else {
            return (membership?.groupClockOrigin ?? 0, false)
        }
        return (membership?.groupClockOrigin ?? 0, true)
    }

    /// The leader is not heard: everybody that is known is asked who leads.
    mutating func seek(at now: LocalInstant) -> [RoomEffect] {
        guard bereft == nil, let succession, let membership, session != nil,
            let leader = try? RoomID(membership.leaderName)
        else { return [] }
        let search = Bereavement(
            of: NextLeader(name: leader, host: "", port: membership.mediaPort),
            origin: membership.groupClockOrigin, room: configuration.room, succession,
            canLead: configuration.mayLead && configuration.doorPort != 0,
            timesInVain: vainLeads.times, at: now)
        bereft = .asking(search)
        holdBack(at: now)
        round += 1
        return [.askWhoLeads(search.places, round: round)]
    }

    /// While it asks who goes on it tries no leader: another group of the house would take it in before
    /// an heir leads.
    mutating func holdBack(at now: LocalInstant) {
        guard case .asking = bereft, case .waiting = link else { return }
        link = .waiting(until: now + Bereavement.lonelyPatience)
    }

    /// What was under way goes to a leader that does not count any more.
    mutating func leadsAfresh(at now: LocalInstant) -> [RoomEffect] {
        bereft = nil
        succession = nil
        session = nil
        link = .waiting(until: now)
        backOff = Self.shortestBackOff
        return [.disconnect] + forgetPreparations()
    }

    mutating func advanceSearch(to now: LocalInstant) -> [RoomEffect] {
        guard case .asking(var search) = bereft, let step = search.advance(to: now) else {
            return []
        }
        bereft = .asking(search)
        return perform(step, at: now)
    }

    mutating func answered(
        _ answers: [SightAnswer], round: Int, at now: LocalInstant
    ) -> [RoomEffect] {
        guard round == self.round, case .asking(var search) = bereft else { return [] }
        let step = search.answered(answers, at: now)
        bereft = search.isOver && step == nil ? nil : .asking(search)
        return step.map { perform($0, at: now) } ?? []
    }

    private mutating func perform(_ step: Bereavement.Step, at now: LocalInstant) -> [RoomEffect] {
        switch step {
        case .ask(let places):
            round += 1
            return [.askWhoLeads(places, round: round)]
        case .goBack:
            // Over the link that there is, or another one. A link may stall while new ones are answered:
            // each round of questions is a handshake with everybody.
            bereft = nil
            nextSearch = now + Bereavement.pause
            if case .waiting = link { link = .waiting(until: now) }
            return []
        case .follow(let next):
            bereft = nil
            return follow(next, at: now)
        case .lead(let inCompany):
            guard case .asking(let search) = bereft, let session else { return [] }
            bereft = .succeeding(search)
            let others = search.places
            return [
                .succeed(
                    Inheritance(
                        handover: search.succession.handover, others: others,
                        reign: inCompany ? nil : search.succession.precedence.reign),
                    session)
            ]
        }
    }

    /// The node leads now, or cannot.
    mutating func succeeded(_ answer: LeadAnswer, at now: LocalInstant) -> [RoomEffect] {
        guard case .succeeding(var search) = bereft else { return [] }
        switch answer {
        case .leads:
            bereft = nil
            vainLeads.begin(at: now)
            link = .waiting(until: now)
            backOff = Self.shortestBackOff
            return [.disconnect] + forgetPreparations()
        case .cannot:
            // Another heir may; its word is waited for like anybody's.
            search.canLead = false
            bereft = .asking(search)
            round += 1
            return [.askWhoLeads(search.places, round: round)]
        }
    }

    var searchDeadline: LocalInstant? {
        switch bereft {
        case .asking(let search): search.nextDeadline
        case .succeeding: nil
        case nil:
            if case .joined(let heard) = link, succession != nil {
                max(heard + Self.doubt, nextSearch)
            } else {
                nil
            }
        }
    }
}

/// What a node goes on with whose leader is lost.
package struct Inheritance: Equatable, Sendable {
    package var handover: Handover
    /// The leader before, and other heirs: they may not know of this one.
    package var others: [NextLeader]
    /// Of the leader before, where nobody followed; `nil`: the new term is one in company.
    package var reign: UInt64?
}

/// How often a room has lately led in vain: alone, and for a short while.
struct VainLeads: Equatable, Sendable {
    private(set) var times = 0
    private var beganAt: LocalInstant?

    mutating func begin(at now: LocalInstant) { beganAt = now }

    /// It follows again.
    mutating func end(at now: LocalInstant) {
        guard let begin = beganAt else { return }
        beganAt = nil
        times = now - begin < RoomMachine.vainLead ? times + 1 : 0
    }
}
