import TuttiTiming

// Items so short that the one after the next begins before there is time to prepare it: they are
// offered and committed as a chain, as far ahead as a preparation and its commit need on their way.
// Each begins at the very frame at which the one before it ends, however many there are.

extension LeaderMachine {
    /// How far ahead of its beginning an item is offered, at least: opening and decoding on a slow
    /// room, the longest queue of a card and the way there and back. Less leaves holes in rooms that
    /// need as long; more has rooms hold files open that they do not play.
    static let chainLead = Nanoseconds.seconds(2)
    /// Items of the chain: each needs a voice in every room. With 24, items of 20 ms are prepared half
    /// a second ahead, six times the usual queue of a card; shorter ones may leave holes where a
    /// room needs longer.
    package static let mostChained = 24
    /// Between the commit of a start and the item behind it, at least: a start whose item is over
    /// before that waits longer.
    static let chainStart = Nanoseconds.seconds(1)

    /// Plans what follows the next item, while that ends soon.
    mutating func planChain(at now: GroupInstant) {
        while let due = chainDeadline, now >= due, let last = chain.last ?? followUp,
            let end = self.end(of: last), let next = indexAfter(last.index)
        {
            chain.append(
                FollowUp(
                    index: next,
                    change: RateChange(itemFrame: 0, instant: end, rate: last.change.rate)))
            for place in members.indices where members[place].takesPart {
                offerChained(chain.count - 1, to: place)
            }
        }
        offerMissing()
    }

    /// To rooms that joined while a chain was under way: what they were not there to be asked for.
    private mutating func offerMissing() {
        guard isRunning, pending == nil, followUp != nil else { return }
        for place in members.indices where members[place].takesPart && members[place].isOnLine {
            if members[place].follow == nil { offerFollowUp(to: place) }
            for number in chain.indices where !members[place].wasOffered(number) {
                offerChained(number, to: place)
            }
        }
    }

    /// When the chain has to grow; `nil` while there is nothing for it to grow by.
    var chainDeadline: GroupInstant? {
        guard isRunning, pending == nil, chain.count < Self.mostChained,
            let last = chain.last ?? followUp, indexAfter(last.index) != nil
        else { return nil }
        return end(of: last).map { $0 - Self.chainLead }
    }

    private func end(of followUp: FollowUp) -> GroupInstant? {
        guard session.queue.indices.contains(followUp.index) else { return nil }
        let asset = session.queue[followUp.index]
        return followUp.change.instant(ofFrame: asset.frameCount, sampleRate: asset.sampleRate)
    }

    private mutating func offerChained(_ number: Int, to place: Int) {
        let item = chain[number]
        let preparation = makePreparation(
            of: item.index, frame: item.change.itemFrame, change: item.change)
        while members[place].chain.count <= number { members[place].chain.append(nil) }
        members[place].chain[number] = Offer(id: preparation.id)
        send(.prepare(preparation), to: members[place].link)
    }

    /// A room can play an item of the chain: it is told at once when.
    mutating func receiveChainReady(_ id: UInt64, from place: Int) {
        guard
            let number = members[place].chain.firstIndex(where: {
                $0?.id == id && $0?.standing == .sent
            }), chain.indices.contains(number)
        else { return }
        members[place].chain[number]?.standing = .committed
        let item = chain[number]
        let commit = Commit(
            id: id, index: item.index, hash: session.queue[item.index].hash, change: item.change,
            following: true)
        send(commit, to: members[place])
    }

    mutating func withdrawChain() {
        for place in members.indices {
            for number in members[place].chain.indices { withdraw(\.chain[number], of: place) }
            members[place].chain = []
        }
        chain = []
    }

    /// What a start waits for the sake of the items behind its own.
    func chainDelay(of start: PendingStart) -> Nanoseconds {
        guard session.queue.indices.contains(start.index), indexAfter(start.index) != nil else {
            return .zero
        }
        let asset = session.queue[start.index]
        let left = Double(asset.frameCount - start.frame) / (Double(asset.sampleRate) * rate)
        return max(.zero, Self.chainStart - Nanoseconds(seconds: left))
    }
}
