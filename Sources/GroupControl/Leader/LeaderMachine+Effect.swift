package import TuttiTiming

// What came of a command.

extension LeaderMachine {
    /// What a command did, once the rooms have prepared what it asked for; `nil` until then.
    package func settledEffect(of command: GroupCommand, at now: GroupInstant) -> CommandEffect? {
        if case .handOver = command, successor != nil { return nil }
        return command.isForTheLine && !isSettled ? nil : effect(of: command, at: now)
    }

    /// Why what was accepted does not happen after all; `nil` where it does, or may.
    package func failure(of command: GroupCommand) -> String? {
        guard case .handOver(let room) = command, successor == nil, heir == nil else { return nil }
        return declined.map { "\"\(room)\" does not take over the lead: \($0)" }
    }

    /// The same, as far as it has come.
    package func effect(of command: GroupCommand, at now: GroupInstant) -> CommandEffect {
        var effect = present
        effect.rooms = loudness(after: command)
        switch command {
        case .volume(nil, _), .volumeBy(nil, _): effect.groupVolume = commonSettings.groupVolume
        default: break
        }
        // A pause is where it is; what it goes on with may still be looked for.
        let isElsewhere = session.phase == .paused && awaited != nil
        if command.isForTheLine, !isSettled || isElsewhere {
            effect.title = comingTitle ?? effect.title
        }
        guard command.isForTheLine, isSettled, !isIdle, !isElsewhere, let change = session.change,
            let asset = session.current
        else { return effect }
        effect.instant = change.instant
        effect.delay = change.instant - now
        // Of a line that is in force, where it is by now.
        effect.positionSeconds = session.itemFrame(at: now) / Double(asset.sampleRate)
        return effect
    }

    /// What a command did that changes nothing that is heard.
    package var present: CommandEffect {
        CommandEffect(phase: session.phase, title: session.current?.title ?? "")
    }

    /// Nothing is prepared that will change what is heard.
    private var isSettled: Bool {
        switch session.phase {
        case .waiting, .preparing: false
        case .playing: awaited == nil && pending?.starts != true
        case .paused, .stopped, .ended: true
        }
    }

    /// Of the item that is prepared, or waited for.
    private var comingTitle: String? {
        if let id = awaitedID, let position = queue.position(of: id) {
            return queue.entries[position].name
        }
        guard let pending, session.queue.indices.contains(pending.index) else { return nil }
        return session.queue[pending.index].title
    }

    private func loudness(after command: GroupCommand) -> [CommandEffect.Loudness] {
        let wanted: RoomID?
        switch command {
        case .volume(nil, _), .volumeBy(nil, _): return []
        case .volume(let room, _), .volumeBy(let room, _), .mute(let room, _): wanted = room
        default: return []
        }
        let present = Set(members.map(\.hello.room))
        var meant = present
        if let wanted {
            let found = try? find(wanted, among: present.union(settings.keys)).get()
            meant = found.map { [$0] } ?? []
        }
        return meant.sorted().map { room in
            let settings = rememberedSettings(of: room)
            return CommandEffect.Loudness(
                room: room.name, volume: settings.volume, isMuted: settings.muted)
        }
    }
}

extension GroupCommand {
    /// An answer does not wait longer for what comes of it.
    package var longestWait: Nanoseconds {
        if case .handOver = self { return LeaderMachine.handoverLimit + .seconds(1) }
        return CommandEffect.longestWait
    }

    /// Whether it changes where the group is in its queue, or whether that sounds.
    var isForTheLine: Bool {
        switch self {
        case .play, .pause, .seek, .seekBy, .seekTo, .rate, .next, .previous, .stop, .queue(.play):
            true
        case .volume, .volumeBy, .mute, .role, .latencyOffset, .handOver, .move, .separate, .queue:
            false
        }
    }
}
