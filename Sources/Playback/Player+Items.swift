import Playout
import Synchronization
import Timing

/// Getting, loading and losing an item, and what its feeds report.
extension Player {
    /// Plays another item from its beginning, or none; the same item again changes nothing.
    ///
    /// The rate stays: a player that was playing goes on with the new item.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``.
    public func replaceCurrentItem(with item: PlayerItem?) throws(PlaybackError) {
        if state.withLock({ $0.item === item }) { return }
        guard item?.claim(for: self) ?? true else {
            throw PlaybackError(
                .itemInUse,
                "an item of \(item?.asset.location ?? "") belongs to another player")
        }
        state.withLock { state in
            state.itemTask?.cancel()
            state.item?.unclaim()
            for feed in state.feeds {
                feed.cancel()
                if !state.outgoing.contains(where: { $0 === feed }) { state.outgoing.append(feed) }
            }
            state.sounding = nil
            state.upcoming = nil
            state.prepared = nil
            state.transition = nil
            state.seeks += 1
            state.error = nil
            state.item = item
            state.schedule = Schedule(stillAt: 0)
            guard let item else {
                state.itemTask = nil
                announce(.itemStatusDidChange(nil), &state)
                return
            }
            state.itemTask = Task { [weak self] in
                // The error is kept by the item.
                try? await item.ready()
                self?.itemDidLoad(item)
            }
        }
    }

    private func itemDidLoad(_ item: PlayerItem) {
        locked { state in
            guard state.item === item else { return }
            state.itemTask = nil
            announce(.itemStatusDidChange(item.status), &state)
            if let error = item.error {
                let wasPlaying = state.rate != 0
                setRate(0, .setRateFailed, &state)
                if wasPlaying { announce(.failedToPlayToEnd(error), &state) }
            } else if state.rate != 0, state.transition == nil {
                takeOver(waits: state.automaticallyWaits, &state)
            }
        }
    }

    func receive(_ event: Feed.Event, from feed: Feed) {
        locked { state in
            switch event {
            case .filled:
                if state.transition?.feed === feed { performTransition(&state) }
            case .failed(let error): fail(error, feed, &state)
            case .starved: stall(feed, &state)
            case .playedToEnd: end(feed, &state)
            case .leftBehind: rejoin(insteadOf: feed, &state)
            case .closed: forget(feed, &state)
            }
        }
    }

    /// Whether `feed` is what sounds.
    private func isInForce(_ feed: Feed, _ state: inout State) -> Bool {
        if let taken = feedInForce(state), taken === state.upcoming {
            retire(state.sounding, &state)
            state.sounding = taken
            state.upcoming = nil
        }
        return state.sounding === feed && state.upcoming == nil
    }

    private func fail(_ error: PlaybackError, _ feed: Feed, _ state: inout State) {
        let concerns =
            isInForce(feed, &state) || state.upcoming === feed || state.transition?.feed === feed
        guard concerns else { return }
        state.error = error
        standStill(&state)
        setRate(0, .setRateFailed, &state)
        announce(.failedToPlayToEnd(error), &state)
    }

    private func stall(_ feed: Feed, _ state: inout State) {
        guard isInForce(feed, &state), state.rate != 0 else { return }
        announce(.playbackStalled, &state)
        if state.automaticallyWaits {
            let frame = feed.voice?.report.itemFrame ?? 0
            // Not this feed again: it counts as filled, and would be started at once.
            feed.stop(at: nil)
            retire(feed, &state)
            state.sounding = nil
            state.schedule = Schedule(stillAt: clamped(frame, state))
            takeOver(waits: true, &state)
        } else if state.clock == nil {
            // Without a common line there is nothing to catch up with.
            standStill(&state)
            setRate(0, .setRateFailed, &state)
        }
    }

    private func end(_ feed: Feed, _ state: inout State) {
        guard isInForce(feed, &state) else { return }
        state.sounding = nil
        if state.actionAtItemEnd == .pause, let end = state.item?.endFrame ?? feed.endFrame {
            state.schedule = Schedule(stillAt: Double(end))
            setRate(0, .itemEnded, &state)
        }
        announce(.didPlayToEnd, &state)
    }

    /// The line ran away while the decoder stood: begins anew where the line is now.
    private func rejoin(insteadOf feed: Feed, _ state: inout State) {
        guard isInForce(feed, &state), let format = state.item?.format else { return }
        let now = output.now()
        let line = state.schedule.line(at: reading(state, at: now))
        guard line.rate != 0 else { return }
        let soon = reading(state, at: now + output.latency)
        let next = makeFeed(
            frame: line.frame(at: soon, sampleRate: format.sampleRate), rate: line.rate, state)
        feed.cancel()
        state.outgoing.append(feed)
        next.start(
            Feed.Start(
                line: line, clock: state.clock, endFrame: state.item?.endFrame, fadesIn: true))
        state.sounding = next
        announce(
            .timeJumped(
                to: Self.time(
                    ofFrame: clamped(line.frame(at: soon, sampleRate: format.sampleRate), state),
                    sampleRate: format.sampleRate)), &state)
    }

    /// Item time stands where it is; nothing sounds or will.
    private func standStill(_ state: inout State) {
        let frame = currentFrame(state, at: output.now())
        state.sounding?.stop(at: nil)
        state.upcoming?.cancel()
        state.upcoming = nil
        dropTransition(&state)
        state.schedule = Schedule(stillAt: clamped(frame, state))
    }

    private func forget(_ feed: Feed, _ state: inout State) {
        state.outgoing.removeAll { $0 === feed }
        if state.sounding === feed { state.sounding = nil }
        if state.upcoming === feed { state.upcoming = nil }
        if state.prepared === feed { state.prepared = nil }
        if state.transition?.feed === feed { state.transition = nil }
    }

    func loadedTimeRanges(of item: PlayerItem) -> [TimeRange] {
        let feeds = state.withLock { state in
            state.item === item
                ? [state.sounding, state.upcoming, state.prepared, state.transition?.feed]
                    .compactMap { $0 }
                : []
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
