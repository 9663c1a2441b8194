import Synchronization
import TuttiPlayout
import TuttiTiming

/// Getting and losing an item.
extension Player {
    /// Plays another item from its beginning, or none; the same item again changes nothing.
    ///
    /// The rate stays: a player that was playing goes on with the new item.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``.
    public func replaceCurrentItem(with item: PlayerItem?) throws(PlaybackError) {
        try turn { state throws(PlaybackError) in
            // The next item may have begun since.
            state.machine.look(world(state))
            guard state.item !== item else { return }
            let id = try item.map { item throws(PlaybackError) in try take(item, &state) }
            perform(.replaceItem(id), &state)
        }
    }

    /// Makes an item this player's, with a number of its own.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``, also when it is in the queue already.
    func take(_ item: PlayerItem, _ state: inout State) throws(PlaybackError) -> ItemID {
        // Under the lock under which it gets its place: in between, another thread could give it away
        // again.
        guard state.id(of: item) == nil, item.claim(for: self) else {
            throw PlaybackError(
                .itemInUse,
                "an item of \(item.asset.location) belongs to another player or place")
        }
        state.itemCount += 1
        let id = ItemID(number: state.itemCount)
        state.items[id] = item
        item.setCriteria(state.criteriaInForce)
        return id
    }

    func timebase(of item: PlayerItem) -> Timebase<GroupClock>? {
        looking(at: item) { $0.timebase }
    }

    func buffer(of item: PlayerItem) -> PlayerMachine.Buffer? { looking(at: item) { $0.buffer } }

    /// What the machine says of its item; `nil` of another one.
    private func looking<Value: Sendable>(
        at item: PlayerItem, _ question: (PlayerMachine) -> Value
    ) -> Value? {
        now { state in
            guard let id = state.id(of: item), id == state.machine.item else { return nil }
            return question(state.machine)
        }
    }

    /// What two feeds have of one place is one range.
    func decodedTimeRanges(of item: PlayerItem) -> [TimeRange] {
        let feeds = state.withLock { state -> [Feed] in
            guard let id = state.id(of: item) else { return [] }
            let machine = state.machine
            return state.feeds.filter { feed, _ in
                guard machine.feeds[feed]?.item == id else { return false }
                return machine.program.names(feed) || machine.prepared == feed
                    || machine.transition?.feed == feed || machine.kept[id] == feed
            }.map(\.value)
        }
        guard let rate = feeds.first?.format.sampleRate else { return [] }
        return Self.merged(feeds.map(\.bufferedFrames)).map { frames in
            TimeRange(
                start: MediaTime(frame: frames.lowerBound, sampleRate: rate),
                end: MediaTime(frame: frames.upperBound, sampleRate: rate))
        }
    }

    static func merged(_ ranges: [Range<Int64>]) -> [Range<Int64>] {
        let known = ranges.filter { !$0.isEmpty }.sorted { $0.lowerBound < $1.lowerBound }
        return known.reduce(into: []) { merged, next in
            if let last = merged.last, next.lowerBound <= last.upperBound {
                let end = max(last.upperBound, next.upperBound)
                merged[merged.count - 1] = last.lowerBound..<end
            } else {
                merged.append(next)
            }
        }
    }
}
