import TuttiPlayout
import TuttiTiming

/// Starting, stopping and changing rate, at once or at an instant of the clock.
extension PlayerMachine {
    mutating func request(_ rate: Double, waits: Bool?) {
        if rate != 0, isAtEnd(for: rate) { return }
        if let reason = refusal(of: rate) { return refuse(reason) }
        let waits = waits ?? automaticallyWaits
        endsAt = nil
        setRate(rate, .setRateCalled)
        if rate != 0 { error = nil }
        guard ready != nil else {
            dropIntent()
            guard rate != 0 else { return }
            intent = .awaitsItem(waits: waits)
            if case .failed = itemState, let item { load(item) }
            return
        }
        if rate == 0 {
            pause(at: soon, frame: nil)
        } else {
            takeOver(waits: waits)
        }
    }

    /// The card is gone. What was heard last is where it goes on.
    mutating func interrupt() {
        setRate(0, .audioSessionInterrupted)
        // Of an item that has failed, or is not there yet, nothing sounds; a seek in it is kept.
        guard let facts = ready?.facts else { return dropIntent() }
        let sounding = program.entry(at: reading).feed
        let report = sounding.flatMap { self.facts($0).report }
        let heard = report.map { report in
            min(0, (world.now - report.at).seconds) * Double(facts.sampleRate)
                * (program.entry(at: reading).line.rate) + report.itemFrame
        }
        let isElsewhere = transition != nil || isSeeking
        pause(at: reading, frame: isElsewhere ? nil : heard.map { clamped($0) })
    }

    /// Why the item cannot be played at that rate; `nil` also while nobody knows.
    func refusal(of rate: Double) -> PlaybackError? {
        guard rate != 0, let facts = ready?.facts, facts.recipe(at: rate) == nil else { return nil }
        return PlaybackError(
            .rateNotSupported, "rate \(rate): a stream without an end cannot be played backwards")
    }

    /// The item is there, and cannot be played as was asked for.
    mutating func refuse(_ reason: PlaybackError) {
        dropIntent()
        error = reason
        setRate(0, .setRateFailed)
    }

    /// What an item is to be made of has changed: what plays goes over to that where it is.
    mutating func renewFeeds() {
        if let prepared, let record = feeds[prepared], !suits(prepared, record.recipe.rate) {
            // Whoever waits for it is told that it is filled.
            if case .going(prepared, let frame) = seek?.stage {
                let next = makeFeed(frame: frame, rate: record.recipe.rate)
                cancel(prepared)
                replace(prepared, by: next)
            } else {
                dropPrepared()
            }
        }
        if kept.values.contains(where: { feed in
            feeds[feed].map { !suits(feed, $0.recipe.rate) } ?? false
        }) {
            dropJoins()
        }
        for entry in program.pending(after: reading) where entry.item == item {
            guard entry.line.rate != 0, let feed = entry.feed, !suits(feed, entry.line.rate) else {
                continue
            }
            let next = makeFeed(frame: entry.line.itemFrame, rate: entry.line.rate)
            cancel(feed)
            replace(feed, by: next)
            start(next, by: entry.line, fadesIn: true)
        }
        renewEnd()
        if let transition, !suits(transition.feed, rate) {
            return takeOver(from: transition.frame, waits: transition.waits)
        }
        let current = decided
        guard rate != 0, ready != nil, current.line.rate != 0, let feed = current.feed,
            !suits(feed, current.line.rate)
        else { return }
        takeOver(waits: false)
    }

    /// Nobody is to wait any more: what there is will do.
    mutating func endWaiting() {
        guard !automaticallyWaits else { return }
        switch intent {
        case .decided: break
        case .awaitsItem: intent = .awaitsItem(waits: false)
        case .awaitsFrames(var transition):
            transition.waits = false
            intent = .awaitsFrames(transition)
            if isSupplied(transition.feed, enough: false) { performTransition() }
        }
    }

    mutating func setLine(
        _ rate: Double, time: MediaTime, atHostTime hostTime: GroupInstant?
    ) throws(PlaybackError) {
        guard !automaticallyWaits else {
            throw PlaybackError(
                .waitsToMinimizeStalling,
                "a rate at a host time needs automaticallyWaitsToMinimizeStalling == false")
        }
        let facts = try readyFacts()
        if let reason = refusal(of: rate) { throw reason }
        var frame = try time.isValid ? self.frame(of: time) : nil
        if frame == nil, seek == nil, let hostTime, hasJoins(before: hostTime) {
            throw PlaybackError(
                .itemEndsBefore,
                "the item ends before that host time, and another one plays then: say which time of it, or give the line when it plays"
            )
        }
        // A place of its own is newer than any seek; without one, this is about where that goes.
        if frame != nil { endSeek(finished: false) }
        if hostTime == nil, frame != nil {
            // At once, and not yet: what is asked for next is about that place.
            seek = Seek(id: nil, stage: .asked(time))
            frame = nil
        }
        endsAt = nil
        setRate(rate, .setRateCalled)
        error = nil
        if rate == 0 {
            pause(at: hostTime ?? soon, frame: frame)
            return
        }
        guard let instant = hostTime else {
            takeOver(waits: false)
            return
        }
        if let destination = takeDestination() {
            frame = destination.frame
            prepare(destination.feed)
        }
        dropIntent()
        settle()
        let begin = frame ?? program.frame(at: instant, sampleRate: facts.sampleRate)
        let line = Line(itemFrame: begin, instant: instant, rate: rate)
        if continues(line) { return }
        if frame == nil, isBeyondEnd(begin, at: rate) { return runOn(by: line) }
        // Where the sound can begin: at the line's beginning, or where it is by then.
        let first = line.frame(at: max(instant, soon), sampleRate: facts.sampleRate)
        let feed = self.feed(for: first, rate: rate)
        // A preroll that is still under way is ended by the change of rate; its feed is not.
        emit(.endWaiting(feed))
        if let frame { follow(feed, from: frame) }
        play(line, from: feed)
    }

    func readyFacts() throws(PlaybackError) -> PlayerWorld.ItemFacts {
        guard item != nil else { throw PlaybackError(.noItem, "there is no item") }
        switch itemState {
        case .failed(let error): throw error
        case .ready: if let facts = itemFacts { return facts }
        case .unknown: break
        }
        throw PlaybackError(.itemNotReady, "the item is not ready to play")
    }

    mutating func setRate(_ rate: Double, _ reason: PlayerNotice.RateChangeReason) {
        guard self.rate != rate else { return }
        self.rate = rate
        announce(.rateDidChange(rate: rate, reason: reason))
    }

    /// Brings the program up to now: what was pending is forgotten.
    mutating func settle() {
        let sounding = program.entry(at: reading).feed
        for entry in program.settle(at: reading) where entry.feed != sounding {
            if let feed = entry.feed, entry.item != item, entry.item.flatMap({ kept[$0] }) == feed {
                // It begins at another instant, if at all.
                emit(.stop(feed, at: nil))
            } else {
                cancel(entry.feed)
            }
        }
    }

    /// From `instant` on item time stands at `frame`, or where it is then; a seek under way goes on.
    mutating func pause(at instant: GroupInstant, frame: Double?) {
        guard let facts = itemFacts else { return }
        var frame = frame
        if frame == nil, let destination = takeDestination() {
            frame = destination.frame
            prepare(destination.feed ?? preparedFeed(at: destination.frame))
            if let prepared { follow(prepared, from: destination.frame) }
        }
        dropIntent()
        settle()
        let current = program.last
        let end = frame ?? program.frame(at: instant, sampleRate: facts.sampleRate)
        var sounding = current.feed
        if frame == nil, isBeyondEnd(end, at: current.line.rate) {
            // It is to be heard to its end, and tells that.
        } else if let feed = sounding {
            if world.hasCard || clock != nil {
                emit(.stop(feed, at: reading(instant, for: feed)))
            } else {
                // Its own time stands with the card: it could not be started again by ours.
                emit(.stop(feed, at: nil))
                emit(.retire(feed))
                sounding = nil
            }
        }
        let line = Line(
            itemFrame: frame.map(clamped) ?? place(at: instant, facts), instant: instant, rate: 0)
        program.append(Program.Entry(item: item, line: line, feed: sounding))
    }

    /// Starts playing at the requested rate, or changes to it without a gap: as soon as a feed for
    /// that rate has frames.
    ///
    /// - Parameters:
    ///   - frame: where to; `nil`: where a seek under way is going, or on from where item time is.
    ///   - waits: for enough to play on, or for the first frames only.
    mutating func takeOver(from frame: Double? = nil, waits: Bool) {
        guard let facts = ready?.facts, rate != 0 else { return }
        if let frame { return jump(to: frame, by: nil, waits: waits) }
        if let destination = takeDestination() {
            return jump(to: destination.frame, by: destination.feed, waits: waits)
        }
        dropIntent()
        let current = program.entry(at: reading)
        if current == decided, current.line.rate == rate {
            if let feed = current.feed, self.facts(feed).isAlive, suits(feed, rate) { return }
            if isBeyondEnd(currentFrame, at: rate) { return }
        }
        settle()
        let soon = self.soon
        let first = program.frame(at: soon, sampleRate: facts.sampleRate)
        let line = Line(itemFrame: first, instant: soon, rate: rate)
        if continues(line) { return }
        if isBeyondEnd(first, at: rate) { return runOn(by: line) }
        wait(for: feed(for: first, rate: rate), frame: nil, waits: waits)
    }

    /// A feed at `frame` that takes over when it has frames; until then what sounds goes on.
    ///
    /// - Parameter feed: was to play from there already, at the rate of that moment.
    mutating func jump(to frame: Double, by feed: FeedID?, waits: Bool) {
        dropIntent()
        if let feed, suits(feed, rate), facts(feed).isAlive {
            return wait(for: feed, frame: frame, waits: waits)
        }
        cancel(feed)
        wait(for: self.feed(for: frame, rate: rate), frame: frame, waits: waits)
    }

    private mutating func wait(for feed: FeedID, frame: Double?, waits: Bool) {
        if case .going(_, let place) = seek?.stage {
            follow(feed, from: frame ?? place)
        } else if let frame {
            follow(feed, from: frame)
        }
        intent = .awaitsFrames(Transition(feed: feed, frame: frame, waits: waits))
        evaluatesUntil = world.now + Nanoseconds(seconds: Feed.fillSeconds)
        // A preroll that is still under way is ended by the change of rate; its feed is not.
        if prepared == feed { emit(.endWaiting(feed)) }
        if isSupplied(feed, enough: waits) { performTransition() }
    }

    mutating func performTransition() {
        guard let transition else { return }
        intent = .decided
        guard let facts = ready?.facts, rate != 0 else { return }
        settle()
        // What sounds already has the output's time going.
        let isAtRest = program.last.line.rate == 0
        let instant = soon
        let line = Line(
            itemFrame: transition.frame ?? place(at: instant, facts), instant: instant, rate: rate)
        if transition.frame == nil, isBeyondEnd(line.itemFrame, at: rate) {
            // It came there while the feed was filled.
            cancel(transition.feed)
            return runOn(by: line)
        }
        play(line, from: transition.feed, waits: isAtRest)
        if let frame = transition.frame { announce(.timeJumped(to: time(of: frame))) }
    }

    /// The feed that is ready for that place already, or a new one.
    private mutating func preparedFeed(at frame: Double) -> FeedID {
        if let prepared, reaches(prepared, frame, rate: defaultRate, of: item) { return prepared }
        return makeFeed(frame: frame, rate: defaultRate)
    }

    /// Keeps a feed ready, instead of the one that was.
    private mutating func prepare(_ feed: FeedID?) {
        guard let feed, feed != prepared else { return }
        dropPrepared()
        prepared = feed
    }

    /// Whether `line` goes on where the one in force is by then: the same voice plays on, and what
    /// was to stop it is taken back.
    private mutating func continues(_ line: Line) -> Bool {
        guard let facts = itemFacts, let sounding = program.last.feed,
            self.facts(sounding).isAlive, isOnClock(sounding), suits(sounding, line.rate)
        else { return false }
        let now = program.last.line
        guard now.rate == line.rate,
            abs(now.frame(at: line.instant, sampleRate: facts.sampleRate) - line.itemFrame) < 0.5
        else { return false }
        start(sounding, by: line, fadesIn: true)
        dropPrepared()
        program.append(Program.Entry(item: item, line: line, feed: sounding))
        return true
    }

    /// From the line's instant on, `feed` sounds by it and what sounded before is silent.
    private mutating func play(_ line: Line, from feed: FeedID, waits: Bool = false) {
        if prepared == feed { prepared = nil }
        var feed = feed
        if !facts(feed).isAlive {
            let next = makeFeed(frame: line.itemFrame, rate: line.rate)
            replace(feed, by: next)
            feed = next
        }
        // A beginning is played as it was mastered; everything else would begin with a click.
        start(
            feed, by: line, fadesIn: feeds[feed]?.recipe.wantedFrame(for: line.itemFrame) != 0,
            waits: waits)
        let current = program.last
        if let sounding = current.feed, sounding != feed {
            // A voice that already stands keeps standing.
            if current.line.rate != 0 {
                emit(.stop(sounding, at: reading(line.instant, for: sounding)))
            }
            emit(.retire(sounding))
        }
        program.append(Program.Entry(item: item, line: line, feed: feed))
    }

    /// A feed that can play from `frame`: the prerolled one, the one that is paused there, or a new
    /// one.
    private mutating func feed(for frame: Double, rate: Double) -> FeedID {
        if let prepared, let record = feeds[prepared] {
            let map = record.recipe.map
            let ahead = map.voiceFrame(record.frame) - map.voiceFrame(frame)
            let reach = Feed.reachSeconds * Double(record.sampleRate)
            let isNear =
                record.item == item && suits(prepared, rate) && ahead > 0 && ahead < reach
                && facts(prepared).isAlive
            if isNear || reaches(prepared, frame, rate: rate, of: item) {
                return prepared
            }
            dropPrepared()
        }
        let last = program.last
        if let paused = last.feed, last.line.rate == 0, isOnClock(paused),
            reaches(paused, frame, rate: rate, of: item)
        {
            return paused
        }
        return makeFeed(frame: frame, rate: rate)
    }

    /// It had ended since it was looked at: another one does what it was to do.
    mutating func startAnother(insteadOf feed: FeedID) {
        guard let record = feeds[feed], let start = record.start, program.names(feed),
            let facts = world.items[record.item]?.facts
        else { return }
        let next = makeFeed(
            of: record.item, facts, frame: start.line.itemFrame, rate: start.line.rate)
        replace(feed, by: next)
        if kept[record.item] == feed { kept[record.item] = next }
        self.start(next, by: start.line, fadesIn: start.fadesIn)
    }

    /// What `old` was to do is done by `new`.
    mutating func replace(_ old: FeedID, by new: FeedID) {
        program.replace(old, by: new)
        if case .going(old, let frame) = seek?.stage { follow(new, from: frame) }
        if prepared == old { prepared = new }
    }
}
