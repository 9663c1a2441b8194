import Timing

// What a person asks for. Repeating a command is harmless; one that cannot be done is refused with
// a sentence and changes nothing.

extension LeaderMachine {
    mutating func outcome(of command: GroupCommand, at now: GroupInstant) -> CommandOutcome {
        switch command {
        case .play: play(at: now)
        case .pause: pause(at: now)
        case .seek(let seconds): seek(seconds, at: now)
        case .next: next(at: now)
        case .stop: stop()
        case .volume(let room, let percent): setVolume(percent, of: room)
        case .mute(let room, let muted): setMuted(muted, of: room)
        case .latencyOffset(let room, let offset): setOffset(offset, of: room)
        }
    }

    private mutating func play(at now: GroupInstant) -> CommandOutcome {
        switch session.phase {
        case .playing:
            // Whoever failed to join the line is asked again now.
            for place in members.indices where members[place].retryAt != nil {
                members[place].retryAt = now
            }
            retryFailed(at: now)
        case .stopped, .ended:
            guard !session.queue.isEmpty else {
                return .refused(reason: "the queue is empty; start the leader with a file to play")
            }
            skipped = 0
            complaint = ""
            update(index: 0, change: nil, phase: .preparing)
            prepareStart(index: 0, frame: 0, starts: true, at: now)
        case .waiting, .preparing, .paused:
            // By hand it starts with the rooms that are there.
            pending?.starts = true
            pending?.required = nil
            if pending?.isOverdue == false {
                let latest = now + configuration.preparationLimit
                let deadline = min(pending?.deadline ?? latest, latest)
                pending?.deadline = deadline
            }
        }
        return .accepted
    }

    private mutating func pause(at now: GroupInstant) -> CommandOutcome {
        switch session.phase {
        case .paused: break
        case .stopped, .ended: return nothingPlays
        case .playing: pauseLine(at: now)
        case .waiting, .preparing:
            guard let start = pending else { return nothingPlays }
            standBy(index: start.index, frame: start.frame, from: now)
        }
        return .accepted
    }

    /// Turns the start being prepared into a pause at its frame.
    private mutating func standBy(index: Int, frame: Int64, from earliest: GroupInstant) {
        pending?.starts = false
        pending?.required = nil
        pending?.deadline = nil
        pending?.isOverdue = false
        let instant = max(earliest, session.change?.instant ?? earliest)
        update(
            index: index, change: RateChange(itemFrame: frame, instant: instant, rate: 0),
            phase: .paused)
    }

    /// Stops the running line at a whole frame that every room can still meet.
    private mutating func pauseLine(at now: GroupInstant) {
        let sounding = members.filter { $0.takesPart && $0.isOnLine }
        let earliest = earliestInstant(for: sounding, at: now)
        if pending == nil, let end = session.endInstant, earliest >= end {
            // The item ends before anybody can pause it: pause the next one, or let it end.
            guard followUp != nil else { return }
            takeFollowUp()
        }
        guard let line = session.change, let asset = session.current,
            let place = pausePlace(of: line, in: asset, from: max(earliest, line.instant))
        else { return }
        withdrawFollowUp()
        for member in members.indices {
            if let offer = members[member].line, offer.standing == .committed {
                let commit = Commit(
                    id: offer.id, index: session.index, hash: asset.hash, change: place,
                    following: false)
                send(commit, to: members[member])
                members[member].line = nil
            }
            withdraw(\.line, of: member)
        }
        if let seek = pending {
            standBy(index: seek.index, frame: seek.frame, from: place.instant)
        } else {
            update(index: session.index, change: place, phase: .paused)
            let frame = min(place.itemFrame, asset.frameCount - 1)
            prepareStart(index: session.index, frame: frame, starts: false, at: now)
        }
    }

    /// The first whole frame at or after an instant, and when it is audible.
    private func pausePlace(
        of line: RateChange, in asset: AssetDescriptor, from earliest: GroupInstant
    ) -> RateChange? {
        let exact = line.itemFrame(at: earliest, sampleRate: asset.sampleRate)
        let nearest = Int64(saturating: exact)
        let above = Double(nearest) < exact ? nearest + 1 : nearest
        let frame = min(max(above, line.itemFrame), asset.frameCount)
        guard let instant = line.instant(ofFrame: frame, sampleRate: asset.sampleRate) else {
            return nil
        }
        return RateChange(itemFrame: frame, instant: max(instant, line.instant), rate: 0)
    }

    private mutating func seek(_ seconds: Double, at now: GroupInstant) -> CommandOutcome {
        guard seconds.isFinite else {
            return .refused(reason: "a position is a number of seconds, not \(seconds)")
        }
        guard session.phase != .stopped, session.phase != .ended else { return nothingPlays }
        let index = pending?.index ?? session.index
        let asset = session.queue[index]
        let last = max(0, asset.frameCount - Int64(asset.sampleRate) * Self.seekEndSeconds)
        let frame = min(max(Int64(saturating: seconds * Double(asset.sampleRate)), 0), last)
        move(to: index, frame: frame, at: now)
        return .accepted
    }

    private mutating func next(at now: GroupInstant) -> CommandOutcome {
        guard session.phase != .stopped, session.phase != .ended else { return nothingPlays }
        guard let index = indexAfter(pending?.index ?? session.index) else {
            return .refused(reason: "this is the last item; use stop to end it")
        }
        move(to: index, frame: 0, at: now)
        return .accepted
    }

    /// Goes elsewhere without changing whether it plays.
    private mutating func move(to index: Int, frame: Int64, at now: GroupInstant) {
        skipped = 0
        switch session.phase {
        case .playing:
            withdrawFollowUp()
            prepareStart(index: index, frame: frame, starts: true, at: now)
        case .paused:
            prepareStart(index: index, frame: frame, starts: false, at: now)
            standBy(index: index, frame: frame, from: now)
        case .waiting, .preparing:
            prepareStart(
                index: index, frame: frame, starts: true, required: pending?.required, at: now)
        case .stopped, .ended: break
        }
    }

    private mutating func stop() -> CommandOutcome {
        guard session.phase != .stopped else { return .accepted }
        for place in members.indices {
            members[place].forgetOffers()
            send(.stop, to: members[place].link)
        }
        pending = nil
        followUp = nil
        complaint = ""
        update(index: 0, change: nil, phase: .stopped)
        return .accepted
    }

    private var nothingPlays: CommandOutcome {
        .refused(reason: "nothing is playing; use play first")
    }
}

// MARK: Volume

extension LeaderMachine {
    private mutating func setVolume(_ percent: Int, of room: RoomID?) -> CommandOutcome {
        guard RoomSettings.volumes.contains(percent) else {
            return .refused(reason: "the volume is 0 to 100, not \(percent)")
        }
        return change(room) { old in (try? old.with(volume: percent)) ?? old }
    }

    private mutating func setMuted(_ muted: Bool, of room: RoomID?) -> CommandOutcome {
        change(room) { $0.with(muted: muted) }
    }

    /// Changes the settings of one room, or of all rooms there are and will be.
    private mutating func change(
        _ room: RoomID?, _ changed: (RoomSettings) -> RoomSettings
    ) -> CommandOutcome {
        let known = Set(members.map(\.hello.room)).union(settings.keys)
        if let room {
            guard known.contains(room) else { return noRoom(room, among: known) }
        } else {
            commonSettings = changed(commonSettings)
        }
        for name in known where room == nil || name == room {
            remember(changed(rememberedSettings(of: name)), of: name)
        }
        for member in members where room == nil || member.hello.room == room {
            send(.settings(rememberedSettings(of: member.hello.room)), to: member.link)
        }
        return .accepted
    }

    private func noRoom(_ room: RoomID, among known: Set<RoomID>) -> CommandOutcome {
        let names = known.map { "\"\($0)\"" }.sorted().prefix(20).joined(separator: ", ")
        return .refused(
            reason: "there is no room \"\(room)\" here; "
                + (names.isEmpty ? "no room has joined yet" : "there are \(names)"))
    }

    /// The room keeps its offset itself, since it belongs to what hangs on its output: one that is
    /// not here cannot be told.
    private mutating func setOffset(
        _ offset: LatencyOffset, of room: RoomID
    ) -> CommandOutcome {
        guard let member = members.first(where: { $0.hello.room == room }) else {
            return noRoom(room, among: Set(members.map(\.hello.room)))
        }
        guard member.takesPart else {
            return .refused(
                reason: "\"\(room)\" "
                    + (member.isLost ? "is not heard just now" : "has no output to delay"))
        }
        if member.report?.sync.isLatencyOffsetFixed == true {
            return .refused(
                reason: "the settings of \"\(room)\" give its offset (latency-offset-us); "
                    + "change it there, or remove it to set it from here")
        }
        send(.latencyOffset(offset), to: member.link)
        return .accepted
    }

    private mutating func remember(_ new: RoomSettings, of room: RoomID) {
        if settings[room] == nil, settings.count >= Self.mostSettings {
            let present = Set(members.map(\.hello.room))
            if let absent = settings.keys.filter({ !present.contains($0) }).min() {
                settings[absent] = nil
            }
        }
        settings[room] = new
    }
}
