import Playout
import Synchronization
import Timing

/// Getting and losing an item.
extension Player {
    /// Plays another item from its beginning, or none; the same item again changes nothing.
    ///
    /// The rate stays: a player that was playing goes on with the new item.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``.
    public func replaceCurrentItem(with item: PlayerItem?) throws(PlaybackError) {
        let closing = try turn { state throws(PlaybackError) in
            guard state.item !== item else { return [SourcePool.Cursor]() }
            // Under the lock under which it becomes the current item: in between, another thread
            // could give it away again.
            guard item?.claim(for: self) ?? true else {
                throw PlaybackError(
                    .itemInUse,
                    "an item of \(item?.asset.location ?? "") belongs to another player")
            }
            let closing = state.item?.unclaim(from: self) ?? []
            state.item = item
            state.itemCount += 1
            perform(.replaceItem(item.map { _ in ItemID(number: state.itemCount) }), &state)
            return closing
        }
        withExtendedLifetime(closing) {}
    }

    func loadedTimeRanges(of item: PlayerItem) -> [TimeRange] {
        let feeds = state.withLock { state -> [Feed] in
            guard state.item === item else { return [] }
            let machine = state.machine
            return state.feeds.filter { id, _ in
                machine.program.names(id) || machine.prepared == id
                    || machine.transition?.feed == id
            }.map(\.value)
        }
        return feeds.compactMap { feed in
            let frames = feed.bufferedFrames
            guard !frames.isEmpty else { return nil }
            let rate = feed.format.sampleRate
            return TimeRange(
                start: MediaTime(frame: frames.lowerBound, sampleRate: rate),
                end: MediaTime(frame: frames.upperBound, sampleRate: rate))
        }.sorted { $0.start < $1.start }
    }
}
