import Playout
import Timing

struct ObserverID: Hashable, Sendable { var number: Int }

/// What somebody wants to be told of item time.
enum TimeObserver: Equatable, Sendable {
    /// Every multiple of so many seconds that is played by, each jump, and each start and stop.
    case periodic(Double)
    /// Each of these times that is played by; a jump over one does not count.
    case boundaries([MediaTime])
}

/// Item time as others watch it. Nobody looks again and again: the program says when item time comes to
/// a place, and that is the machine's next deadline.
extension PlayerMachine {
    mutating func observe(_ id: ObserverID, _ observer: TimeObserver) {
        timeObservers[id] = observer
        guard case .periodic(let interval) = observer else { return }
        steps[id] = step(of: interval)
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
                let passed = times.compactMap { time -> (GroupInstant, MediaTime)? in
                    guard let frame = time.frame(atSampleRate: facts.sampleRate),
                        let instant = program.instant(
                            of: Double(frame), after: last, sampleRate: facts.sampleRate),
                        instant <= now
                    else { return nil }
                    return (instant, time)
                }
                for (_, time) in passed.sorted(by: { $0.0 < $1.0 }) { emit(.tell(id, time)) }
            }
        }
    }

    /// Starts, stops and jumps, for those who watch every step.
    mutating func tellChanges() {
        let control = timeControlStatus
        let isChange = control != toldControl || hasJumped
        (toldControl, hasJumped) = (control, false)
        guard isChange else { return }
        for (id, observer) in timeObservers {
            guard case .periodic(let interval) = observer else { continue }
            steps[id] = step(of: interval)
            emit(.tell(id, time(of: currentFrame)))
        }
    }

    /// - Parameter now: no later than the next item begins.
    private mutating func tellStep(of id: ObserverID, at now: GroupInstant) {
        guard case .periodic(let interval)? = timeObservers[id], let facts = itemFacts else {
            return
        }
        let line =
            program.entries.last { $0.item == item && $0.line.instant <= now }?.line
            ?? decided.line
        let frame = line.frame(at: now, sampleRate: facts.sampleRate)
        let time = time(of: actionAtItemEnd == .none ? max(0, frame) : clamped(frame))
        let step = Self.step(of: interval, at: time)
        guard step != steps[id] else { return }
        steps[id] = step
        emit(.tell(id, time))
    }

    /// Intervals up to now; a hair before one counts as there, since instants are whole nanoseconds.
    private static func step(of interval: Double, at time: MediaTime) -> Int64 {
        Int64(saturating: (time.seconds / interval + 1e-6).rounded(.down))
    }

    private func step(of interval: Double) -> Int64 {
        Self.step(of: interval, at: time(of: currentFrame))
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
                    [(Double(step(of: interval) + 1) * interval * Double(rate))]
                case .boundaries(let times):
                    times.compactMap { $0.frame(atSampleRate: rate).map(Double.init) }
                }
            return frames.compactMap {
                program.instant(of: $0, after: reading, sampleRate: rate)
            }.filter { $0 <= end }
        }
        // Rounded, a clock's inverse may be a nanosecond early, and then again.
        return instants.min().map { local($0) + .microseconds(1) }
    }
}
