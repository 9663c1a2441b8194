import Synchronization

/// Plays items one after the other, without a gap between them.
///
/// What follows is opened and decoded ahead. A join is a line like any other: the first sample of an
/// item leaves the output when the last one of the item before it has, whatever was asked for since.
/// An item that has been played leaves the queue; one that cannot be played is passed over, which
/// ``PlayerNotice/failedToPlayToEnd(_:)`` says, and which it was ``Player/itemNotices()``.
///
/// All operations may come at any moment, from any thread.
public final class QueuePlayer: Player, @unchecked Sendable {
    /// - Parameter items: in the order in which they play; each of no other player.
    /// - Throws: ``PlaybackError/Code/itemInUse``; then none of them is taken.
    public convenience init(
        items: [PlayerItem], output: PlayerOutput
    ) throws(PlaybackError) {
        self.init(output: output)
        do throws(PlaybackError) {
            for item in items { try insert(item, after: nil) }
        } catch {
            removeAllItems()
            throw error
        }
    }

    /// A player without an item.
    public override init(output: PlayerOutput) {
        super.init(output: output)
        actionAtItemEnd = .advance
    }

    override var hasQueue: Bool { true }

    /// The current item, and those that follow it.
    public func items() -> [PlayerItem] { queuedItems }

    /// Leaves the current item for the next one, at the rate that there is; without a next one the
    /// player has none.
    public func advanceToNextItem() { perform(.advance) }

    /// Whether ``insert(_:after:)`` would take it: it is no other player's, and not in the queue.
    public func canInsert(_ item: PlayerItem, after place: PlayerItem?) -> Bool {
        let isPlace = state.withLock { state in
            place.map { state.id(of: $0) != nil } ?? true
        }
        return isPlace && item.isFree
    }

    /// Puts an item behind another one of the queue, or at its end. Into an empty queue it comes as the
    /// current item.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse`` for an item that has a player already;
    ///   ``PlaybackError/Code/noItem`` where `place` is not in the queue.
    public func insert(_ item: PlayerItem, after place: PlayerItem?) throws(PlaybackError) {
        try turn { state throws(PlaybackError) in
            let behind = place.flatMap { state.id(of: $0) }
            if let place, behind == nil {
                throw PlaybackError(
                    .noItem, "an item of \(place.asset.location) is not in the queue")
            }
            perform(.insert(try take(item, &state), after: behind), &state)
        }
    }

    /// Takes an item out of the queue. Of the current one that is ``advanceToNextItem()``.
    public func remove(_ item: PlayerItem) {
        turn { state in
            if let id = state.id(of: item) { perform(.remove(id), &state) }
        }
    }

    /// Nothing plays, and nothing follows.
    public func removeAllItems() { perform(.removeAll) }
}
