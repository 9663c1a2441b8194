import TuttiPlayout
import TuttiTiming

/// What time it is for this player.
///
/// With a shared clock that is simple. Without one the output plays at its crystal's own rate: its
/// time begins as local time when sound begins and then runs away from it, 80 ppm are 0.3 s in an
/// hour. `deviceLead` is how far it has run, measured at the voice that sounds; all instants of a
/// player without a source clock are in that time.
extension PlayerMachine {
    /// What the player's clock reads now.
    var reading: GroupInstant { reading(at: world.now) }

    /// What it reads when a command given now is heard.
    var soon: GroupInstant { reading(at: world.now + world.latency) }

    func reading(at instant: LocalInstant) -> GroupInstant {
        if let clock { return map(clock).map(instant) }
        return GroupInstant(nanoseconds: (instant + deviceLead).nanoseconds)
    }

    /// When the player's clock reads that.
    func local(_ instant: GroupInstant) -> LocalInstant {
        if let clock { return map(clock).map.inverted(instant) }
        return LocalInstant(nanoseconds: instant.nanoseconds) - deviceLead
    }

    private func map(_ clock: ClockID) -> SharedClock { world.clocks[clock] ?? .unknown }

    mutating func measureDevice() {
        guard clock == nil, let facts = itemFacts else { return }
        let current = program.entry(at: reading)
        if current.line.rate == 0 {
            // At rest: the next sound begins on local time.
            if deviceLead != .zero, program.pending(after: reading).isEmpty {
                program = Program(
                    continuing: Program.Entry(
                        item: current.item,
                        line: Program(
                            stillAt: current.line.frame(at: reading, sampleRate: facts.sampleRate)
                        ).last.line, feed: current.feed))
                deviceLead = .zero
                cuesToldTo = reading
            }
            return
        }
        guard let feed = current.feed, feeds[feed]?.start?.clock == nil else { return }
        if let start = feeds[feed]?.start, start.waits, !hasBegun(feed),
            reading > start.line.instant
        {
            // Time stands until the first frame is heard.
            let now = GroupInstant(nanoseconds: world.now.nanoseconds)
            deviceLead = start.line.instant - now
            return
        }
        if let lead = deviceLead(of: feed) { deviceLead = lead }
    }

    /// Whether its voice has begun to sound by the last start, or never will.
    private mutating func hasBegun(_ feed: FeedID) -> Bool {
        switch facts(feed).report?.state {
        case nil, .idle, .armed: break
        case .playing, .starved, .stopped, .ended: feeds[feed]?.hasBegun = true
        }
        return feeds[feed]?.hasBegun != false || !facts(feed).isAlive
    }

    /// How far the card is ahead of the local clock, by a feed that plays by the card; `nil` while its
    /// voice does not say.
    private func deviceLead(of feed: FeedID) -> Nanoseconds? {
        guard let record = feeds[feed], let line = record.start?.line,
            let report = facts(feed).report, report.state == .playing
        else { return nil }
        let speed = line.rate * Double(record.sampleRate)
        let device =
            line.instant + Nanoseconds(seconds: (report.itemFrame - line.itemFrame) / speed)
        return Nanoseconds(device.nanoseconds.subtracting(saturating: report.at.nanoseconds))
    }

    /// An instant of the player's clock on the clock that `feed` was started with: a voice keeps that
    /// for as long as it sounds, whatever the player goes by since.
    func reading(_ instant: GroupInstant, for feed: FeedID) -> GroupInstant {
        guard let start = feeds[feed]?.start, !isOnClock(feed) else { return instant }
        let local = local(instant)
        if let clock = start.clock { return map(clock).map(local) }
        let lead = deviceLead(of: feed) ?? .zero
        return GroupInstant(nanoseconds: (local + lead).nanoseconds)
    }

    /// Whether what `feed` plays by is what the player goes by.
    func isOnClock(_ feed: FeedID) -> Bool {
        feeds[feed]?.start.map { $0.clock == clock } ?? true
    }

    /// Item time moves to another clock without a jump: the line in force goes on from where it is,
    /// lines to come keep their moment.
    ///
    /// A voice cannot change its clock while it sounds; a second one takes over, through a dip of
    /// 10 ms.
    mutating func change(to clock: ClockID?) {
        // Joins are where the item ends, by the next clock too.
        dropJoins()
        let handOver = world.now + world.latency + Self.decodingMargin
        let handOverBefore = reading(at: handOver)
        let current = program.entry(at: reading)
        let pending = program.pending(after: reading).map { ($0, local($0.line.instant)) }
        let quiet = current.feed.map { reading(handOverBefore, for: $0) }
        self.clock = clock
        deviceLead = .zero
        cuesToldTo = reading
        guard let facts = itemFacts else { return }

        let line = Line(
            itemFrame: current.line.frame(at: handOverBefore, sampleRate: facts.sampleRate),
            instant: reading(at: handOver), rate: current.line.rate)
        var next = current
        // The same line, from now on: something else may be decided for before the voice begins.
        next.line = Line(
            itemFrame: line.frame(at: reading, sampleRate: facts.sampleRate), instant: reading,
            rate: line.rate)
        let isHeard = line.rate != 0 && !isBeyondEnd(line.itemFrame, at: line.rate)
        if pending.isEmpty, isHeard, transition == nil, ready != nil {
            let feed = makeFeed(frame: line.itemFrame, rate: line.rate)
            if let sounding = current.feed {
                emit(.stop(sounding, at: quiet))
                emit(.retire(sounding))
            }
            next.feed = feed
            start(feed, by: line, fadesIn: true)
        }
        program = Program(continuing: next)
        for (var entry, moment) in pending {
            entry.line.instant = reading(at: moment)
            program.append(entry)
            if entry.line.rate != 0, let feed = entry.feed, feed != current.feed {
                start(feed, by: entry.line, fadesIn: true)
            }
        }
    }

    /// Opening, seeking and decoding the first frames of a local file, generously.
    static let decodingMargin = Nanoseconds.milliseconds(100)
}
