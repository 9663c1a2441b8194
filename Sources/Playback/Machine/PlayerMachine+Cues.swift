import TuttiPlayout
import TuttiTiming

struct ObserverID: Hashable, Sendable { var number: Int }

/// What somebody wants to be told of item time.
enum TimeObserver: Equatable, Sendable {
    /// Every multiple of so many seconds that is played by, each jump, and each start and stop.
    case periodic(Double)
    /// Each of these times that is played by; a jump over one does not count.
    case boundaries([MediaTime])
    /// The time now whenever one of these is played by, and at each jump.
    case marks([MediaTime])
}

/// Item time as others watch it. Nobody looks again and again: the program says when item time comes to
/// a place, and that is the machine's next deadline.
extension PlayerMachine {
    mutating func observe(_ id: ObserverID, _ observer: TimeObserver) {
        timeObservers[id] = observer
        switch observer {
        case .periodic(let interval): steps[id] = step(of: interval)
        case .marks: break
        case .boundaries: return
        }
        emit(.tell(id, time(of: currentFrame)))
    }

    mutating func endObserving(_ id: ObserverID) {
        timeObservers[id] = nil
        steps[id] = nil
    }

    /// Tells of what was played by since the last look. The program has not changed since.
    ///
    /// - Parameter now: no later than the next item begins.
    mutating func passCues(to now: GroupInstant) {
        // A clock that is corrected may step back: what was told is not told again.
        defer { cuesToldTo = cuesToldTo.map { max($0, now) } ?? now }
        guard let last = cuesToldTo, last < now, let facts = itemFacts else { return }
        for (id, observer) in timeObservers.sorted(by: { $0.key.number < $1.key.number }) {
            switch observer {
            case .periodic: tellStep(of: id, at: now)
            case .boundaries(let times):
                let passed = passed(times, from: last, to: now, facts)
                for (_, time) in passed.sorted(by: { $0.0 < $1.0 }) { emit(.tell(id, time)) }
            case .marks(let times):
                // A jump that was decided for later has come, or one of them.
                let isElsewhere = program.entries.contains {
                    $0.line.instant > last && $0.line.instant <= now
                }
                if isElsewhere || !passed(times, from: last, to: now, facts).isEmpty {
                    emit(.tell(id, playedTime(at: now, facts)))
                }
            }
        }
    }

    /// Those of some times that were played by, each with its instant.
    private func passed(
        _ times: [MediaTime], from last: GroupInstant, to now: GroupInstant,
        _ facts: PlayerWorld.ItemFacts
    ) -> [(GroupInstant, MediaTime)] {
        // Those of a song's words are many: only what lies near is looked at.
        let near = program.stretches(from: last, to: now).flatMap { stretch in
            times.within(stretch.frames(sampleRate: facts.sampleRate), facts.sampleRate)
        }
        return near.compactMap { time in
            guard let frame = time.frame(atSampleRate: facts.sampleRate),
                let instant = program.instant(
                    of: Double(frame), after: last, sampleRate: facts.sampleRate),
                instant <= now
            else { return nil }
            return (instant, time)
        }
    }

    /// Starts, stops and jumps, for those who watch every step.
    mutating func tellChanges() {
        let control = timeControlStatus
        let isChange = control != toldControl || hasJumped
        (toldControl, hasJumped) = (control, false)
        guard isChange else { return }
        for (id, observer) in timeObservers {
            switch observer {
            case .periodic(let interval): steps[id] = step(of: interval)
            case .marks: break
            case .boundaries: continue
            }
            emit(.tell(id, time(of: currentFrame)))
        }
    }

    /// - Parameter now: no later than the next item begins.
    private mutating func tellStep(of id: ObserverID, at now: GroupInstant) {
        guard case .periodic(let interval)? = timeObservers[id], let facts = itemFacts else {
            return
        }
        let time = playedTime(at: now, facts)
        let step = Self.step(of: interval, at: time, isBackwards: line(at: now).rate < 0)
        guard step != steps[id] else { return }
        steps[id] = step
        emit(.tell(id, time))
    }

    private func line(at now: GroupInstant) -> Line {
        program.entries.last { $0.item == item && $0.line.instant <= now }?.line ?? decided.line
    }

    /// - Parameter now: no later than the next item begins.
    private func playedTime(at now: GroupInstant, _ facts: PlayerWorld.ItemFacts) -> MediaTime {
        let line = line(at: now)
        return time(of: limited(line.frame(at: now, sampleRate: facts.sampleRate), by: line))
    }

    /// Intervals up to now; a hair before one counts as there, since instants are whole nanoseconds.
    private static func step(
        of interval: Double, at time: MediaTime, isBackwards: Bool
    ) -> Int64 {
        let count = time.seconds / interval
        return Int64(
            saturating: isBackwards
                ? (count - 1e-6).rounded(.up) - 1 : (count + 1e-6).rounded(.down))
    }

    private func step(of interval: Double) -> Int64 {
        Self.step(
            of: interval, at: time(of: currentFrame),
            isBackwards: program.entry(at: reading).line.rate < 0)
    }

    /// When the next of them is due.
    var nextCue: LocalInstant? {
        guard !timeObservers.isEmpty, let rate = itemFacts?.sampleRate else { return nil }
        // Behind that it is another item's time, and another look.
        let end =
            program.pending(after: reading).first { $0.item != item }?.line.instant
            ?? GroupInstant(nanoseconds: .max)
        let instants = timeObservers.values.flatMap { observer -> [GroupInstant] in
            let frames: [Double] =
                switch observer {
                case .periodic(let interval):
                    // One of them lies behind, by the direction.
                    [0, 1].map { Double(step(of: interval) + $0) * interval * Double(rate) }
                case .boundaries(let times), .marks(let times):
                    program.stretches(from: reading, to: GroupInstant(nanoseconds: .max))
                        .flatMap { stretch in
                            times.first(ofStretch: stretch.frames(sampleRate: rate), rate)
                                .compactMap { $0.frame(atSampleRate: rate).map(Double.init) }
                        }
                }
            return frames.compactMap {
                program.instant(of: $0, after: reading, sampleRate: rate)
            }.filter { $0 <= end }
        }
        let jump = program.pending(after: reading).first?.line.instant
        // Rounded, a clock's inverse may be a nanosecond early, and then again.
        return (instants + [jump].compactMap(\.self)).min().map { local($0) + .microseconds(1) }
    }
}

/// Times in their order.
extension [MediaTime] {
    /// Frames by which a place may be rounded.
    private static var slack: Double { 2 }

    /// How many of the first lie before a frame.
    private func count(before frame: Double, _ sampleRate: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].seconds * Double(sampleRate) < frame {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// Those that may lie between two frames.
    fileprivate func within(
        _ frames: (begin: Double, end: Double), _ sampleRate: Int
    ) -> ArraySlice<MediaTime> {
        let low = Swift.min(frames.begin, frames.end) - Self.slack
        let high = Swift.max(frames.begin, frames.end) + Self.slack
        return self[count(before: low, sampleRate)..<count(before: high, sampleRate)]
    }

    /// The first ones that are come by from a frame on, in the direction of another.
    fileprivate func first(
        ofStretch frames: (begin: Double, end: Double), _ sampleRate: Int
    ) -> ArraySlice<MediaTime> {
        // Some may be over already, by rounding.
        let most = 8
        if frames.begin <= frames.end {
            return self[count(before: frames.begin - Self.slack, sampleRate)...].prefix(most)
        }
        return self[..<count(before: frames.begin + Self.slack, sampleRate)].suffix(most)
    }
}
