import TuttiChance
import TuttiTiming

// What people do to the queue while it plays. What sounds is not disturbed by any of it, unless it is
// removed itself; and what is about to begin has begun, as far as an edit is concerned: rooms could
// not be told in time.

extension LeaderMachine {
    /// An item that begins so soon is not exchanged for another any more: that one could not be
    /// opened in every room by then, and a hole would be heard.
    static let editLead = chainLead

    mutating func edit(_ edit: QueueEdit, at now: GroupInstant) -> CommandOutcome {
        var entries = queue.entries
        switch edit {
        case .remove(let ids):
            let gone = Set(ids)
            entries.removeAll { gone.contains($0.id) }
            guard entries.count == queue.count - gone.count else { return isGone }
        case .move(let id, let target):
            guard let position = queue.position(of: id) else { return isGone }
            let entry = entries.remove(at: position)
            entries.insert(entry, at: min(max(0, target), entries.count))
        case .clear:
            let kept = Set([playingID].compactMap(\.self) + pinned(at: now))
            entries.removeAll { !kept.contains($0.id) }
        case .reorder(let seed):
            let fixed = (pinned(at: now).last ?? placeID).flatMap { queue.position(of: $0) }
            var chance = SplitMix64(seed: seed)
            // Fisher and Yates; a queue is so short that the remainder favours nobody.
            let first = fixed.map { $0 + 1 } ?? 0
            for place in stride(from: entries.count - 1, to: first, by: -1) {
                let other = Int(chance.next() % UInt64(place - first + 1))
                entries.swapAt(place, first + other)
            }
        case .repeating(let mode):
            queue.setRepeats(mode)
        case .play(let id):
            return play(id, at: now)
        }
        setEntries(entries, at: now)
        return .accepted
    }

    private var isGone: CommandOutcome {
        .refused(reason: "that item is not in the queue any more; look with tutti queue")
    }

    private mutating func play(_ id: QueueEntry.ID, at now: GroupInstant) -> CommandOutcome {
        guard let position = queue.position(of: id) else { return isGone }
        let entry = queue.entries[position]
        switch entry.state {
        case .unplayable(let reason):
            return .refused(reason: "\"\(entry.name)\" cannot be played: \(reason)")
        case .unread:
            if let obstacle = entry.obstacle {
                return .refused(reason: "\"\(entry.name)\" cannot be played now: \(obstacle)")
            }
            if isIdle {
                update(index: session.index, change: nil, phase: .preparing)
            } else if session.phase == .paused {
                update(index: session.index, change: session.change, phase: .preparing)
            }
            awaited = AwaitedItem(place: .entry(id), required: pending?.required)
        case .known:
            guard let index = queue.index(at: position) else { return isGone }
            if isIdle {
                complaint = ""
                update(index: index, change: nil, phase: .preparing)
                prepareStart(index: index, frame: 0, starts: true, at: now)
            } else {
                let isPaused = session.phase == .paused
                move(to: index, frame: 0, at: now)
                if isPaused { _ = outcome(of: .play, at: now) }
            }
        }
        return .accepted
    }

    // MARK: What stays where it is

    var isIdle: Bool { session.phase == .stopped || session.phase == .ended }

    /// The item that plays or is about to, by its identity.
    var playingID: QueueEntry.ID? {
        isIdle ? nil : queue.id(of: pending?.index ?? session.index)
    }

    /// The item that plays or is about to, or that somebody has stopped.
    var placeID: QueueEntry.ID? { isHalted ? queue.id(of: session.index) : playingID }

    /// What follows so soon that it stays, in order.
    func pinned(at now: GroupInstant) -> [QueueEntry.ID] {
        guard isRunning, pending == nil, members.contains(where: { $0.follow != nil }) else {
            return []
        }
        return ([followUp].compactMap(\.self) + chain)
            .prefix { $0.change.instant - now < Self.editLead }
            .compactMap { queue.id(of: $0.index) }
    }

    /// The only way in which the queue changes: keeps hold of what plays, is prepared or follows,
    /// wherever it is now, and tells the rooms.
    mutating func setEntries(_ wished: [QueueEntry], at now: GroupInstant) {
        let before = queue
        let currentID = currentID
        let pendingID = pending.flatMap { before.id(of: $0.index) }
        let planned = ([followUp].compactMap(\.self) + chain).map { before.id(of: $0.index) }
        let held = pinned(at: now)
        let old = session.queue
        queue.set(withPinned(held, behind: currentID, in: wished))
        session.queue = queue.assets
        sayRemoved(before)
        keepAwaited(before)

        let current = currentID.flatMap { queue.index(of: $0) }
        let target = pendingID.flatMap { queue.index(of: $0) }
        // While an item is over, or has not begun, another may be what counts.
        let needsCurrent = isRunning || !isIdle && pending == nil && awaited == nil
        if needsCurrent, current == nil, currentID != nil {
            goOn(without: currentID, pendingID, before, from: old)
        } else {
            session.index = current ?? target ?? max(0, min(session.index, session.queue.count - 1))
            tellQueue(from: old)
            keepPlanned(planned, held)
            keepPending(pendingID, target, before)
        }
        goToAwaited(at: now)
    }

    private mutating func sayRemoved(_ before: PlayQueue) {
        // An edit either adds or removes.
        guard queue.count < before.count else { return }
        let kept = Set(queue.entries.map(\.id))
        outbox.append(.removed(before.entries.map(\.id).filter { !kept.contains($0) }))
    }

    /// What is about to begin stays behind what plays.
    private func withPinned(
        _ held: [QueueEntry.ID], behind current: QueueEntry.ID?, in wished: [QueueEntry]
    ) -> [QueueEntry] {
        guard !held.isEmpty, let current, queue.repeats != .one else { return wished }
        let kept = held.filter { id in id != current && wished.contains { $0.id == id } }
        guard !kept.isEmpty, wished.contains(where: { $0.id == current }) else { return wished }
        let moved = kept.compactMap { id in wished.first { $0.id == id } }
        var entries = wished.filter { !kept.contains($0.id) }
        guard let place = entries.firstIndex(where: { $0.id == current }) else { return wished }
        // Behind the last item of a queue that repeats comes the first.
        let order = wished.map(\.id)
        let isInPlace = zip([current] + kept, kept).allSatisfy { first, second in
            guard let at = order.firstIndex(of: first) else { return false }
            return order[(at + 1) % order.count] == second
        }
        if isInPlace { return wished }
        entries.insert(contentsOf: moved, at: place + 1)
        return entries
    }

    /// What is waited for may have moved, or be gone: then what came behind it is waited for.
    private mutating func keepAwaited(_ before: PlayQueue) {
        guard let awaited else { return }
        switch awaited.place {
        case .entry(let id) where queue.position(of: id) == nil:
            let behind = place(behind: id, before)
            self.awaited?.place = behind
        case .entry: break
        case .position(let position):
            // Whatever is listed next, behind what is the last one now.
            guard position >= before.count else { return }
            let last = before.entries.last.flatMap { queue.position(of: $0.id) }
            let end = before.count == 0 ? 0 : queue.count
            self.awaited?.place = .position(last.map { $0 + 1 } ?? end)
        }
    }

    /// Where the first item that came behind this one, and is still there, is now.
    private func place(behind id: QueueEntry.ID, _ before: PlayQueue) -> AwaitedItem.Place {
        let behind = before.position(of: id).map { before.entries[($0 + 1)...] } ?? []
        let survivor = behind.first { queue.position(of: $0.id) != nil }
        return survivor.map { .entry($0.id) } ?? .position(queue.count)
    }

    /// What was planned to follow is kept as far as it still does.
    private mutating func keepPlanned(_ planned: [QueueEntry.ID?], _ held: [QueueEntry.ID]) {
        var last = session.index
        for (number, id) in planned.enumerated() {
            let index = id.flatMap { queue.index(of: $0) }
            let isHeld = id.map { held.contains($0) } ?? false
            guard let index, isHeld || queue.successor(of: last) == .item(index) else {
                return withdrawPlanned(from: number)
            }
            if number == 0 { followUp?.index = index } else { chain[number - 1].index = index }
            last = index
        }
    }

    private mutating func withdrawPlanned(from number: Int) {
        guard number > 0 else { return withdrawFollowUp() }
        for place in members.indices {
            for later in members[place].chain.indices.dropFirst(number - 1) {
                withdraw(\.chain[later], of: place)
            }
            members[place].chain = Array(members[place].chain.prefix(number - 1))
        }
        chain = Array(chain.prefix(number - 1))
    }

    private mutating func keepPending(
        _ id: QueueEntry.ID?, _ target: Int?, _ before: PlayQueue
    ) {
        guard let id else { return }
        if let target {
            pending?.index = target
        } else {
            // What plays goes on until the item behind the one that is gone can begin.
            awaited = AwaitedItem(place: place(behind: id, before), required: pending?.required)
            withdrawPending()
        }
    }

    /// What plays, or stands by, is gone: all rooms go on to what comes behind it, or to what was
    /// about to begin.
    private mutating func goOn(
        without current: QueueEntry.ID?, _ pendingID: QueueEntry.ID?, _ before: PlayQueue,
        from old: [AssetDescriptor]
    ) {
        let next = [pendingID, current].compactMap(\.self).map { id in
            queue.index(of: id) != nil ? .entry(id) : place(behind: id, before)
        }.first
        let required = pending?.required
        fallSilent()
        session.change = nil
        if session.phase == .playing { session.phase = .preparing }
        if awaited == nil {
            awaited = AwaitedItem(place: next ?? .position(queue.count), required: required)
        }
        // What is shown until the next item is prepared.
        if case .entry(let id)? = awaited?.place, let position = queue.position(of: id),
            case .item(let index) = queue.first(from: position, wraps: false)
        {
            session.index = index
        } else {
            session.index = max(0, session.queue.count - 1)
        }
        tellQueue(from: old)
    }

    /// Tells the rooms what is in place of what.
    private mutating func tellQueue(from old: [AssetDescriptor]) {
        let new = session.queue
        guard new != old else { return }
        let most = min(old.count, new.count)
        let first = (0..<most).first { old[$0] != new[$0] } ?? most
        let same = (0..<most - first).first {
            old[old.count - 1 - $0] != new[new.count - 1 - $0]
        }
        let tail = same ?? most - first
        session.sequence += 1
        let change = QueueChange(
            term: session.term, sequence: session.sequence, first: first,
            removed: old.count - first - tail, items: Array(new[first..<new.count - tail]),
            index: session.index)
        for member in members { send(.queue(change), to: member.link) }
    }

    // MARK: For people

    /// A part of the queue.
    package func listing(from first: Int, count: Int) -> QueueListing {
        let first = min(max(0, first), queue.count)
        let end = first + min(max(0, count), QueueListing.mostItems, queue.count - first)
        // While the next one is being prepared this one is still heard.
        let heard = isRunning ? session.index : pending?.index ?? session.index
        return QueueListing(
            revision: queue.revision, count: queue.count, coming: queue.coming,
            current: queue.position(of: heard), phase: session.phase,
            repeats: queue.repeats, first: first,
            items: queue.entries[first..<end].map(QueueListing.Item.init))
    }
}
