import Playout
import Timing

/// Getting, loading and losing an item, and what its feeds report.
extension PlayerMachine {
    mutating func replace(with item: ItemID?) {
        for feed in feeds.keys where facts(feed).isAlive { cancel(feed) }
        prepared = nil
        endSeek(finished: false)
        error = nil
        self.item = item
        toldStatus = nil
        program = Program(stillAt: 0, of: item)
        if rate == 0 || item == nil {
            intent = .decided
        } else if case .awaitsItem = intent {
        } else {
            intent = .awaitsItem(waits: automaticallyWaits)
        }
        if item == nil { emit(.announce(.itemStatusDidChange(nil))) }
        loads += 1
        isLoading = false
        emit(.stopLoading)
        if let item { load(item) }
    }

    /// Loads the item, or loads it again, beside whatever else is going on.
    mutating func load(_ item: ItemID) {
        loads += 1
        isLoading = true
        emit(.load(item, loads))
    }

    /// May come long after the item was ready, and after anything that was asked for since.
    mutating func itemDidLoad() {
        isLoading = false
        tellStatus()
        if case .failed(let error) = world.item {
            endSeek(finished: false)
            guard case .awaitsItem = intent else { return }
            intent = .decided
            setRate(0, .setRateFailed)
            emit(.announce(.failedToPlayToEnd(error)))
        } else if case .awaitsItem(let waits) = intent, ready != nil {
            takeOver(waits: waits)
        }
    }

    /// Tells observers of the item's status where it is another than they know.
    private mutating func tellStatus() {
        let status: PlayerItem.Status
        switch world.item {
        case .unknown: return
        case .ready: status = .readyToPlay
        case .failed: status = .failed
        }
        guard item != nil, status != toldStatus else { return }
        toldStatus = status
        emit(.announce(.itemStatusDidChange(status)))
    }

    mutating func supply(_ feed: FeedID) {
        guard let transition, transition.feed == feed, isSupplied(feed, enough: transition.waits)
        else { return }
        performTransition()
    }

    /// Whether `feed` is what sounds, and nothing is to take over from it.
    private func isInForce(_ feed: FeedID) -> Bool {
        program.entry(at: reading).feed == feed
            && program.pending(after: reading).allSatisfy { $0.feed == feed }
    }

    /// Nothing more comes of `feed`; what it had has been heard.
    mutating func fail(_ error: PlaybackError, _ feed: FeedID) {
        world.feeds[feed]?.isAlive = false
        if isInForce(feed) {
            // Where the sound ended.
            let place = facts(feed).report.map(\.itemFrame) ?? currentFrame
            standStill(at: place)
        } else if program.last.feed == feed || transition?.feed == feed {
            standStill(at: currentFrame)
        } else if case .going(feed, _) = seek?.stage {
            endSeek(finished: false)
        } else {
            return
        }
        if error.code == .mediaFailed, let item {
            emit(.failItem(item, error))
            world.item = .failed(error)
            tellStatus()
        } else {
            self.error = error
        }
        guard rate != 0 else { return }
        setRate(0, .setRateFailed)
        emit(.announce(.failedToPlayToEnd(error)))
    }

    mutating func stall(_ feed: FeedID) {
        guard isInForce(feed), rate != 0 else { return }
        emit(.announce(.playbackStalled))
        if automaticallyWaits {
            let frame = facts(feed).report?.itemFrame ?? currentFrame
            // Not this feed again: it counts as filled, and would be started at once.
            emit(.stop(feed, at: nil))
            emit(.retire(feed))
            program = Program(stillAt: clamped(frame), of: item)
            // A seek under way is waited for instead.
            if !isSeeking { takeOver(waits: true) }
        } else if clock == nil {
            // Without a common line there is nothing to catch up with.
            standStill(at: currentFrame)
            setRate(0, .setRateFailed)
        }
    }

    mutating func end(_ feed: FeedID) {
        guard isInForce(feed) else { return }
        world.feeds[feed]?.isAlive = false
        let end = (world.facts?.endFrame ?? facts(feed).endFrame).map(Double.init)
        program.replace(feed, by: nil)
        // Somebody wants to be elsewhere already: this is a wait, and not the end.
        if isSeeking {
            if let end { program = Program(stillAt: end, of: item) }
            return
        }
        if actionAtItemEnd == .pause, let end {
            dropIntent()
            program = Program(stillAt: end, of: item)
            setRate(0, .itemEnded)
        }
        emit(.announce(.didPlayToEnd))
    }

    /// The line ran away while the decoder stood: begins anew where the line is now.
    mutating func rejoin(insteadOf feed: FeedID) {
        guard isInForce(feed), let facts = ready?.facts else { return }
        let line = program.entry(at: reading).line
        guard line.rate != 0 else { return }
        let place = line.frame(at: soon, sampleRate: facts.sampleRate)
        let next = makeFeed(frame: place, rate: line.rate)
        cancel(feed)
        replace(feed, by: next)
        start(next, by: line, fadesIn: true)
        // A pause that was decided holds for whoever sounds by then.
        for entry in program.pending(after: reading) where entry.line.rate == 0 {
            emit(.stop(next, at: entry.line.instant))
        }
        emit(.announce(.timeJumped(to: time(of: clamped(place)))))
    }

    /// Item time stands at `frame`; nothing sounds or will.
    private mutating func standStill(at frame: Double) {
        let sounding = program.entry(at: reading).feed
        if let sounding { emit(.stop(sounding, at: nil)) }
        for entry in program.pending(after: reading) where entry.feed != sounding {
            cancel(entry.feed)
        }
        dropIntent()
        endSeek(finished: false)
        var entry = Program(stillAt: clamped(frame), of: item).last
        entry.feed = sounding
        program = Program(continuing: entry)
    }

    mutating func forget(_ feed: FeedID) {
        feeds[feed] = nil
        world.feeds[feed] = nil
        program.replace(feed, by: nil)
        if prepared == feed { prepared = nil }
        if transition?.feed == feed { intent = .decided }
    }
}
