import TuttiTiming

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
                        noticePort: configuration.noticePort,
                        doorPort: configuration.doorPort, mayLead: configuration.mayLead,
                        settings: settings)))
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
        // Without a goodbye.
        case .connecting, .greeting, .joined: unlink(reason, at: now) + seek(at: now)
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
        holdBack(at: now)
        return forgetPreparations() + (wasJoined ? [.disconnected(reason: reason)] : [])
    }

    mutating func forgetPreparations() -> [RoomEffect] {
        nextReport = LocalInstant(nanoseconds: .max)
        let voices = preparations.filter(\.hasVoice).map { RoomEffect.withdraw($0.order.id) }
        preparations = []
        return voices
    }

    /// The group has another leader, and goes on: so does what sounds here.
    mutating func follow(_ next: NextLeader, at now: LocalInstant) -> [RoomEffect] {
        vainLeads.end(at: now)
        bereft = nil
        // Nodes that send a room to each other are not followed around without a pause.
        let isAgain = sentOnAt.map { now < $0 + Self.longestBackOff } ?? false
        sentOnAt = now
        link = .waiting(until: isAgain ? now + Self.shortestBackOff : now)
        backOff = Self.shortestBackOff
        return [.disconnect] + forgetPreparations() + [.follow(next)]
    }

    /// Whether what plays may go on with this leader: its session is the one that it is of, or the
    /// one that it became under the next leader.
    private func continues(_ welcome: Welcome) -> Bool {
        guard let membership, membership.groupClockOrigin == welcome.groupClockOrigin else {
            return false
        }
        // Of two leaders of one session that have met, the one that goes on may have the lower term.
        return welcome.term != membership.term
            || welcome.groupClockEpoch == membership.groupClockEpoch
    }

    mutating func leave() -> [RoomEffect] {
        let farewell: [RoomEffect] = isLinked ? [.send(.goodbye)] : []
        let end: [RoomEffect] = link == .left ? [] : [.stop, .disconnect]
        link = .left
        bereft = nil
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
                .latencyOffset, .stop, .alive, .lead, .datagramKey, .succession,
                .separate:
                return []  // nothing counts before the welcome
            }
        case .joined:
            link = .joined(heard: now)
            // What was only silent is there.
            if case .asking = bereft { bereft = nil }
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
        case .settings(let settings):
            self.settings = settings
            return [.settings(settings)]
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
            succession = nil
            bereft = nil
            return [.stop] + lose("the leader has left", at: now)
        case .lead(let handover):
            guard !awaitsState, let session else {
                return [.send(.lead(.cannot(reason: "it does not know the session yet")))]
            }
            return [.lead(handover, session)]
        case .follow(let next): return follow(next, at: now)
        case .datagramKey(let key): return [.datagramKey(key)]
        case .succession(let next):
            succession = next
            return []
        case .separate:
            forgetVoices()
            succession = nil
            // The node says when it leads.
            link = .waiting(until: now + Self.answerLimit)
            backOff = Self.shortestBackOff
            nextReport = LocalInstant(nanoseconds: .max)
            return [.disconnect, .stop, .leadAlone]
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
        bereft = nil
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
        for place in lines.indices { lines[place].isAdopted = false }
        if membership?.groupClockOrigin != welcome.groupClockOrigin { clock = .none }
        if membership?.groupClockEpoch != welcome.groupClockEpoch { succession = nil }
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
