import TuttiPlayout
import TuttiTiming

/// Getting, loading and losing an item, and what its feeds report.
extension PlayerMachine {
    mutating func replace(with item: ItemID?) {
        let old = self.item
        begin(item)
        if let old { release(old) }
        if item == nil { announce(.itemStatusDidChange(nil)) }
    }

    /// Another item is the current one, and stands at its beginning.
    mutating func begin(_ item: ItemID?) {
        dropJoins()
        endsAt = nil
        // Only what waits at the beginning of an item that follows, or is this one now, is of use.
        let first = item.flatMap { kept.removeValue(forKey: $0) }
        for feed in feeds.keys where facts(feed).isAlive && feed != first {
            if !kept.values.contains(feed) { cancel(feed) }
        }
        prepared = first
        endSeek(finished: false)
        error = nil
        self.item = item
        toldStatus = nil
        program = Program(stillAt: 0, of: item)
        hasJumped = true
        if rate == 0 || item == nil {
            intent = .decided
        } else if case .awaitsItem = intent {
        } else {
            intent = .awaitsItem(waits: automaticallyWaits)
        }
        emit(.itemChanged(item))
        guard let item else { return }
        if case .awaitsItem = intent, let reason = refusal(of: rate) { refuse(reason) }
        if case .ready = itemState, case .awaitsItem(let waits) = intent {
            tellStatus()
            takeOver(waits: waits)
        } else if loading[item] == nil {
            load(item)
        }
    }

    /// Nothing of an item is needed any more.
    mutating func release(_ item: ItemID) {
        if loading.removeValue(forKey: item) != nil { emit(.stopLoading(item)) }
        if let feed = kept.removeValue(forKey: item) { cancel(feed) }
        joinLines?[item] = nil
        emit(.release(item))
    }

    /// Loads the item, or loads it again, beside whatever else is going on.
    mutating func load(_ item: ItemID) {
        loads += 1
        loading[item] = loads
        emit(.load(item, loads))
    }

    /// May come long after the item was ready, and after anything that was asked for since.
    mutating func itemDidLoad(_ load: Int) {
        guard let loaded = loading.first(where: { $0.value == load })?.key else { return }
        loading[loaded] = nil
        guard loaded == item else { return }
        tellStatus()
        if case .failed(let error) = itemState {
            endSeek(finished: false)
            guard case .awaitsItem = intent else { return }
            giveUpItem(error)
        } else if let reason = refusal(of: rate) {
            refuse(reason)
        } else if case .awaitsItem(let waits) = intent, ready != nil {
            takeOver(waits: waits)
        }
    }

    /// The item cannot be played, or not on: the next is, where there is one.
    mutating func giveUpItem(_ error: PlaybackError) {
        if let item { emit(.itemFailed(item, error)) }
        if actionAtEnd == .advance, !queue.isEmpty {
            leaveItem(isOver: false)
        } else {
            intent = .decided
            setRate(0, .setRateFailed)
        }
    }

    /// Tells observers of the item's status where it is another than they know.
    mutating func tellStatus() {
        let status: PlayerItem.Status
        switch itemState {
        case .unknown: return
        case .ready: status = .readyToPlay
        case .failed: status = .failed
        }
        guard item != nil, status != toldStatus else { return }
        toldStatus = status
        announce(.itemStatusDidChange(status))
    }

    mutating func supply(_ feed: FeedID) {
        guard let transition, transition.feed == feed, isSupplied(feed, enough: transition.waits)
        else { return }
        performTransition()
    }

    /// Whether `feed` is what sounds, and nothing of its item is to take over from it.
    private func isInForce(_ feed: FeedID) -> Bool {
        program.entry(at: reading).feed == feed
            && program.pending(after: reading).allSatisfy { $0.feed == feed || $0.item != item }
    }

    /// Nothing more comes of `feed`; what it had has been heard.
    mutating func fail(_ error: PlaybackError, _ feed: FeedID) {
        world.feeds[feed]?.isAlive = false
        if prepared == feed { prepared = nil }
        if let other = feeds[feed]?.item, other != item {
            // It was to follow.
            dropJoins(from: other)
            if kept[other] == feed { kept[other] = nil }
            guard error.code == .mediaFailed, queue.contains(other) else { return }
            emit(.failItem(other, error))
            emit(.failedAhead(other, error))
            world.items[other]?.state = .failed(error)
            return
        }
        if isInForce(feed) {
            // Where the sound ended.
            let place = facts(feed).report.map(\.itemFrame) ?? currentFrame
            standStill(at: place)
        } else if decided.feed == feed || transition?.feed == feed {
            standStill(at: currentFrame)
        } else if case .going(feed, _) = seek?.stage {
            endSeek(finished: false)
        } else {
            return
        }
        if error.code == .mediaFailed, let item {
            emit(.failItem(item, error))
            world.items[item]?.state = .failed(error)
            tellStatus()
        } else {
            self.error = error
        }
        if rate != 0 { giveUpItem(error) }
    }

    mutating func stall(_ feed: FeedID) {
        guard isInForce(feed), rate != 0 else { return }
        announce(.playbackStalled)
        if automaticallyWaits {
            let frame = facts(feed).report?.itemFrame ?? currentFrame
            // Not this feed again: it counts as filled, and would be started at once.
            emit(.stop(feed, at: nil))
            emit(.retire(feed))
            dropJoins()
            program = Program(stillAt: clamped(frame), of: item)
            // A seek under way is waited for instead.
            if !isSeeking { takeOver(waits: true) }
            // That it comes too slowly is known.
            evaluatesUntil = nil
        } else if clock == nil {
            // Without a common line there is nothing to catch up with.
            standStill(at: currentFrame)
            setRate(0, .setRateFailed)
        }
    }

    mutating func end(_ feed: FeedID) {
        guard isInForce(feed) else { return }
        let rate = feeds[feed]?.recipe.rate ?? 1
        if program.pending(after: reading).contains(where: { $0.item != item }) {
            // What follows begins by itself, unless there was less of the item than was promised.
            guard let end = facts(feed).endFrame, end < itemFacts?.endFrame ?? end else { return }
            dropJoins()
        }
        world.feeds[feed]?.isAlive = false
        let end = endPlace(of: feed, at: rate)
        program.replace(feed, by: nil)
        // Somebody wants to be elsewhere already: this is a wait, and not the end.
        if isSeeking {
            if let end, arrival == nil { program = Program(stillAt: end, of: item) }
            return
        }
        // Nobody goes back to an item that was left.
        let stays = actionAtEnd == .pause || rate < 0 && actionAtEnd == .advance
        if stays, let end {
            dropIntent()
            program = Program(stillAt: end, of: item)
            setRate(0, .itemEnded)
        }
        guard let item else { return }
        emit(.playedToEnd(item))
        if actionAtEnd == .advance, !stays { leaveItem(isOver: true) }
    }

    /// Where item time stands once a feed has been played to its end: there, or where it was already beyond
    /// that.
    private func endPlace(of feed: FeedID, at rate: Double) -> Double? {
        guard let known = itemFacts?.end(at: rate) ?? facts(feed).endFrame else { return nil }
        let (end, now) = (Double(known), currentFrame)
        let began = feeds[feed]?.start?.line.itemFrame ?? now
        if rate < 0 { return began < end ? now : end }
        return began > end ? now : end
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
        for entry in program.pending(after: reading)
        where entry.line.rate == 0 && entry.item == item {
            emit(.stop(next, at: entry.line.instant))
        }
        announce(.timeJumped(to: time(of: clamped(place))))
    }

    /// Item time stands at `frame`; nothing sounds or will.
    private mutating func standStill(at frame: Double) {
        let sounding = program.entry(at: reading).feed
        if let sounding { emit(.stop(sounding, at: nil)) }
        dropJoins()
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
        kept = kept.filter { $0.value != feed }
        if transition?.feed == feed { intent = .decided }
    }
}
