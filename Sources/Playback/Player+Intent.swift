import Playout
import Timing

/// What was asked for and cannot be decided yet.
///
/// Whatever a player waits for (an item, frames, a seek's place) may come after something newer was
/// asked for. So what is waited for stands here, in one place: a newer request replaces it, and what
/// comes later finds that nobody waits for it. Nothing but a request puts anything here.
extension Player {
    enum Intent {
        /// All that was asked for stands in the schedule.
        case decided
        /// To play, once the item is ready.
        case awaitsItem(waits: Bool)
        /// A feed takes over once it has frames.
        case awaitsFrames(Transition)
    }

    struct Transition {
        var feed: Feed
        /// Where it takes over from; `nil`: from wherever item time is by then.
        var frame: Double?
        /// For enough to play on, or for anything at all.
        var waits: Bool
    }

    /// A seek that has not arrived.
    struct Seek {
        enum Stage {
            /// Its item is not ready, or nobody has looked since it is.
            case asked(MediaTime)
            /// The feed fills at that frame, or is about to be heard.
            case going(Feed, Double)
        }
        var serial: Int
        var stage: Stage
    }

    /// Takes back what was waited for: something newer is decided.
    func dropIntent(_ state: inout State) {
        guard case .awaitsFrames(let transition) = state.intent else {
            state.intent = .decided
            return
        }
        state.intent = .decided
        if transition.feed !== state.sounding, transition.feed !== state.prepared {
            transition.feed.cancel()
        }
    }

    /// Whether a feed fills for another place than item time is at.
    func isSeeking(_ state: State) -> Bool {
        guard case .awaitsFrames(let transition) = state.intent else { return false }
        return transition.frame != nil
    }

    /// Where a seek under way is going, with what has been got ready for it: a pause, another rate or
    /// an instant is then about that place. `nil` without a seek, and for one whose place is item time
    /// already.
    func takeDestination(_ state: inout State) -> (frame: Double, feed: Feed?)? {
        switch state.seek?.stage {
        case nil: return nil
        case .asked(let time):
            guard let (item, format) = state.ready,
                let frame = try? Self.frame(of: time, item, format)
            else { return nil }
            return (frame, nil)
        case .going(let feed, let frame):
            if case .awaitsFrames(let transition) = state.intent, transition.feed === feed,
                transition.frame != nil
            {
                state.intent = .decided
                return (frame, feed)
            }
            let now = reading(state, at: output.now())
            guard state.upcoming === feed, let last = state.schedule.lines.last, last.instant > now
            else { return nil }
            feed.stop(at: nil)
            state.upcoming = nil
            state.schedule.settle(at: now)
            return (frame, feed)
        }
    }

    /// The item is ready: what waited for it is decided, by whoever notices first.
    func useItem(_ state: inout State) {
        guard state.ready != nil else { return }
        guard case .awaitsItem(let waits) = state.intent else { return }
        takeOver(waits: waits, &state)
    }
}
