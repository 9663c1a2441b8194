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
