package import TuttiTiming

// What leaves the card is not what was committed: the room says so, and prepares itself anew.

extension RoomMachine {
    /// How often the line that sounds was given up because the card played something else.
    struct Strikes: Equatable, Sendable {
        var hash: ContentHash
        var change: RateChange
        var count: Int
        var latest: LocalInstant
    }

    /// So often a line is prepared anew. A room that is wrong again each time has a fault that
    /// preparing does not mend, and would be heard at the wrong place every few seconds: then
    /// silence is better. Another line begins from nothing.
    static let mostStrikes = 3
    /// After so long on its line a room has earned its strikes back.
    static let strikeMemory = Nanoseconds.seconds(60)

    /// By how much what should sound is off the committed line, as heard last; `nil`: nothing has to
    /// sound, or nobody can tell.
    package var deviation: Nanoseconds? { proof.deviation }

    mutating func heard(_ look: OutputLook, at now: LocalInstant) -> [RoomEffect] {
        switch proof.judge(look, at: now) {
        case .unchanged: return []
        case .cleared: return [.lineAlarm(.onLine, preparesAnew: false)]
        case .raised(let finding, let span, let isNews):
            let mending = mend(finding, span, at: now)
            let isMending = !mending.isEmpty
            return
                (isNews || isMending
                ? [.lineAlarm(finding, preparesAnew: isMending)] : []) + mending
        }
    }

    /// Gives up the voice that is not where it should be. The leader hears it, and offers the line
    /// again.
    private mutating func mend(
        _ finding: LineFinding, _ span: LineProof.Span?, at now: LocalInstant
    ) -> [RoomEffect] {
        guard let span else { return [] }
        switch finding {
        case .nothing, .onLine: return []
        // Preparing brings no bytes; the voice is on its line, and sounds when they come.
        case .starved: return []
        // Its line is over, so there is nothing to offer again.
        case .stray:
            drop(span.voice)
            return [.withdraw(span.voice)]
        case .off, .otherItem, .silent:
            // Silence disturbs nobody: the leader's patience is enough of a bound for it.
            if finding != .silent { strike(span, at: now) }
            drop(span.voice)
            failure = "this room \(finding.words)".limited(toBytes: RoomReport.longestText)
            return [.withdraw(span.voice)] + (isJoined ? [notReady(span.id, failure)] : [])
        }
    }

    private mutating func drop(_ voice: UInt64) {
        lines.removeAll { $0.voice == voice }
        proof.forget(voice)
    }

    private mutating func strike(_ span: LineProof.Span, at now: LocalInstant) {
        var count = 1
        if let strikes, strikes.hash == span.asset.hash, strikes.change == span.change,
            now - strikes.latest < Self.strikeMemory
        {
            count += strikes.count
        }
        strikes = Strikes(hash: span.asset.hash, change: span.change, count: count, latest: now)
    }

    /// Why this line is not prepared once more; `nil` where it is.
    func refusal(of order: Preparation) -> String? {
        guard let strikes, strikes.count >= Self.mostStrikes, strikes.hash == order.asset.hash,
            strikes.change == order.change
        else { return nil }
        return "the card played something else \(strikes.count) times, so the room is silent; seek "
            + "or play another item to try again"
    }

    /// While something has to sound, the output is looked at.
    mutating func planLook(at now: LocalInstant) {
        guard proof.isWatching else { return nextLook = LocalInstant(nanoseconds: .max) }
        if nextLook == LocalInstant(nanoseconds: .max) { nextLook = now + LineProof.interval }
    }
}
