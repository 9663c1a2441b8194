import Synchronization
package import TuttiPlayout
package import TuttiTiming

/// A queue whose joins somebody else decides too: a room, which plays what its leader commits.
///
/// Each item that follows is decoded ahead with ``preroll(next:atRate:)``, and given the line by which
/// it is to begin with ``join(_:by:)``. The join itself is the same as in any queue.
extension QueuePlayer {
    /// Items that can be decoded ahead and joined, behind the current one.
    package static var mostFollowing: Int { PlayerMachine.mostJoins }
    /// How far a line may be from where the item before it ends.
    package static var joinTolerance: Nanoseconds { PlayerMachine.joinTolerance }

    /// Whether an item follows only by a line that it was given. Where there is none, or where the item
    /// before it ends at another instant, the player stops at the item's end and goes on to nothing.
    package var joinsByLines: Bool {
        get { state.withLock { $0.machine.joinLines != nil } }
        set { perform(.joinsByLines(newValue)) }
    }

    /// Decodes the beginning of an item that follows, while what sounds goes on undisturbed.
    ///
    /// - Returns: true when filled; false when the item has left the queue, or was decoded for
    ///   another rate since.
    /// - Throws: ``PlaybackError`` with the codes `noItem` (it does not follow), `itemNotReady`,
    ///   `rateNotSupported`, or the media's error.
    package func preroll(
        next item: PlayerItem, atRate rate: Double
    ) async throws(PlaybackError) -> Bool {
        try Self.check(rate, allowsZero: false)
        let feed = try turn { state throws(PlaybackError) in
            guard let id = state.id(of: item) else {
                throw PlaybackError(
                    .noItem, "an item of \(item.asset.location) is not in the queue")
            }
            try attempt(.prerollNext(id, rate: rate), &state)
            // Its turn may have come meanwhile.
            return state.machine.kept[id].flatMap { state.feeds[$0] }
        }
        guard let feed else { return false }
        let filling = await withTaskCancellationHandler {
            await feed.filled()
        } onCancel: {
            feed.endWaiting()
        }
        switch filling {
        case .filled: return true
        case .ended: return false
        case .failed(let error): throw error
        }
    }

    /// The line by which an item of the queue would begin, as things are: where the one before it ends.
    /// `nil` while nothing leads there.
    package func plannedJoin(of item: PlayerItem) -> Line? {
        now { state in state.id(of: item).flatMap { state.machine.plannedJoin(of: $0) } }
    }

    /// Lets an item of the queue begin by a line, where ``joinsByLines`` is set; the first sample is
    /// exact when this comes ``PlayerOutput/latency`` before its instant.
    ///
    /// - Returns: false when the item before it does not end there, within a microsecond, at that
    ///   rate; then nothing has changed.
    package func join(_ item: PlayerItem, by line: Line) -> Bool {
        turn { state in
            let world = world(state)
            state.machine.look(world)
            guard let id = state.id(of: item), let planned = state.machine.plannedJoin(of: id),
                state.machine.agrees(line, planned.instant)
            else { return false }
            perform(.join(id, by: line), &state)
            return true
        }
    }

    /// Silent from `hostTime` on, whichever item plays by then; what would begin later does not. Items
    /// stay in the queue.
    ///
    /// Another rate, line, seek or item before that takes it back.
    package func end(atHostTime hostTime: GroupInstant) { perform(.end(at: hostTime)) }
}
