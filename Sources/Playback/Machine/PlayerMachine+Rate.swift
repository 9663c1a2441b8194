import Playout
import Timing

/// Starting, stopping and changing rate, at once or at an instant of the clock.
extension PlayerMachine {
    mutating func request(_ rate: Double, waits: Bool?) {
        if rate != 0, isAtEnd { return }
        let waits = waits ?? automaticallyWaits
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

    /// Whether item time stands at the item's end, and nothing is on its way elsewhere: there is
    /// nothing to play.
    private var isAtEnd: Bool {
        guard rate == 0, seek == nil, actionAtItemEnd == .pause,
            let end = ready?.facts.endFrame, end > 0
        else { return false }
        return currentFrame >= Double(end)
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
        var frame = try time.isValid ? self.frame(of: time) : nil
        if frame == nil, seek == nil, let hostTime, hasJoins(before: hostTime) {
            throw PlaybackError(
                .itemEndsBefore,
                "the item ends before that host time, and another one plays then: say which time of it, or give the line when it plays"
            )
        }
        // A place of its own is newer than any seek; without one, this is about where that goes.
        if frame != nil { endSeek(finished: false) }
        setRate(rate, .setRateCalled)
        error = nil
        if rate == 0 {
            pause(at: hostTime ?? soon, frame: frame)
            return
        }
        guard let instant = hostTime else {
            takeOver(from: frame, waits: false)
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
        emit(.announce(.rateDidChange(rate: rate, reason: reason)))
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
            prepare(
                destination.feed ?? makeFeed(frame: destination.frame, rate: defaultRate))
            if let prepared { follow(prepared, from: destination.frame) }
        }
        dropIntent()
        settle()
        let end = frame ?? program.frame(at: instant, sampleRate: facts.sampleRate)
        let sounding = program.last.feed
        if let sounding { emit(.stop(sounding, at: reading(instant, for: sounding))) }
        let line = Line(itemFrame: clamped(end), instant: instant, rate: 0)
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
        if current == decided, current.line.rate == rate,
            let feed = current.feed, self.facts(feed).isAlive
        {
            return
        }
        settle()
        let soon = self.soon
        let first = program.frame(at: soon, sampleRate: facts.sampleRate)
        if continues(Line(itemFrame: first, instant: soon, rate: rate)) { return }
        wait(for: feed(for: first, rate: rate), frame: nil, waits: waits)
    }

    /// A feed at `frame` that takes over when it has frames; until then what sounds goes on.
    ///
    /// - Parameter feed: was to play from there already, at the rate of that moment.
    mutating func jump(to frame: Double, by feed: FeedID?, waits: Bool) {
        dropIntent()
        if let feed, feeds[feed]?.rate == rate, facts(feed).isAlive {
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
        // A preroll that is still under way is ended by the change of rate; its feed is not.
        if prepared == feed { emit(.endWaiting(feed)) }
        if isSupplied(feed, enough: waits) { performTransition() }
    }

    mutating func performTransition() {
        guard let transition else { return }
        intent = .decided
        guard let facts = ready?.facts, rate != 0 else { return }
        settle()
        let instant = soon
        let frame =
            transition.frame
            ?? clamped(program.frame(at: instant, sampleRate: facts.sampleRate))
        play(Line(itemFrame: frame, instant: instant, rate: rate), from: transition.feed)
        if let frame = transition.frame { emit(.announce(.timeJumped(to: time(of: frame)))) }
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
            self.facts(sounding).isAlive, isOnClock(sounding)
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
    private mutating func play(_ line: Line, from feed: FeedID) {
        if prepared == feed { prepared = nil }
        var feed = feed
        if !facts(feed).isAlive {
            let next = makeFeed(frame: line.itemFrame, rate: line.rate)
            replace(feed, by: next)
            feed = next
        }
        // A beginning is played as it was mastered; everything else would begin with a click.
        start(feed, by: line, fadesIn: line.itemFrame > 0)
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
            let ahead = Double(record.firstFrame) - frame
            let reach = Feed.reachSeconds * Double(record.sampleRate)
            let isNear =
                record.item == item && record.rate == rate && ahead > 0 && ahead < reach
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
