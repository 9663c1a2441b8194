import TuttiTiming

// The queue grows while it is played: an item is listed first, and joins what rooms hear of as soon
// as it is known what it is. It may also turn out to be something else, when its file is written
// anew, or nothing that can be played.

extension LeaderMachine {
    /// Items that are still being looked for; 0 once the whole queue is listed.
    package var coming: Int { queue.coming }

    /// The whole queue, in order.
    package var entries: [QueueEntry] { queue.entries }

    /// Takes in items that are known already, at the end.
    mutating func append(_ items: [AssetDescriptor], coming: Int, at now: GroupInstant) {
        var entries = queue.entries
        for item in items.prefix(SessionState.longestQueue - entries.count) {
            entries.append(queue.newEntry(item))
        }
        queue.coming = entries.count < SessionState.longestQueue ? max(0, coming) : 0
        setEntries(entries, at: now)
    }

    /// Takes in items that are to be read.
    mutating func list(
        _ items: [QueueEntry], at place: QueuePlace, coming: Int, at now: GroupInstant
    ) {
        let wasEmpty = queue.count == 0 && queue.coming == 0
        let first = position(of: place, at: now)
        let items = items.prefix(SessionState.longestQueue - queue.count)
        queue.coming = max(0, coming)
        var entries = queue.entries
        entries.insert(contentsOf: items, at: first)
        setEntries(entries, at: now)
        guard !items.isEmpty, awaited == nil, pending == nil else { return }
        // A queue that was empty begins; one that has been played goes on with what is new.
        if session.phase == .stopped, wasEmpty, complaint.isEmpty {
            awaited = AwaitedItem(
                place: .position(0),
                required: hasPlayed ? nil : max(0, configuration.roomsToWaitFor))
            update(index: 0, change: nil, phase: hasPlayed ? .preparing : .waiting)
        } else if session.phase == .ended {
            awaited = AwaitedItem(place: .position(first))
            update(index: session.index, change: session.change, phase: .preparing)
        }
        goToAwaited(at: now)
    }

    /// An item has been read.
    mutating func read(_ id: QueueEntry.ID, as asset: AssetDescriptor, at now: GroupInstant) {
        guard let position = queue.position(of: id), queue.entries[position].asset == nil else {
            return
        }
        var entries = queue.entries
        entries[position].state = .known(asset)
        entries[position].obstacle = nil
        setEntries(entries, at: now)
    }

    /// Items are marked, and what plays or is waited for among them is left.
    mutating func passOver(_ ids: [QueueEntry.ID], _ reason: String, at now: GroupInstant) {
        for position in ids.compactMap({ queue.position(of: $0) }) {
            queue.note(reason, at: position)
        }
        let goals = [session.index, pending?.index].compactMap { $0.flatMap { queue.id(of: $0) } }
        if isRunning, goals.allSatisfy(ids.contains) { leaveItem(at: now) }
        goToAwaited(at: now)
    }

    /// An item cannot be played: it stays in the list, with the reason, and is left out.
    mutating func leaveOut(_ id: QueueEntry.ID, _ reason: String, at now: GroupInstant) {
        leaveOut([queue.position(of: id)].compactMap(\.self), reason, at: now)
    }

    private mutating func leaveOut(_ positions: [Int], _ reason: String, at now: GroupInstant) {
        guard !positions.isEmpty else { return }
        var entries = queue.entries
        for position in positions {
            entries[position].state = .unplayable(
                reason: reason.limited(toBytes: RoomReport.longestText))
            entries[position].obstacle = nil
        }
        setEntries(entries, at: now)
    }

    private func position(of place: QueuePlace, at now: GroupInstant) -> Int {
        switch place {
        case .end: queue.count
        case .position(let position): min(max(0, position), queue.count)
        case .behind(let id): queue.position(of: id).map { $0 + 1 } ?? queue.count
        case .next:
            (pinned(at: now).last ?? placeID).flatMap { queue.position(of: $0) }.map { $0 + 1 }
                ?? 0
        }
    }

    /// The item that the session is at.
    package var currentID: QueueEntry.ID? { queue.id(of: session.index) }

    /// What plays or is prepared, and what comes behind it: the files that must stay as they are.
    package var upcoming: [AssetDescriptor] {
        let at = pending?.index ?? session.index
        var items: [AssetDescriptor] = []
        for index in [session.index, at, indexAfter(at), indexAfter(session.index)] {
            guard let index, session.queue.indices.contains(index),
                !items.contains(session.queue[index])
            else { continue }
            items.append(session.queue[index])
        }
        return items
    }

    /// The item that has to be read before the group can go on to it.
    package var awaitedID: QueueEntry.ID? {
        if case .entry(let id)? = awaited?.place { id } else { nil }
    }

    /// Counts the changes of the queue.
    package var queueRevision: UInt64 { queue.revision }

    /// What of the queue is so near the item that plays that its files are worth keeping.
    package func near(before: Int, behind: Int) -> Set<ContentHash> {
        let at = min(session.index, pending?.index ?? session.index)
        let first = max(0, at - before)
        let count = before + behind + abs((pending?.index ?? at) - session.index)
        return Set(session.queue.dropFirst(first).prefix(count).map(\.hash))
            .union(upcoming.map(\.hash))
    }

    /// The items that are to be read next, the most urgent first: those that come behind what plays,
    /// and then those just before it, which people see in the queue. Those whose machine was away
    /// come last: it may be back, and the others are read meanwhile.
    ///
    /// - Parameters:
    ///   - ahead: known items behind the playing one that are enough; of those before it, so many are
    ///     looked at.
    ///   - most: of these at most.
    package func wanted(ahead: Int, most: Int) -> [QueueEntry.ID] {
        var found: [QueueEntry.ID] = []
        var absent: [QueueEntry.ID] = []
        if let id = awaitedID { found.append(id) }
        let start = (playingID.flatMap { queue.position(of: $0) }).map { $0 + 1 } ?? 0
        let wraps = queue.repeats == .all
        var known = 0
        for position in Array(start..<queue.count) + Array(0..<(wraps ? start : 0)) {
            guard found.count < most, known < ahead else { break }
            switch queue.entries[position].state {
            case .known: known += 1
            case .unplayable: break
            case .unread where queue.entries[position].obstacle != nil:
                if absent.count < most { absent.append(queue.entries[position].id) }
            case .unread:
                let id = queue.entries[position].id
                if !found.contains(id) { found.append(id) }
            }
        }
        for position in (max(0, start - 1 - ahead)..<start).reversed() where found.count < most {
            let entry = queue.entries[position]
            guard entry.state == .unread, !(found + absent).contains(entry.id) else { continue }
            if entry.obstacle == nil { found.append(entry.id) } else { absent.append(entry.id) }
        }
        return found + absent.filter { !found.contains($0) }.prefix(max(0, most - found.count))
    }

    // MARK: Waiting for an item

    /// Goes to what was waited for once it is known, or known that there is nothing.
    mutating func goToAwaited(at now: GroupInstant) {
        guard let awaited else { return }
        switch successor(awaited.place) {
        case .item(let index): move(to: index, frame: 0, required: awaited.required, at: now)
        case .unread(let id): self.awaited?.place = .entry(id)
        case .unlisted: self.awaited?.place = .position(queue.count)
        case .none:
            self.awaited = nil
            if !isRunning, pending == nil { endQueue() }
        }
    }

    private func successor(_ place: AwaitedItem.Place) -> PlayQueue.Successor {
        let position =
            switch place {
            case .position(let position): position
            case .entry(let id): queue.position(of: id) ?? queue.count
            }
        return queue.first(from: position, wraps: queue.repeats != .off)
    }

    private mutating func endQueue() {
        update(
            index: session.index, change: session.change,
            phase: session.queue.isEmpty ? .stopped : .ended)
        // Who has emptied it by hand is about to put something else into it.
        if queue.count > 0 || !hasPlayed { outbox.append(.ended) }
    }

    // MARK: Other bytes

    /// What an item was is not to be had any more: all rooms go over to what it is now, or on
    /// without it.
    mutating func change(
        _ hash: ContentHash, of items: Set<QueueEntry.ID>?, to change: ItemChange,
        at now: GroupInstant
    ) {
        let places = session.queue.indices.filter { place in
            guard session.queue[place].hash == hash, let id = queue.id(of: place) else {
                return false
            }
            return items?.contains(id) ?? true
        }
        switch change {
        case .other(let asset):
            guard asset.hash != hash else { return }
            let parts = places.filter { session.queue[$0].excerpt != nil }
            if parts.count < places.count {
                replace(places.filter { !parts.contains($0) }, with: asset, at: now)
            }
            leaveOut(
                parts.compactMap { queue.position(of: $0) },
                "its file was changed, and where its part begins is not known", at: now)
        case .unplayable(let reason):
            leaveOut(places.compactMap { queue.position(of: $0) }, reason, at: now)
        }
    }

    private mutating func replace(
        _ places: [Int], with asset: AssetDescriptor, at now: GroupInstant
    ) {
        withdrawChain()
        if let followUp, places.contains(followUp.index) { withdrawFollowUp() }
        let old = session.current
        let frame = session.itemFrame(at: now)
        var entries = queue.entries
        for place in places.compactMap({ queue.position(of: $0) }) {
            entries[place].state = .known(asset)
        }
        setEntries(entries, at: now)
        func place(of frame: Double, in old: AssetDescriptor?) -> Int64? {
            let scale = Double(asset.sampleRate) / Double(old?.sampleRate ?? asset.sampleRate)
            let there = Int64(saturating: frame * scale)
            return there < asset.frameCount ? there : nil
        }
        if let start = pending {
            guard places.contains(start.index) else { return }
            prepareStart(
                index: start.index, frame: place(of: Double(start.frame), in: old) ?? 0,
                starts: start.starts, required: start.required, at: now)
        } else if isRunning, places.contains(session.index) {
            // As a seek to where it is: what sounds goes on until the rooms have the new bytes.
            guard let frame = place(of: frame, in: old) else { return leaveItem(at: now) }
            move(to: session.index, frame: frame, at: now)
        }
    }

    /// An item at which all rooms have failed, and failed again, is over: nothing would be heard up
    /// to its end. The disk that it is on has gone, say.
    mutating func leaveWhatNobodyPlays(at now: GroupInstant) {
        let rooms = members.filter(\.takesPart)
        guard isRunning, pending == nil, session.current != nil, !rooms.isEmpty,
            rooms.allSatisfy({ $0.line.map(hasGivenUp) ?? false })
        else { return }
        complaint = failures(at: session.index)
        noteSkipped(session.index)
        leaveItem(at: now)
    }

    /// The current item is over before its time.
    private mutating func leaveItem(at now: GroupInstant) {
        let next = queue.position(of: session.index).map { $0 + 1 } ?? queue.count
        fallSilent()
        update(index: session.index, change: nil, phase: .preparing)
        // Who has asked for another one, which is still being read, waits for that.
        if awaited == nil { awaited = AwaitedItem(place: .position(next)) }
        goToAwaited(at: now)
    }

    /// Every room at once; what it was preparing is of no use either.
    mutating func fallSilent() {
        for place in members.indices {
            members[place].forgetOffers()
            send(.stop, to: members[place].link)
        }
        pending = nil
        followUp = nil
        chain = []
    }
}
