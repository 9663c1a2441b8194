import Timing

// The queue grows while it is played: an item joins it as soon as it is known what it is. It may
// also turn out to be something else, when its file is written anew.

extension LeaderMachine {
    /// Places that change at once before the whole queue is told instead of each of them.
    private static let mostChanges = 16

    /// Takes in items that are known now.
    mutating func append(_ items: [AssetDescriptor], coming: Int, at now: GroupInstant) {
        let first = session.queue.count
        let items = Array(items.prefix(SessionState.longestQueue - first))
        session.queue += items
        self.coming = session.queue.count < SessionState.longestQueue ? max(0, coming) : 0
        if !items.isEmpty { tellQueue(from: first, items) }
        goToAwaited(at: now)
    }

    /// What plays or is prepared, and what comes behind it: the files that must stay as they are.
    public var upcoming: [AssetDescriptor] {
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

    /// Goes to what was waited for once it is known, or known that there is nothing.
    private mutating func goToAwaited(at now: GroupInstant) {
        guard let awaited else { return }
        if session.queue.indices.contains(awaited.index) {
            return move(to: awaited.index, frame: 0, required: awaited.required, at: now)
        }
        guard coming == 0 else { return }
        self.awaited = nil
        if configuration.loops, !session.queue.isEmpty {
            move(to: 0, frame: 0, required: awaited.required, at: now)
        } else if !isRunning, pending == nil {
            endQueue()
        }
    }

    private mutating func endQueue() {
        update(
            index: session.index, change: session.change,
            phase: session.queue.isEmpty ? .stopped : .ended)
        outbox.append(.ended)
    }

    private mutating func tellQueue(from first: Int, _ items: [AssetDescriptor]) {
        session.sequence += 1
        let change = QueueChange(
            term: session.term, sequence: session.sequence, first: first, items: items)
        for member in members { send(.queue(change), to: member.link) }
    }

    private mutating func tellState() {
        session.sequence += 1
        for member in members { send(.state(session), to: member.link) }
    }

    // MARK: Other bytes

    /// What an item was is not to be had any more: all rooms go over to what it is now, or on
    /// without it.
    mutating func change(_ hash: ContentHash, to asset: AssetDescriptor?, at now: GroupInstant) {
        let places = session.queue.indices.filter { session.queue[$0].hash == hash }
        guard !places.isEmpty, asset?.hash != hash else { return }
        if let asset {
            replace(places, with: asset, at: now)
        } else {
            remove(Set(places), at: now)
        }
    }

    private mutating func replace(
        _ places: [Int], with asset: AssetDescriptor, at now: GroupInstant
    ) {
        withdrawChain()
        if let followUp, places.contains(followUp.index) { withdrawFollowUp() }
        let old = session.current
        let frame = session.itemFrame(at: now)
        for place in places { session.queue[place] = asset }
        if places.count > Self.mostChanges {
            tellState()
        } else {
            for place in places { tellQueue(from: place, [asset]) }
        }
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

    private mutating func remove(_ places: Set<Int>, at now: GroupInstant) {
        func shifted(_ index: Int) -> Int { index - places.count { $0 < index } }
        withdrawChain()
        if let followUp, places.contains(followUp.index) { withdrawFollowUp() }
        let at = pending?.index ?? session.index
        let isIdle = session.phase == .stopped || session.phase == .ended
        // Of what sounds and what is prepared, either may be what goes.
        let isInUse = places.contains(at) || isRunning && places.contains(session.index)
        let kept = session.queue.indices.filter { !places.contains($0) }
        let target = shifted(at)
        session.queue = kept.map { session.queue[$0] }
        if let followUp { self.followUp?.index = shifted(followUp.index) }
        awaited?.index = session.queue.count
        guard isInUse, !isIdle else {
            session.index = max(0, min(shifted(session.index), session.queue.count - 1))
            if let pending { self.pending?.index = shifted(pending.index) }
            return tellState()
        }
        let required = pending?.required
        fallSilent()
        session.index = max(0, min(target, session.queue.count - 1))
        session.change = nil
        if session.phase == .playing { session.phase = .preparing }
        tellState()
        goTo(target, required: required, at: now)
    }

    /// The current item is over before its time.
    private mutating func leaveItem(at now: GroupInstant) {
        let next = indexAfter(session.index) ?? session.queue.count
        fallSilent()
        update(index: session.index, change: nil, phase: .preparing)
        goTo(next, required: nil, at: now)
    }

    /// Every room at once; what it was preparing is of no use either.
    private mutating func fallSilent() {
        for place in members.indices {
            members[place].forgetOffers()
            send(.stop, to: members[place].link)
        }
        pending = nil
        followUp = nil
        chain = []
    }

    /// To an item of the queue, or whatever there is behind its end.
    private mutating func goTo(_ index: Int, required: Int?, at now: GroupInstant) {
        awaited = AwaitedItem(index: index, required: required)
        goToAwaited(at: now)
    }
}
