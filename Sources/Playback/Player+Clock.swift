import Playout
import RealTime
import Synchronization
import Timing

/// What time it is for this player.
///
/// With a shared clock that is simple. Without one the output plays at its crystal's own rate: its
/// time begins as local time when sound begins and then runs away from it, 80 ppm are 0.3 s in an
/// hour. `deviceLead` is how far it has run, measured at the voice that sounds; all instants of a
/// player without a source clock are in that time.
extension Player {
    /// Runs `body` with the state as it is now.
    func locked<Value: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> sending Value
    ) throws(Failure) -> Value {
        try state.withLock { state throws(Failure) in
            measureDevice(&state)
            return try body(&state)
        }
    }

    /// What the source clock reads at a local instant.
    func reading(_ state: State, at instant: LocalInstant) -> GroupInstant {
        if let clock = state.clock { return clock.cell.load().map(instant) }
        return GroupInstant(nanoseconds: (instant + state.deviceLead).nanoseconds)
    }

    /// The feed whose line is in force.
    func feedInForce(_ state: State) -> Feed? {
        guard let upcoming = state.upcoming, let last = state.schedule.lines.last,
            last.instant <= reading(state, at: output.now())
        else { return state.sounding }
        return upcoming
    }

    private func measureDevice(_ state: inout State) {
        guard state.clock == nil, let format = state.item?.format else { return }
        let now = reading(state, at: output.now())
        if state.schedule.line(at: now).rate == 0 {
            // At rest: the next sound begins on local time.
            if state.deviceLead != .zero, state.schedule.line(at: now) == state.schedule.lines.last
            {
                state.schedule = Schedule(
                    stillAt: state.schedule.frame(at: now, sampleRate: format.sampleRate))
                state.deviceLead = .zero
            }
            return
        }
        guard let feed = feedInForce(state), feed.start?.clock == nil else { return }
        if let lead = deviceLead(of: feed) { state.deviceLead = lead }
    }

    /// How far the card is ahead of the local clock, by a feed that plays by the card; `nil` while its
    /// voice does not say.
    private func deviceLead(of feed: Feed) -> Nanoseconds? {
        guard let line = feed.start?.line, let report = feed.report, report.state == .playing else {
            return nil
        }
        let speed = line.rate * Double(feed.format.sampleRate)
        let device =
            line.instant + Nanoseconds(seconds: (report.itemFrame - line.itemFrame) / speed)
        return Nanoseconds(device.nanoseconds.subtracting(saturating: report.at.nanoseconds))
    }

    /// An instant of the player's clock on the clock that `feed` was started with: a voice keeps that
    /// for as long as it sounds, whatever the player goes by since.
    func reading(_ instant: GroupInstant, for feed: Feed, _ state: State) -> GroupInstant {
        guard let start = feed.start, !isOnClock(feed, state) else { return instant }
        let local =
            state.clock?.cell.load().map.inverted(instant)
            ?? LocalInstant(nanoseconds: instant.nanoseconds) - state.deviceLead
        if let clock = start.clock { return clock.cell.load().map(local) }
        let lead = deviceLead(of: feed) ?? .zero
        return GroupInstant(nanoseconds: (local + lead).nanoseconds)
    }

    /// Whether what `feed` plays by is what the player goes by.
    func isOnClock(_ feed: Feed, _ state: State) -> Bool {
        feed.start.map { $0.clock?.cell === state.clock?.cell } ?? true
    }

    /// Item time moves to another clock without a jump: the line in force goes on from where it is,
    /// lines to come keep their moment.
    ///
    /// A voice cannot change its clock while it sounds; a second one takes over, through a dip of
    /// 10 ms.
    func change(clock: SourceClock?, _ state: inout State) {
        let now = output.now()
        let wasReading = reading(state, at: now)
        let old = (clock: state.clock, lead: state.deviceLead)
        let schedule = state.schedule
        let handOver = now + output.latency + Self.decodingMargin
        let handOverBefore = reading(state, at: handOver)
        let quiet = feedInForce(state).map { reading(handOverBefore, for: $0, state) }
        state.clock = clock
        state.deviceLead = .zero
        guard let format = state.item?.format else { return }

        var current = schedule.line(at: wasReading)
        current = Line(
            itemFrame: current.frame(at: handOverBefore, sampleRate: format.sampleRate),
            instant: reading(state, at: handOver), rate: current.rate)
        let pending = schedule.lines.filter { $0.instant > wasReading }
        if pending.isEmpty, current.rate != 0, state.transition == nil, state.ready != nil {
            if let taken = state.upcoming {
                retire(state.sounding, &state)
                state.sounding = taken
                state.upcoming = nil
            }
            let next = makeFeed(frame: current.itemFrame, rate: current.rate, state)
            state.sounding?.stop(at: quiet)
            retire(state.sounding, &state)
            state.sounding = next
            begin(next, current, state)
        }
        state.schedule = Schedule(continuing: current)
        for var line in pending {
            let local =
                old.clock?.cell.load().map.inverted(line.instant)
                ?? LocalInstant(nanoseconds: line.instant.nanoseconds) - old.lead
            line.instant = reading(state, at: local)
            state.schedule.append(line)
            if line.rate != 0, let upcoming = state.upcoming { begin(upcoming, line, state) }
        }
    }

    /// Opening, seeking and decoding the first frames of a local file, generously.
    static let decodingMargin = Nanoseconds.milliseconds(100)

    private func begin(_ feed: Feed, _ line: Line, _ state: State) {
        feed.start(
            Feed.Start(
                line: line, clock: state.clock, endFrame: state.item?.endFrame, fadesIn: true))
    }
}
