import TuttiTiming

// Gapless: the next item is prepared while this one plays, and committed to begin at the very
// instant this one ends. The instant is known beforehand, so each room gets its commit as soon as
// it is ready, without waiting for the others.

extension LeaderMachine {
    /// Plans what follows when the end of the current item is near.
    mutating func planFollowUp(at now: GroupInstant) {
        guard isRunning, pending == nil, followUp == nil, let end = session.endInstant,
            let next = indexAfter(session.index), now >= end - Self.followLead,
            let rate = session.change?.rate
        else { return }
        followUp = FollowUp(
            index: next, change: RateChange(itemFrame: 0, instant: end, rate: rate))
        for place in members.indices where members[place].takesPart && members[place].isOnLine {
            offerFollowUp(to: place)
        }
    }

    mutating func offerFollowUp(to place: Int, attempt: Int = 1) {
        guard let followUp else { return }
        let preparation = makePreparation(
            of: followUp.index, frame: followUp.change.itemFrame, change: followUp.change)
        members[place].follow = Offer(id: preparation.id, attempt: attempt)
        send(.prepare(preparation), to: members[place].link)
    }

    mutating func commitFollowUp(to place: Int) {
        guard let followUp, let offer = members[place].follow else { return }
        let commit = Commit(
            id: offer.id, index: followUp.index, hash: session.queue[followUp.index].hash,
            change: followUp.change, following: true)
        send(commit, to: members[place])
    }

    /// Takes the next item back because the end of this one moves; it is planned again later.
    mutating func withdrawFollowUp() {
        withdrawChain()
        for place in members.indices { withdraw(\.follow, of: place) }
        followUp = nil
    }

    /// Lets every item end whose end has come, in order.
    mutating func passEnds(at now: GroupInstant) {
        while isRunning, let end = session.endInstant, now >= end {
            noteReturned(at: now)
            // Who has just taken over has planned nothing yet of what is over by now.
            if followUp == nil, returning != nil { planFollowUp(at: now) }
            if followUp != nil, canFollow {
                takeFollowUp()
            } else {
                restAtEnd(at: now)
            }
        }
    }

    /// Whether the next item begins in some room at its instant, or nobody is here to hear it. Where
    /// no room is ready yet, because the item became known late or takes long to fetch, it waits for
    /// them instead: its beginning would be lost everywhere.
    private var canFollow: Bool {
        let parts = members.filter(\.takesPart)
        return parts.isEmpty || returning != nil
            || parts.contains { $0.follow?.standing == .committed }
    }

    private var nobodyCanFollow: Bool {
        let parts = members.filter(\.takesPart)
        return !parts.isEmpty && parts.allSatisfy { $0.follow?.standing == .failed }
    }

    /// Makes the follow-up the line in force, from its own instant on.
    mutating func takeFollowUp() {
        guard let next = followUp else { return }
        followUp = chain.isEmpty ? nil : chain.removeFirst()
        skipped = 0
        update(index: next.index, change: next.change, phase: .playing)
        for place in members.indices {
            let follow = members[place].follow
            // A room still joining the item before has nothing to join any more.
            if !members[place].isOnLine { withdraw(\.line, of: place) }
            members[place].line = follow
            members[place].follow =
                members[place].chain.isEmpty ? nil : members[place].chain.removeFirst()
            if follow == nil, members[place].takesPart { offerLine(to: place) }
        }
    }

    /// The current item is over and nothing begins by itself.
    private mutating func restAtEnd(at now: GroupInstant) {
        guard let end = session.endInstant, let asset = session.current else { return }
        // The next leader takes it that the queue goes on without a break.
        giveUpSuccessor("nothing could follow an item that has ended; try again in a moment")
        let rest = RateChange(itemFrame: asset.frameCount, instant: end, rate: 0)
        let failedIndex = nobodyCanFollow ? followUp?.index : nil
        withdrawFollowUp()
        // It is over before it could go on at another rate.
        if pending?.goesOn == true { withdrawPending() }
        for place in members.indices {
            if members[place].isOnLine { members[place].line = nil }
            withdraw(\.line, of: place)
        }
        if pending != nil {
            // A seek is on its way; the rooms are silent until it is there.
            update(index: session.index, change: rest, phase: .preparing)
        } else if let failedIndex {
            update(index: session.index, change: rest, phase: .preparing)
            skipped += 1
            skip(failedIndex, at: now)
        } else if let next = indexAfter(session.index) {
            update(index: session.index, change: rest, phase: .preparing)
            prepareStart(index: next, frame: 0, starts: true, at: now)
        } else if queue.successor(of: session.index) != .none {
            update(index: session.index, change: rest, phase: .preparing)
            if awaited == nil {
                let position = queue.position(of: session.index).map { $0 + 1 } ?? queue.count
                awaited = AwaitedItem(place: .position(position))
                goToAwaited(at: now)
            }
        } else {
            update(index: session.index, change: rest, phase: .ended)
            outbox.append(.ended)
        }
    }
}
