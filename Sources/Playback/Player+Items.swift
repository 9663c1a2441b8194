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
        let closing = try state.withLock { state throws(PlaybackError) in
            guard state.item !== item else { return [SourcePool.Cursor]() }
            // Under the lock under which it becomes the current item: in between, another thread
            // could give it away again.
            guard item?.claim(for: self) ?? true else {
                throw PlaybackError(
                    .itemInUse,
                    "an item of \(item?.asset.location ?? "") belongs to another player")
            }
            let closing = state.item?.unclaim(from: self) ?? []
            for feed in state.feeds {
                feed.cancel()
                if !state.outgoing.contains(where: { $0 === feed }) { state.outgoing.append(feed) }
            }
            state.sounding = nil
            state.upcoming = nil
            state.prepared = nil
            state.seek = nil
            state.error = nil
            state.item = item
            state.toldStatus = nil
            state.schedule = Schedule(stillAt: 0)
            if state.rate == 0 || item == nil {
                state.intent = .decided
            } else if case .awaitsItem = state.intent {
            } else {
                state.intent = .awaitsItem(waits: state.automaticallyWaits)
            }
            if item == nil { announce(.itemStatusDidChange(nil), &state) }
            load(&state)
            return closing
        }
        withExtendedLifetime(closing) {}
    }

    /// Loads the item, or loads it again, beside whatever else is going on.
    func load(_ state: inout State) {
        state.itemTask?.cancel()
        state.itemTask = nil
        state.loads += 1
        guard let item = state.item else { return }
        let load = state.loads
        state.itemTask = Task(executorPreference: output.executor) { [weak self] in
            // The error is kept by the item.
            try? await item.ready()
            self?.hear { $0.itemDidLoad(load) }
        }
    }

    /// May come long after the item was ready, and after anything that was asked for since.
    private func itemDidLoad(_ load: Int) {
        locked { state in
            guard state.loads == load, let item = state.item else { return }
            state.itemTask = nil
            tellStatus(&state)
            guard case .awaitsItem = state.intent else { return }
            if item.status == .failed, let error = item.error {
                state.intent = .decided
                setRate(0, .setRateFailed, &state)
                announce(.failedToPlayToEnd(error), &state)
            } else {
                useItem(&state)
            }
        }
    }

    /// Tells observers of the item's status where it is another than they know.
    func tellStatus(_ state: inout State) {
        guard let status = state.item?.status, status != .unknown, status != state.toldStatus else {
            return
        }
        state.toldStatus = status
        announce(.itemStatusDidChange(status), &state)
    }

    /// Takes in what others report; a test may let it come late.
    func hear(_ report: @escaping @Sendable (Player) -> Void) {
        guard let postpone = output.postpone else { return report(self) }
        postpone { [weak self] in if let self { report(self) } }
    }

    /// What a feed says counts for what that feed was told last; it may have been told something
    /// newer, or replaced, by now.
    func receive(_ event: Feed.Event, from feed: Feed) {
        locked { state in
            switch event {
            case .supplied: supply(feed, &state)
            case .failed(let error): fail(error, feed, &state)
            case .starved(let order): if feed.orderNumber == order { stall(feed, &state) }
            case .playedToEnd(let order): if feed.orderNumber == order { end(feed, &state) }
            case .leftBehind(let order):
                if feed.orderNumber == order { rejoin(insteadOf: feed, &state) }
            case .closed: forget(feed, &state)
            }
        }
    }

    private func supply(_ feed: Feed, _ state: inout State) {
        guard let transition = state.transition, transition.feed === feed,
            feed.isSupplied(enough: transition.waits)
        else { return }
        performTransition(&state)
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

    /// Nothing more comes of `feed`; what it had has been heard.
    private func fail(_ error: PlaybackError, _ feed: Feed, _ state: inout State) {
        if isInForce(feed, &state) {
            // Where the sound ended.
            let place = feed.report.map(\.itemFrame) ?? currentFrame(state, at: output.now())
            standStill(&state)
            state.schedule = Schedule(stillAt: clamped(place, state))
        } else if state.upcoming === feed || state.transition?.feed === feed {
            standStill(&state)
        } else if case .going(let seeking, _) = state.seek?.stage, seeking === feed {
            state.seek = nil
        } else {
            return
        }
        if error.code == .mediaFailed {
            state.item?.fail(error)
            tellStatus(&state)
        } else {
            state.error = error
        }
        guard state.rate != 0 else { return }
        setRate(0, .setRateFailed, &state)
        announce(.failedToPlayToEnd(error), &state)
    }

    private func stall(_ feed: Feed, _ state: inout State) {
        guard isInForce(feed, &state), state.rate != 0 else { return }
        announce(.playbackStalled, &state)
        if state.automaticallyWaits {
            let frame = feed.report?.itemFrame ?? currentFrame(state, at: output.now())
            // Not this feed again: it counts as filled, and would be started at once.
            feed.stop(at: nil)
            retire(feed, &state)
            state.sounding = nil
            state.schedule = Schedule(stillAt: clamped(frame, state))
            // A seek under way is waited for instead.
            if !isSeeking(state) { takeOver(waits: true, &state) }
        } else if state.clock == nil {
            // Without a common line there is nothing to catch up with.
            standStill(&state)
            setRate(0, .setRateFailed, &state)
        }
    }

    private func end(_ feed: Feed, _ state: inout State) {
        guard isInForce(feed, &state) else { return }
        state.sounding = nil
        let end = (state.item?.endFrame ?? feed.endFrame).map(Double.init)
        // Somebody wants to be elsewhere already: this is a wait, and not the end.
        if isSeeking(state) {
            if let end { state.schedule = Schedule(stillAt: end) }
            return
        }
        if state.actionAtItemEnd == .pause, let end {
            dropIntent(&state)
            state.schedule = Schedule(stillAt: end)
            setRate(0, .itemEnded, &state)
        }
        announce(.didPlayToEnd, &state)
    }

    /// The line ran away while the decoder stood: begins anew where the line is now.
    private func rejoin(insteadOf feed: Feed, _ state: inout State) {
        guard isInForce(feed, &state), let format = state.ready?.format else { return }
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
        dropIntent(&state)
        state.seek = nil
        state.schedule = Schedule(stillAt: clamped(frame, state))
    }

    private func forget(_ feed: Feed, _ state: inout State) {
        state.outgoing.removeAll { $0 === feed }
        if state.sounding === feed { state.sounding = nil }
        if state.upcoming === feed { state.upcoming = nil }
        if state.prepared === feed { state.prepared = nil }
        if state.transition?.feed === feed { state.intent = .decided }
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
