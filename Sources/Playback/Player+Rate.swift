import Playout
import Synchronization
public import Timing

/// Starting, stopping and changing rate, at once or at an instant of the source clock.
extension Player {
    /// Plays at ``defaultRate``; waits for item and buffer where they are not ready. At the end of the
    /// item it does nothing; an item that failed is tried again.
    public func play() { request(defaultRate, waits: nil) }

    /// Pauses as soon as the output allows; ``currentTime()`` then stands where the sound ended.
    public func pause() { request(0, waits: nil) }

    /// Plays at `rate`, or pauses with 0; waits like ``play()``.
    ///
    /// - Throws: ``PlaybackError/Code/rateNotSupported``.
    public func setRate(_ rate: Double) throws(PlaybackError) {
        try Self.check(rate, allowsZero: true)
        request(rate, waits: nil)
    }

    /// Plays at `rate` with whatever is buffered; with nothing, as soon as the first frames are there.
    ///
    /// - Throws: ``PlaybackError/Code/rateNotSupported``.
    public func playImmediately(atRate rate: Double) throws(PlaybackError) {
        try Self.check(rate, allowsZero: false)
        request(rate, waits: false)
    }

    private func request(_ rate: Double, waits: Bool?) {
        locked { state in
            if rate != 0, isAtEnd(state) { return }
            let waits = waits ?? state.automaticallyWaits
            setRate(rate, .setRateCalled, &state)
            if rate != 0 { state.error = nil }
            guard state.ready != nil else {
                dropIntent(&state)
                guard rate != 0 else { return }
                state.intent = .awaitsItem(waits: waits)
                if state.item?.status == .failed { load(&state) }
                return
            }
            if rate == 0 {
                pause(at: reading(state, at: output.now() + output.latency), frame: nil, &state)
            } else {
                takeOver(waits: waits, &state)
            }
        }
    }

    /// Whether item time stands at the item's end, and nothing is on its way elsewhere: there is
    /// nothing to play.
    private func isAtEnd(_ state: State) -> Bool {
        guard state.rate == 0, state.seek == nil, state.actionAtItemEnd == .pause,
            let end = state.ready?.item.endFrame, end > 0
        else { return false }
        return currentFrame(state, at: output.now()) >= Double(end)
    }

    /// From `hostTime` on, item time `time` leaves the output, at `rate`.
    ///
    /// Rate 0 is a pause whose last sound ends at the host time. A host time that is past still
    /// defines the line: the player joins where the line is now. Until the host time what sounds
    /// goes on; a newer call replaces one that is pending. With the place prerolled and the call
    /// made ``PlayerOutput/latency`` ahead, the first sample is exact.
    ///
    /// - Parameters:
    ///   - rate: 0, or 0.5…2.
    ///   - time: ``MediaTime/invalid``: wherever item time is at the host time, or a seek under way
    ///     is going.
    ///   - hostTime: an instant of ``sourceClock``; without one, local nanoseconds. `nil`: as soon
    ///     as the output allows and the first frames are there.
    /// - Throws: ``PlaybackError`` with the codes `waitsToMinimizeStalling`, `itemNotReady`,
    ///   `noItem`, `rateNotSupported` or `timeNotNumeric`.
    public func setRate(
        _ rate: Double, time: MediaTime = .invalid, atHostTime hostTime: GroupInstant? = nil
    ) throws(PlaybackError) {
        try Self.check(rate, allowsZero: true)
        try locked { state throws(PlaybackError) in
            guard !state.automaticallyWaits else {
                throw PlaybackError(
                    .waitsToMinimizeStalling,
                    "a rate at a host time needs automaticallyWaitsToMinimizeStalling == false")
            }
            let (item, format) = try readyItem(state)
            var frame = try time.isValid ? Self.frame(of: time, item, format) : nil
            // A place of its own is newer than any seek; without one, this is about where that goes.
            if frame != nil { state.seek = nil }
            let soon = reading(state, at: output.now() + output.latency)
            setRate(rate, .setRateCalled, &state)
            state.error = nil
            if rate == 0 {
                pause(at: hostTime ?? soon, frame: frame, &state)
                return
            }
            guard let instant = hostTime else {
                takeOver(from: frame, waits: false, &state)
                return
            }
            if let destination = takeDestination(&state) {
                frame = destination.frame
                prepare(destination.feed, &state)
            }
            dropIntent(&state)
            settle(&state)
            let begin = frame ?? state.schedule.frame(at: instant, sampleRate: format.sampleRate)
            let line = Line(itemFrame: begin, instant: instant, rate: rate)
            if continues(line, format, &state) { return }
            // Where the sound can begin: at the line's beginning, or where it is by then.
            let first = line.frame(at: max(instant, soon), sampleRate: format.sampleRate)
            let feed = feed(for: first, rate: rate, &state)
            // A preroll that is still under way is ended by the change of rate; its feed is not.
            feed.endWaiting()
            if let frame { follow(feed, from: frame, &state) }
            play(line, from: feed, &state)
        }
    }

    // MARK: Under the lock

    func setRate(_ rate: Double, _ reason: PlayerNotice.RateChangeReason, _ state: inout State) {
        guard state.rate != rate else { return }
        state.rate = rate
        announce(.rateDidChange(rate: rate, reason: reason), &state)
    }

    /// Brings the state up to now: what was to take over has, and what was pending is forgotten.
    func settle(_ state: inout State) {
        let now = reading(state, at: output.now())
        if let upcoming = state.upcoming, let last = state.schedule.lines.last {
            if last.instant <= now {
                retire(state.sounding, &state)
                state.sounding = upcoming
            } else {
                upcoming.cancel()
            }
            state.upcoming = nil
        }
        state.schedule.settle(at: now)
    }

    /// From `instant` on item time stands at `frame`, or where it is then; a seek under way goes on.
    func pause(at instant: GroupInstant, frame: Double?, _ state: inout State) {
        guard let format = state.item?.format else { return }
        var frame = frame
        if frame == nil, let destination = takeDestination(&state) {
            frame = destination.frame
            prepare(
                destination.feed
                    ?? makeFeed(frame: destination.frame, rate: state.defaultRate, state), &state)
            if let feed = state.prepared { follow(feed, from: destination.frame, &state) }
        }
        dropIntent(&state)
        settle(&state)
        let end = frame ?? state.schedule.frame(at: instant, sampleRate: format.sampleRate)
        if let sounding = state.sounding {
            sounding.stop(at: reading(instant, for: sounding, state))
        }
        state.schedule.append(
            Line(itemFrame: clamped(end, state), instant: instant, rate: 0))
    }

    /// Starts playing at the requested rate, or changes to it without a gap: as soon as a feed for
    /// that rate has frames.
    ///
    /// - Parameters:
    ///   - frame: where to; `nil`: where a seek under way is going, or on from where item time is.
    ///   - waits: for enough to play on, or for the first frames only.
    func takeOver(from frame: Double? = nil, waits: Bool, _ state: inout State) {
        guard let format = state.ready?.format, state.rate != 0 else { return }
        if let frame { return jump(to: frame, by: nil, waits: waits, &state) }
        if let destination = takeDestination(&state) {
            return jump(to: destination.frame, by: destination.feed, waits: waits, &state)
        }
        dropIntent(&state)
        let now = reading(state, at: output.now())
        if state.upcoming == nil, state.schedule.lines.last?.rate == state.rate,
            state.schedule.line(at: now).rate == state.rate, state.sounding?.isAlive == true
        {
            return
        }
        settle(&state)
        let soon = reading(state, at: output.now() + output.latency)
        let first = state.schedule.frame(at: soon, sampleRate: format.sampleRate)
        if continues(
            Line(itemFrame: first, instant: soon, rate: state.rate), format, &state)
        {
            return
        }
        wait(for: feed(for: first, rate: state.rate, &state), frame: nil, waits: waits, &state)
    }

    /// A feed at `frame` that takes over when it has frames; until then what sounds goes on.
    ///
    /// - Parameter feed: was to play from there already, at the rate of that moment.
    func jump(to frame: Double, by feed: Feed?, waits: Bool, _ state: inout State) {
        dropIntent(&state)
        if let feed, feed.rate == state.rate, feed.isAlive {
            return wait(for: feed, frame: frame, waits: waits, &state)
        }
        feed?.cancel()
        wait(
            for: self.feed(for: frame, rate: state.rate, &state), frame: frame, waits: waits, &state
        )
    }

    private func wait(for feed: Feed, frame: Double?, waits: Bool, _ state: inout State) {
        if case .going(_, let place) = state.seek?.stage {
            follow(feed, from: frame ?? place, &state)
        } else if let frame {
            follow(feed, from: frame, &state)
        }
        state.intent = .awaitsFrames(Transition(feed: feed, frame: frame, waits: waits))
        // A preroll that is still under way is ended by the change of rate; its feed is not.
        if state.prepared === feed { feed.endWaiting() }
        if feed.isSupplied(enough: waits) { performTransition(&state) }
    }

    func performTransition(_ state: inout State) {
        guard let transition = state.transition else { return }
        state.intent = .decided
        guard let format = state.ready?.format, state.rate != 0 else { return }
        settle(&state)
        let instant = reading(state, at: output.now() + output.latency)
        let frame =
            transition.frame
            ?? clamped(
                state.schedule.frame(at: instant, sampleRate: format.sampleRate), state)
        play(
            Line(itemFrame: frame, instant: instant, rate: state.rate), from: transition.feed,
            &state)
        if let frame = transition.frame {
            announce(
                .timeJumped(to: Self.time(ofFrame: frame, sampleRate: format.sampleRate)), &state)
        }
    }

    /// The seek under way, if there is one, is served by `feed` from now on.
    func follow(_ feed: Feed, from frame: Double, _ state: inout State) {
        state.seek?.stage = .going(feed, frame)
    }

    /// Keeps a feed ready, instead of the one that was.
    private func prepare(_ feed: Feed?, _ state: inout State) {
        guard let feed, feed !== state.prepared else { return }
        dropPrepared(&state)
        state.prepared = feed
    }

    /// Whether `line` goes on where the one in force is by then: the same voice plays on, and what
    /// was to stop it is taken back.
    private func continues(_ line: Line, _ format: MediaFormat, _ state: inout State) -> Bool {
        let now = state.schedule.line(at: line.instant)
        guard let sounding = state.sounding, now.rate == line.rate, isOnClock(sounding, state),
            abs(now.frame(at: line.instant, sampleRate: format.sampleRate) - line.itemFrame) < 0.5
        else { return false }
        let start = Feed.Start(
            line: line, clock: state.clock, endFrame: state.item?.endFrame, fadesIn: true)
        guard sounding.start(start) else { return false }
        dropPrepared(&state)
        state.schedule.append(line)
        return true
    }

    /// From the line's instant on, `feed` sounds by it and what sounded before is silent.
    private func play(_ line: Line, from feed: Feed, _ state: inout State) {
        // A beginning is played as it was mastered; everything else would begin with a click.
        let start = Feed.Start(
            line: line, clock: state.clock, endFrame: state.item?.endFrame,
            fadesIn: line.itemFrame > 0)
        if state.prepared === feed { state.prepared = nil }
        var feed = feed
        if !feed.start(start) {
            // It has ended since it was looked at.
            if state.sounding === feed { state.sounding = nil }
            let next = makeFeed(frame: line.itemFrame, rate: line.rate, state)
            next.start(start)
            if case .going(let old, let frame) = state.seek?.stage, old === feed {
                follow(next, from: frame, &state)
            }
            feed = next
        }
        if state.sounding !== feed {
            if let sounding = state.sounding {
                // A voice that already stands keeps standing.
                if state.schedule.lines.last?.rate != 0 {
                    sounding.stop(at: reading(line.instant, for: sounding, state))
                }
                sounding.retire()
            }
            state.upcoming = feed
        }
        state.schedule.append(line)
    }

    /// A feed that can play from `frame`: the prerolled one, the one that is paused there, or a new
    /// one.
    private func feed(for frame: Double, rate: Double, _ state: inout State) -> Feed {
        if let prepared = state.prepared {
            let ahead = Double(prepared.firstFrame) - frame
            let reach = Feed.reachSeconds * Double(prepared.format.sampleRate)
            if prepared.reaches(frame, rate: rate)
                || (prepared.rate == rate && ahead > 0 && ahead < reach)
            {
                return prepared
            }
            prepared.cancel()
            state.prepared = nil
        }
        let line = state.schedule.lines[state.schedule.lines.count - 1]
        if let paused = state.sounding, line.rate == 0, isOnClock(paused, state),
            paused.reaches(frame, rate: rate)
        {
            return paused
        }
        return makeFeed(frame: frame, rate: rate, state)
    }

    func makeFeed(frame: Double, rate: Double, _ state: State) -> Feed {
        guard let (item, format) = state.ready else {
            preconditionFailure("a feed is made only for an item that is ready")
        }
        let feed = Feed(
            item: item, format: format, frame: clamped(frame, state), rate: rate,
            gain: state.gain, output: output
        ) { [weak self] feed, event in
            self?.hear { $0.receive(event, from: feed) }
        }
        feed.begin()
        return feed
    }

    /// Lets a feed end in its own time.
    func retire(_ feed: Feed?, _ state: inout State) {
        guard let feed else { return }
        feed.retire()
        state.outgoing.append(feed)
    }

    func dropPrepared(_ state: inout State) {
        state.prepared?.cancel()
        state.prepared = nil
    }
}
