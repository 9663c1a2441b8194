import Timing

// The link to the leader: made, greeted, lost, made again.

extension RoomMachine {
    mutating func connected(at now: LocalInstant) -> [RoomEffect] {
        guard case .connecting = link else {
            // An attempt given up meanwhile; the next one is planned.
            return isLinked ? [] : [.disconnect]
        }
        link = .greeting(since: now)
        return [
            .send(
                .hello(
                    Hello(
                        room: configuration.room, instance: configuration.instance,
                        outputLatency: configuration.outputLatency,
                        hasOutput: configuration.hasOutput,
                        noticePort: configuration.noticePort)))
        ]
    }

    private var isLinked: Bool {
        switch link {
        case .greeting, .joined: true
        case .waiting, .connecting, .left: false
        }
    }

    mutating func closed(_ reason: String, at now: LocalInstant) -> [RoomEffect] {
        switch link {
        case .waiting, .left: []
        case .connecting, .greeting, .joined: unlink(reason, at: now)
        }
    }

    /// Ends a link that is of no use any more.
    mutating func lose(_ reason: String, at now: LocalInstant) -> [RoomEffect] {
        [.disconnect] + unlink(reason, at: now)
    }

    /// Forgets what only a leader can bring to an end; what sounds goes on.
    private mutating func unlink(_ reason: String, at now: LocalInstant) -> [RoomEffect] {
        let wasJoined = isJoined
        link = .waiting(until: now + backOff)
        backOff = min(backOff + backOff, Self.longestBackOff)
        return forgetPreparations() + (wasJoined ? [.disconnected(reason: reason)] : [])
    }

    private mutating func forgetPreparations() -> [RoomEffect] {
        nextReport = LocalInstant(nanoseconds: .max)
        let voices = preparations.filter(\.hasVoice).map { RoomEffect.withdraw($0.order.id) }
        preparations = []
        return voices
    }

    /// The group has another leader, and goes on: so does what sounds here.
    private mutating func follow(_ next: NextLeader, at now: LocalInstant) -> [RoomEffect] {
        link = .waiting(until: now)
        backOff = Self.shortestBackOff
        return [.disconnect] + forgetPreparations() + [.follow(next)]
    }

    /// Whether what plays may go on with this leader: its session is the one that it is of, or the
    /// one that it became under the next leader.
    private func continues(_ welcome: Welcome) -> Bool {
        guard let membership, membership.groupClockOrigin == welcome.groupClockOrigin else {
            return false
        }
        return welcome.term == membership.term
            ? welcome.groupClockEpoch == membership.groupClockEpoch
            : welcome.term > membership.term
    }

    mutating func leave() -> [RoomEffect] {
        let farewell: [RoomEffect] = isLinked ? [.send(.goodbye)] : []
        let end: [RoomEffect] = link == .left ? [] : [.stop, .disconnect]
        link = .left
        forgetVoices()
        return farewell + end
    }

    mutating func received(_ message: LeaderToRoom, at now: LocalInstant) -> [RoomEffect] {
        switch link {
        case .waiting, .connecting, .left:
            return []  // left over from a link that is gone
        case .greeting:
            switch message {
            case .welcome(let welcome): return welcomed(welcome, at: now)
            case .refused(let reason):
                backOff = Self.longestBackOff
                return [.refused(reason: reason)] + lose(reason, at: now)
            case .goodbye: return lose("the leader has left", at: now)
            case .follow(let next): return follow(next, at: now)
            case .prepare, .commit, .withdraw, .settings, .state, .progress, .queue,
                .latencyOffset, .stop, .alive, .lead:
                return []  // nothing counts before the welcome
            }
        case .joined:
            link = .joined(heard: now)
            return obey(message, at: now)
        }
    }

    private mutating func obey(_ message: LeaderToRoom, at now: LocalInstant) -> [RoomEffect] {
        switch message {
        case .welcome, .alive: return []
        case .refused(let reason):
            backOff = Self.longestBackOff
            return [.refused(reason: reason)] + lose(reason, at: now)
        case .prepare(let order): return prepare(order)
        case .commit(let commit): return commit.isPause ? pause(commit) : start(commit, at: now)
        case .withdraw(let id): return withdraw(id)
        case .settings(let settings): return [.settings(settings)]
        case .state(let state): return take(state)
        case .progress(let progress): return take(progress)
        case .queue(let change): return take(change)
        case .latencyOffset(let offset): return [.latencyOffset(offset)]
        case .stop:
            forgetVoices()
            return [.stop]
        case .goodbye:
            // Left on purpose: the music is meant to end. A leader that dies says nothing.
            forgetVoices()
            return [.stop] + lose("the leader has left", at: now)
        case .lead(let handover):
            guard !awaitsState, let session else {
                return [.send(.lead(.cannot(reason: "it does not know the session yet")))]
            }
            return [.lead(handover, session)]
        case .follow(let next): return follow(next, at: now)
        }
    }

    private mutating func welcomed(_ welcome: Welcome, at now: LocalInstant) -> [RoomEffect] {
        guard welcome.version == protocolVersion else {
            backOff = Self.longestBackOff
            let reason =
                "the leader speaks version \(welcome.version), this room \(protocolVersion)"
            return [.refused(reason: reason)] + lose(reason, at: now)
        }
        link = .joined(heard: now)
        backOff = Self.shortestBackOff
        nextReport = now + Self.firstReport
        reported = (.joining, .nothing, now)
        awaitsState = true
        var effects: [RoomEffect] = []
        if !continues(welcome) {
            if !lines.isEmpty { effects.append(.stop) }
            forgetVoices()
            session = nil
        }
        if membership?.groupClockOrigin != welcome.groupClockOrigin { clock = .none }
        membership = welcome
        return effects + [.joined(welcome)] + take(welcome.room)
    }

    mutating func forgetVoices() {
        preparations = []
        lines = []
        lastPause = nil
        isPaused = false
        failure = ""
        proof.forgetAll()
        strikes = nil
    }
}
