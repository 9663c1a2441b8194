import TuttiTiming

// Common starts: a first start, a seek, a resume, the next item by command; and standing by for
// one while paused.

extension LeaderMachine {
    /// Begins to prepare a common start, in place of the one being prepared.
    ///
    /// - Parameters:
    ///   - starts: false to stand by at the frame until play.
    ///   - required: rooms that must have answered; `nil` for whoever is there.
    mutating func prepareStart(
        index: Int, frame: Int64, starts: Bool, required: Int? = nil, at now: GroupInstant
    ) {
        withdrawPending()
        let deadline = starts && required == nil ? now + configuration.preparationLimit : nil
        pending = PendingStart(
            index: index, frame: frame, starts: starts, required: required, deadline: deadline)
        for place in members.indices where members[place].takesPart {
            offerPending(to: place, isAwaited: !isRunning || members[place].isOnLine)
        }
    }

    mutating func offerPending(to place: Int, isAwaited: Bool, attempt: Int = 1) {
        guard let pending else { return }
        let preparation = makePreparation(of: pending.index, frame: pending.frame, change: nil)
        members[place].pending = Offer(
            id: preparation.id, isAwaited: isAwaited, attempt: attempt)
        send(.prepare(preparation), to: members[place].link)
    }

    mutating func withdrawPending() {
        for place in members.indices { withdraw(\.pending, of: place) }
        pending = nil
    }

    /// Starts when everybody awaited has answered, or the deadline has passed.
    mutating func decidePending(at now: GroupInstant) {
        guard let start = pending, start.starts else { return }
        let offers = members.filter(\.takesPart).map(\.pending)
        let ready = offers.count { $0?.standing == .ready }
        let failed = offers.count { $0?.standing == .failed }
        let required = start.required ?? (isRunning ? 0 : 1)
        let answered = ready + failed
        watchDeadline(isEnough: answered >= required, at: now)
        // Who has not come by then is not waited for.
        let isEnough = answered >= (pending?.isOverdue == true ? min(1, required) : required)

        let mustWait = members.contains(where: isWaitedFor)
        let mayStart =
            isEnough && (!mustWait || pending?.isOverdue == true) && !waitsForCard
        if mayStart, ready > 0 || offers.isEmpty {
            commit(start, at: now)
        } else if !offers.isEmpty, offers.allSatisfy({ $0.map(hasGivenUp) ?? false }), isEnough {
            skipped += 1
            skip(start.index, at: now)
        } else {
            showPreparing(isEnough: offers.count >= max(1, required))
        }
    }

    /// A first start into rooms none of which has a card yet would play to nobody. Later ones go on: a
    /// card that was lost comes back to the line.
    private var waitsForCard: Bool {
        guard pending?.required != nil else { return false }
        let ready = members.filter { $0.takesPart && $0.pending?.standing == .ready }
        return !ready.isEmpty && ready.allSatisfy { $0.report?.isCardLost == true }
    }

    /// For people; empty where no card is waited for.
    var cardWords: String {
        guard waitsForCard else { return "" }
        let names = members.filter { $0.takesPart && $0.report?.isCardLost == true }
            .map { "\($0.hello.room)" }.sorted()
        return names.count == 1
            ? "waits for the sound card of \(names[0])"
            : "waits for a sound card of \(names.count) rooms"
    }

    func hasGivenUp(_ offer: Offer) -> Bool {
        offer.standing == .failed && offer.attempt >= Self.mostAttempts
    }

    /// Sets the deadline once enough rooms have answered, and notices when it has passed.
    private mutating func watchDeadline(isEnough: Bool, at now: GroupInstant) {
        if pending?.isOverdue == false, pending?.deadline == nil, isEnough {
            // A first start: who has just joined is still measuring the clock.
            pending?.deadline = now + configuration.firstStartLimit
        }
        if let deadline = pending?.deadline, now >= deadline {
            pending?.isOverdue = true
            pending?.deadline = nil
        }
    }

    /// While nothing sounds yet, the phase says whether rooms are missing or preparing.
    private mutating func showPreparing(isEnough: Bool) {
        guard !isRunning else { return }
        let phase: SessionPhase = isEnough ? .preparing : .waiting
        if session.phase != phase {
            update(index: session.index, change: session.change, phase: phase)
        }
    }

    private mutating func commit(_ start: PendingStart, at now: GroupInstant) {
        let meeting = members.filter { $0.takesPart && $0.pending?.standing == .ready }
        guard let change = change(of: start, meeting: meeting, at: now) else { return }
        pending = nil
        returning = nil
        skipped = 0
        hasPlayed = true
        complaint = ""
        for place in members.indices {
            guard let offer = members[place].pending, offer.standing == .ready else { continue }
            // This commit replaces what sounds; an offer never committed has to be taken back.
            if members[place].isOnLine { members[place].line = nil }
            withdraw(\.line, of: place)
            members[place].pending = nil
            members[place].line = Offer(id: offer.id, standing: .committed)
            let commit = Commit(
                id: offer.id, index: start.index, hash: session.queue[start.index].hash,
                change: change, following: false)
            send(commit, to: members[place])
        }
        let late = members.indices.filter { members[$0].pending != nil }
        for place in late where isWaitedFor(members[place]) { giveUpWaiting(for: place) }
        update(index: start.index, change: change, phase: .playing)
        for place in late {
            let hadFailed = members[place].pending?.standing == .failed
            withdraw(\.line, of: place)
            withdraw(\.pending, of: place)
            // Who had failed is asked again at its own time.
            if !hadFailed { offerLine(to: place) }
        }
    }

    /// When a start is heard, and from where; `nil`: what is to go on is over before that, and what
    /// comes behind it begins at the new rate.
    private func change(
        of start: PendingStart, meeting: [LeaderMember], at now: GroupInstant
    ) -> RateChange? {
        let earliest = earliestInstant(for: meeting, at: now)
        guard start.goesOn, isRunning, let line = session.change, let asset = session.current
        else {
            return RateChange(
                itemFrame: start.frame, instant: earliest + chainDelay(of: start), rate: rate)
        }
        var change = wholeFrame(of: line, in: asset, from: earliest)
        change?.rate = rate
        return change.flatMap { $0.itemFrame < asset.frameCount ? $0 : nil }
    }

    /// Whoever looks at the log, the exit status or the queue hears that nobody played it, and why.
    mutating func noteSkipped(_ index: Int) {
        outbox.append(.skipped(session.queue[index], reason: failures(at: index)))
        if let position = queue.position(of: index) {
            queue.note(obstacle(at: index), at: position)
        }
    }

    /// Goes on behind an item that no room can play. A running line is kept when there is nothing
    /// behind it; otherwise the session stops and says why in the rooms' details.
    mutating func skip(_ index: Int, at now: GroupInstant) {
        let follower = queue.afterHand(index)
        let next: Int? = if case .item(let next) = follower { next } else { nil }
        let staysHere = isRunning && index == session.index
        if !staysHere, session.queue.indices.contains(index) { noteSkipped(index) }
        if let next, skipped < session.queue.count, !staysHere {
            if !isRunning { update(index: next, change: nil, phase: .preparing) }
            return prepareStart(index: next, frame: 0, starts: true, at: now)
        }
        complaint = failures(at: index)
        withdrawPending()
        skipped = 0
        if next == nil, follower != .none, !staysHere {
            awaited = AwaitedItem(
                place: .position(queue.position(of: index).map { $0 + 1 } ?? queue.count))
            if !isRunning { update(index: index, change: nil, phase: .preparing) }
            goToAwaited(at: now)
        } else if next == nil, hasPlayed, !isRunning {
            // Nothing is behind it: the queue has been played as far as it can be.
            update(index: session.index, change: session.change, phase: .ended)
            outbox.append(.ended)
        } else if !isRunning {
            update(index: 0, change: nil, phase: .stopped)
        }
    }
}
