package import TuttiTiming

// What a person asks for. Repeating a command is harmless; one that cannot be done is refused with
// a sentence and changes nothing.

extension LeaderMachine {
    mutating func outcome(of command: GroupCommand, at now: GroupInstant) -> CommandOutcome {
        if let refusal = refusalAfterHandover ?? refusalAfterWaking(at: now) { return refusal }
        return switch command {
        case .play: play(at: now)
        case .pause: pause(at: now)
        case .seek(let seconds): seek(.time(seconds), at: now)
        case .seekBy(let seconds): seek(.by(seconds), at: now)
        case .seekTo(let share): seek(.share(share), at: now)
        case .rate(let rate): setRate(rate, at: now)
        case .next: next(at: now)
        case .previous: previous(at: now)
        case .stop: stop()
        case .volume(let room, let percent): setVolume(percent, of: room)
        case .volumeBy(let room, let percent): changeVolume(by: percent, of: room)
        case .mute(let room, let muted): setMuted(muted, of: room)
        case .role(let room, let role): change(room) { $0.with(role: role) }
        case .latencyOffset(let room, let offset): setOffset(offset, of: room)
        case .handOver(let room): handOver(to: room, at: now)
        case .move(let room, let next): move(room, to: next)
        case .separate(let room): separate(room)
        case .queue(let change): edit(change, at: now)
        }
    }

    /// The item that a command needs the bytes of; `nil` where it needs none, or goes on to another
    /// where one cannot be played.
    package func needed(for command: GroupCommand, at now: GroupInstant) -> AssetDescriptor? {
        let current = pending?.index ?? session.index
        var index: Int?
        switch command {
        case .seek, .seekBy, .seekTo, .rate: index = isIdle ? nil : current
        case .previous: index = isIdle ? nil : previousIndex(from: current, at: now)
        case .play:
            // Of what the rooms stand by at, every byte may have been read already.
            index =
                isIdle
                ? (queue.count == 1 && coming == 0 ? 0 : nil)
                : session.phase == .paused && !isStandingBy ? current : nil
        case .queue(.play(let id)): index = queue.index(of: id)
        case .queue, .pause, .next, .stop, .volume, .volumeBy, .mute, .role, .latencyOffset,
            .handOver, .move, .separate:
            break
        }
        guard let index, session.queue.indices.contains(index) else { return nil }
        return session.queue[index]
    }

    /// The item that plays because of a command: whether its file is still the one that was read is
    /// to be found out first.
    package func destination(of command: GroupCommand, at now: GroupInstant) -> AssetDescriptor? {
        if let item = needed(for: command, at: now) { return item }
        let current = pending?.index ?? session.index
        var index: Int?
        switch command {
        case .play where session.phase != .playing:
            if case .item(let first) = queue.first(from: beginning, wraps: true) {
                index = isIdle ? first : current
            }
        case .next:
            if !isIdle, case .item(let next) = queue.afterHand(current) { index = next }
        default: break
        }
        return index.flatMap { session.queue.indices.contains($0) ? session.queue[$0] : nil }
    }

    /// Whether every room has prepared what play goes on with.
    private var isStandingBy: Bool {
        pending != nil
            && members.allSatisfy { !$0.takesPart || $0.pending?.standing == .ready }
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
            let first = queue.first(from: beginning, wraps: true)
            guard first != .none else { return nothingToPlay }
            let (position, index) = (beginning, isHalted ? session.index : 0)
            skipped = 0
            complaint = ""
            if case .item(let index) = first {
                update(index: index, change: nil, phase: .preparing)
                prepareStart(index: index, frame: 0, starts: true, at: now)
            } else {
                update(index: index, change: nil, phase: .preparing)
                awaited = AwaitedItem(place: .position(position))
                goToAwaited(at: now)
            }
        case .waiting, .preparing, .paused:
            // By hand it starts with the rooms that are there.
            pending?.starts = true
            pending?.required = nil
            awaited?.required = nil
            if session.phase == .paused { offerAgain() }
            if session.phase == .paused, pending == nil, awaited != nil {
                update(index: session.index, change: session.change, phase: .preparing)
            }
            if pending?.isOverdue == false {
                let latest = now + configuration.preparationLimit
                let deadline = min(pending?.deadline ?? latest, latest)
                pending?.deadline = deadline
            }
        }
        return .accepted
    }

    /// Who failed to stand by is asked once more: the file may be back.
    private mutating func offerAgain() {
        for place in members.indices
        where members[place].takesPart && members[place].pending?.standing == .failed {
            members[place].retryAt = nil
            offerPending(to: place, isAwaited: true)
        }
    }

    private mutating func pause(at now: GroupInstant) -> CommandOutcome {
        switch session.phase {
        case .paused: break
        case .stopped, .ended: return nothingPlays
        case .playing: pauseLine(at: now)
        case .waiting, .preparing:
            guard let start = pending else {
                return awaited == nil ? nothingPlays : pauseWaiting(at: now)
            }
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

    /// What is waited for begins paused.
    private mutating func pauseWaiting(at now: GroupInstant) -> CommandOutcome {
        awaited?.required = nil
        let rest = RateChange(itemFrame: 0, instant: now, rate: 0)
        update(index: session.index, change: session.change ?? rest, phase: .paused)
        return .accepted
    }

    /// Stops the running line at a whole frame that every room can still meet.
    private mutating func pauseLine(at now: GroupInstant) {
        // It stops where it is, and goes on from there at the new rate.
        if pending?.goesOn == true { withdrawPending() }
        let sounding = members.filter { $0.takesPart && $0.isOnLine }
        let earliest = earliestInstant(for: sounding, at: now)
        if pending == nil, let end = session.endInstant, earliest >= end {
            // The item ends before anybody can pause it: pause the next one, or let it end.
            guard followUp != nil else { return }
            takeFollowUp()
        }
        guard let line = session.change, let asset = session.current,
            var place = wholeFrame(of: line, in: asset, from: max(earliest, line.instant))
        else { return }
        place.rate = 0
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

    /// The first whole frame of a line at or after an instant, and when it is audible.
    func wholeFrame(
        of line: RateChange, in asset: AssetDescriptor, from earliest: GroupInstant
    ) -> RateChange? {
        let exact = line.itemFrame(at: earliest, sampleRate: asset.sampleRate)
        let nearest = Int64(saturating: exact)
        let above = Double(nearest) < exact ? nearest + 1 : nearest
        let frame = min(max(above, line.itemFrame), asset.frameCount)
        guard let instant = line.instant(ofFrame: frame, sampleRate: asset.sampleRate) else {
            return nil
        }
        return RateChange(
            itemFrame: frame, instant: max(instant, line.instant), rate: line.rate)
    }

    /// Where a seek goes to.
    private enum SeekTarget {
        case time(Double)
        case by(Double)
        case share(Double)
    }

    private mutating func seek(_ target: SeekTarget, at now: GroupInstant) -> CommandOutcome {
        guard session.phase != .stopped, session.phase != .ended else { return nothingPlays }
        let index = pending?.index ?? session.index
        guard session.queue.indices.contains(index) else { return stillReading }
        let asset = session.queue[index]
        let wanted: Double
        switch target {
        case .time(let seconds): wanted = seconds * Double(asset.sampleRate)
        case .by(let seconds): wanted = place(at: now) + seconds * Double(asset.sampleRate)
        case .share(let share): wanted = share * Double(asset.frameCount)
        }
        guard wanted.isFinite else {
            return .refused(reason: "a position is a finite number, and this one is not")
        }
        let last = max(0, asset.frameCount - Int64(asset.sampleRate) * Self.seekEndSeconds)
        move(to: index, frame: min(max(Int64(saturating: wanted), 0), last), at: now)
        return .accepted
    }

    /// The frame of the current item that is audible now, or that playing will begin at: a second
    /// relative seek counts from where the first one goes.
    private func place(at now: GroupInstant) -> Double {
        if let pending, !pending.goesOn { return Double(pending.frame) }
        guard let change = session.change, let asset = session.current else { return 0 }
        let frame = change.itemFrame(at: max(now, change.instant), sampleRate: asset.sampleRate)
        return min(max(0, frame), Double(asset.frameCount))
    }

    /// What sounds goes on at another rate, from where it is then; anything else is prepared anew.
    private mutating func setRate(_ rate: Double, at now: GroupInstant) -> CommandOutcome {
        guard Self.rates.contains(rate) else {
            let (slowest, fastest) = (Self.rates.lowerBound, Int(Self.rates.upperBound))
            return .refused(reason: "a group plays at a rate of \(slowest) to \(fastest)")
        }
        if pending?.goesOn == true { withdrawPending() }
        let isInForce = !isRunning || pending != nil || session.change?.rate == rate
        guard rate != self.rate || !isInForce else { return .accepted }
        self.rate = rate
        if let start = pending {
            prepareStart(
                index: start.index, frame: start.frame, starts: start.starts,
                required: start.required, at: now)
        } else if !isInForce {
            goOn(at: now)
        }
        return .accepted
    }

    /// Prepares to let the line in force go on at ``rate``.
    private mutating func goOn(at now: GroupInstant) {
        guard let line = session.change, let asset = session.current else { return }
        withdrawFollowUp()
        // What is prepared has to begin there or before.
        let sounding = members.filter { $0.takesPart && $0.isOnLine }
        let earliest = earliestInstant(for: sounding, at: now)
        let frame = line.itemFrame(at: earliest, sampleRate: asset.sampleRate)
        prepareStart(
            index: session.index, frame: min(Int64(saturating: frame), asset.frameCount - 1),
            starts: true, at: now)
        pending?.goesOn = true
    }

    private mutating func next(at now: GroupInstant) -> CommandOutcome {
        guard session.phase != .stopped, session.phase != .ended else { return nothingPlays }
        let current = pending?.index ?? session.index
        switch queue.afterHand(current) {
        case .item(let index): move(to: index, frame: 0, at: now)
        case .unread, .unlisted:
            if awaited != nil { return stillReading }
            let position = queue.position(of: current).map { $0 + 1 } ?? queue.count
            awaited = AwaitedItem(place: .position(position), required: pending?.required)
            goToAwaited(at: now)
        case .none: return nothingFollows(current)
        }
        return .accepted
    }

    private mutating func previous(at now: GroupInstant) -> CommandOutcome {
        guard session.phase != .stopped, session.phase != .ended else { return nothingPlays }
        let index = pending?.index ?? session.index
        guard session.queue.indices.contains(index) else { return stillReading }
        move(to: previousIndex(from: index, at: now), frame: 0, at: now)
        return .accepted
    }

    private func previousIndex(from index: Int, at now: GroupInstant) -> Int {
        guard session.queue.indices.contains(index) else { return index }
        let begun = place(at: now) / Double(session.queue[index].sampleRate)
        return (begun < Self.restartSeconds ? queue.before(index) : nil) ?? index
    }

    /// Goes elsewhere without changing whether it plays.
    ///
    /// - Parameter required: rooms that a first start waits for; `nil`: as before.
    mutating func move(
        to index: Int, frame: Int64, required: Int? = nil, at now: GroupInstant
    ) {
        skipped = 0
        awaited = nil
        switch session.phase {
        case .playing:
            withdrawFollowUp()
            prepareStart(index: index, frame: frame, starts: true, at: now)
        case .paused:
            prepareStart(index: index, frame: frame, starts: false, at: now)
            standBy(index: index, frame: frame, from: now)
        case .waiting, .preparing:
            // Nothing sounds yet: this is the item that people are told of.
            update(index: index, change: nil, phase: session.phase)
            prepareStart(
                index: index, frame: frame, starts: true, required: required ?? pending?.required,
                at: now)
        case .stopped, .ended: break
        }
    }

    private mutating func stop() -> CommandOutcome {
        guard session.phase != .stopped else { return .accepted }
        // A queue that has been played begins anew.
        let place = session.phase == .ended ? 0 : pending?.index ?? session.index
        for place in members.indices {
            members[place].forgetOffers()
            send(.stop, to: members[place].link)
        }
        pending = nil
        followUp = nil
        chain = []
        awaited = nil
        complaint = ""
        update(index: place, change: nil, phase: .stopped)
        return .accepted
    }

    /// Whether somebody has stopped it: its place in the queue stays. Where it has stopped by
    /// itself nothing could be played.
    var isHalted: Bool { session.phase == .stopped && complaint.isEmpty }

    /// The position that a group which plays nothing begins at.
    private var beginning: Int { isHalted ? queue.position(of: session.index) ?? 0 : 0 }

    private var nothingToPlay: CommandOutcome {
        .refused(
            reason: queue.count == 0
                ? "the queue is empty; add something with tutti add FILE"
                : "nothing in the queue can be played; tutti queue says why")
    }

    private func nothingFollows(_ index: Int) -> CommandOutcome {
        let behind = queue.count - (queue.position(of: index).map { $0 + 1 } ?? queue.count)
        let reason =
            switch behind {
            case ...0: "this is the last item; use stop to end it"
            case 1: "the only item after this one cannot be played; tutti queue says why"
            default:
                "none of the \(behind) items after this one can be played; tutti queue says why"
            }
        return .refused(reason: reason)
    }

    private var stillReading: CommandOutcome {
        .refused(reason: "that item is still being read; try again in a moment")
    }

    private var nothingPlays: CommandOutcome {
        queue.count == 0 && coming == 0
            ? nothingToPlay : .refused(reason: "nothing is playing; use play first")
    }
}
