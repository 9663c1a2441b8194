import TuttiGroupControl
import TuttiTiming

/// What outlives a leader: on its disk, with its heirs, and in what it answers.
extension LeaderCore {
    /// What there is to keep of the session, beside its files.
    struct Keepsake: Sendable {
        var handover: Handover
        /// Also of rooms that are not here.
        var settings: [RoomID: RoomSettings]
        var session: SessionState
        /// Of the item that plays, or is about to, from 0.
        var position: Int?
        var seconds: Double
    }

    /// `nil` once it has taken its leave.
    var keepsake: Keepsake? {
        guard !hasLeft else { return nil }
        let status = machine.status(at: clock.groupNow(), hasPoints: false)
        return Keepsake(
            handover: machine.handover, settings: machine.rememberedRooms,
            session: machine.session,
            position: status.count > 0 ? status.index : nil, seconds: status.positionSeconds)
    }

    /// Where rooms hand out what they have fetched.
    var doors: [NextLeader] { machine.doors }

    var sessionID: UInt64 { machine.configuration.session }

    /// See ``LeaderMachine/heirRooms``.
    var heirs: [RoomID] { machine.heirRooms }

    /// Whether a room was asked to lead and has not answered.
    var isHandingOver: Bool { machine.isHandingOver }

    /// What this leader answers who asks who leads.
    var sight: LeadSight? {
        guard var sight = machine.sight else { return nil }
        // Later its node knows better, or nobody does.
        if let retiredAt, ContinuousClock.now - retiredAt > Self.sightAfterwards {
            sight.lead = .none
        }
        if hasLeft, retiredAt == nil { sight.lead = .none }
        return sight
    }

    /// So long after it has handed over a leader says who leads now.
    private static let sightAfterwards = Duration.nanoseconds(LeaderMachine.handoverLimit.count)
}

// MARK: Giving up

extension LeaderCore {
    /// Whether anybody would miss the group.
    enum Use {
        case asked
        /// Begun by itself, and not used yet.
        case unasked
        /// It was led in that term before the power failed, and nobody has done anything with it
        /// since.
        case restored(term: UInt64)
    }

    /// Nobody asked for this group: it ends where another one is found before it is used.
    ///
    /// - Parameter term: in which it was led last, if it was restored.
    func mayBeGivenUp(restoredFrom term: UInt64? = nil) {
        use = term.map(Use.restored) ?? .unasked
    }

    /// See ``GroupStatus/sessionTerm``.
    var sessionTerm: UInt64 {
        if case .restored(let term) = use { term } else { machine.session.term }
    }

    private var isAsked: Bool { if case .asked = use { true } else { false } }

    var canBeGivenUp: Bool { !isAsked && !isRetired && status(hasPoints: false).isUnused }

    /// It was restored after a loss of power, and nobody has done anything with it since.
    var isUntouched: Bool { !isAsked && !isRetired && !status(hasPoints: false).isUnused }

    /// - Returns: false where it is used by now.
    func giveUp(before next: NextLeader) -> Bool {
        guard !isAsked, !isRetired else { return false }
        retire(before: next)
        return true
    }
}
