import func Glibc.hypot
import func Glibc.sqrt
public import TuttiTiming

/// Estimates the leader's clock from exchanged time stamps, and draws a line through it that
/// never steps.
///
/// Each exchange says: leader − local lies within (f − b)/2 ± round trip/2, with f = t2 − t1 and
/// b = t4 − t3. ``EnvelopeSolver`` turns many of them into offset and skew; ``SkewFilter`` keeps
/// the skew; ``ClockLine`` is what is published. What cannot be observed by two-way exchange, a
/// constant difference of the two directions, is inside ``bound(at:)``, not in the estimate.
///
/// Four exchanges in a row that contradict the prediction mean that a clock jumped or the leader
/// was replaced: the samples are dropped, the skew is kept. When the new estimate is as good as one
/// must be to be played by, it is compared with the line: what leaning takes away within a second
/// is leant away; more than that is a jump that was heard already, and there is a new line with a
/// new epoch.
///
/// Coordinates: seconds relative to the first exchange (``ClockBase``).
public struct ClockEstimator: Sendable {
    /// Why an exchange is not believed.
    public enum Rejection: Sendable, Equatable {
        /// Not positive, or above a second.
        case roundTrip
        /// Does not agree with what is known; a second opinion is awaited.
        case contradiction
    }
    /// What became of an exchange.
    public enum ReceiveResult: Sendable, Equatable {
        case accepted
        case rejected(Rejection)
        /// The fourth contradiction in a row: everything but the skew was measured anew.
        case restarted
    }

    static let roundTripLimit = Nanoseconds.seconds(1)
    static let contradictionsToRestart = 4
    /// The time between two solves. To solve at every sample would do no better and cost four times
    /// as much.
    static let solveInterval = Nanoseconds.milliseconds(250)
    /// The same after half a minute, when half a second adds little to what is known.
    static let calmInterval = Nanoseconds.milliseconds(500)
    static let youngSpan = Nanoseconds.seconds(30)
    /// In the first second and a half nothing is old enough to wait for: the first packet after a
    /// twentieth of its age, or ``eagerInterval``, is read at once.
    static let eagerSpan = Nanoseconds.milliseconds(1_500)
    static let eagerInterval = Nanoseconds.milliseconds(10)
    /// Without an accepted sample for this long, the clock runs on its own.
    public static let silence = Nanoseconds.seconds(3)
    /// How many samples a clock must have to be called locked.
    static let samplesToLock = 8

    private struct Estimate {
        var fit: ClockReading
        /// Local time of the solve, seconds from the base.
        var time: Double
    }

    private var base: ClockBase?
    private var history: ReadingEnsemble
    private var filter: SkewFilter
    private var estimate: Estimate?
    private var line: ClockLine?
    /// When the measurements had to start over and the line was kept, until it was compared.
    private var shakenSince: LocalInstant?
    private var patience = LockRule()
    /// Somebody may play by the line: from now on it leans and is not set.
    private(set) var isInUse = false
    private var contradictions: [ExchangeSample] = []
    private var isDirty = false
    private var solvedAt: LocalInstant?
    private var startedAt: LocalInstant?
    private var lastAccepted: LocalInstant?
    private var samplesSinceStart = 0
    private var leaderEpoch: UInt64 = 0
    private var breaks: UInt64 = 0

    /// How often the measurements had to start over.
    public private(set) var restarts = 0

    /// - Parameters:
    ///   - stored: what ``storedSkew`` said at the end of an earlier session with the same leader;
    ///     makes the first seconds better.
    ///   - withheld: readings that have no say; for showing what they earn.
    public init(stored: StoredSkew = .unknown, withholding withheld: Set<ReadingKind> = []) {
        self.filter = SkewFilter(stored)
        history = ReadingEnsemble(withholding: withheld)
    }

    /// Goes on with a line that is in use: what is measured from now on makes it lean, as after a
    /// change of leaders.
    ///
    /// - Parameters:
    ///   - clock: the line, by whoever knew it until now.
    ///   - stored: what is known of its rate.
    public init(continuing clock: SharedClock, stored: StoredSkew, at now: LocalInstant) {
        self.init(stored: stored)
        line = ClockLine(
            at: now, reading: clock.map(now), skew: clock.map.skew, startedAt: now)
        lineEpoch = clock.epoch
        leaderEpoch = clock.epoch
        isInUse = true
        shakenSince = now
        lastAccepted = now
        last = (clock.uncertainty, nil, now)
    }

    // MARK: - Input

    /// Who the leader is turned out only now, and with it what is known of its rate. To be called
    /// while the line is young: it counts as if it had been known from the beginning.
    public mutating func recall(_ stored: StoredSkew) {
        filter = SkewFilter(stored)
        isDirty = base != nil
    }

    /// Takes one exchange, in any order; solves when it is time.
    ///
    /// - Parameter now: local time; not before the sample's `t4`.
    public mutating func receive(
        _ sample: ExchangeSample, at now: LocalInstant
    ) -> ReceiveResult {
        let held = sample.t3 - sample.t2
        keepLock(at: now)
        guard held >= .zero, sample.t4 - sample.t1 <= Self.roundTripLimit else {
            return .rejected(.roundTrip)
        }
        // The leader's time to answer is in its own seconds: 10 µs in 100 ms, by some crystals.
        let roundTrip = sample.roundTrip + Nanoseconds(seconds: filter.skew * held.seconds)
        guard roundTrip > .zero else { return .rejected(.roundTrip) }
        if contradicts(sample) {
            // Nonsense contradicts itself too; a clock that jumped does not.
            if let last = contradictions.last, !last.agrees(with: sample) {
                contradictions.removeAll(keepingCapacity: true)
            }
            contradictions.append(sample)
            guard contradictions.count >= Self.contradictionsToRestart else {
                return .rejected(.contradiction)
            }
            let fresh = contradictions
            restart(at: now)
            for sample in fresh { store(sample, at: now) }
            solveIfDue(at: now)
            return .restarted
        }
        contradictions.removeAll(keepingCapacity: true)
        store(sample, at: now)
        solveIfDue(at: now)
        return .accepted
    }

    /// The leader says its line is another one: drops the samples, keeps skew and line.
    public mutating func leaderChanged(epoch: UInt64, at now: LocalInstant) {
        guard epoch != leaderEpoch else { return }
        keepLock(at: now)
        if base != nil { restart(at: now) }
        // A running line keeps its epoch: the new leader continues the old one's, if it can.
        if line == nil { breaks = 0 }
        leaderEpoch = epoch
        if line == nil { lineEpoch = epoch }
    }

    /// The local clock stood still or jumped, a suspend for instance: drops the samples, keeps the
    /// skew.
    public mutating func localClockJumped(at now: LocalInstant) {
        keepLock(at: now)
        if base != nil { restart(at: now) }
        if line != nil { last = (.seconds(3600), .seconds(3600), now) }
    }

    /// Somebody waits to play by the line: from now on it may take no longer than ``LockRule``
    /// to become good.
    public mutating func expectUse(for start: ExpectedStart, at now: LocalInstant) {
        keepLock(at: now)
        patience.expectUse(for: start, at: now)
    }

    /// Solves when a solve is due, and takes back the lean of the line.
    public mutating func advance(to now: LocalInstant) {
        keepLock(at: now)
        solveIfDue(at: now)
        guard let line, let estimate, now >= line.leanEnds, line.lean != 0 else { return }
        aim(estimate, at: now)
    }

    /// When ``advance(to:)`` has something to do; `nil` when only a sample can change anything.
    public var nextDeadline: LocalInstant? {
        var deadlines: [LocalInstant] = []
        if isDirty, let solvedAt { deadlines.append(solvedAt + pause(after: solvedAt)) }
        if let line, estimate != nil, line.lean.magnitude > 1e-9 {
            deadlines.append(line.leanEnds)
        }
        return deadlines.min()
    }

    // MARK: - Output

    /// The group clock as of `now`; `nil` before the first exchange.
    ///
    /// While `acquiring` the line may still be set by some µs; from `locked` on it is continuous
    /// for as long as `epoch` stays the same. `estimatedAt` is `now`, and the uncertainty holds
    /// there.
    public func sharedClock(at now: LocalInstant) -> SharedClock? {
        guard let line else { return nil }
        return SharedClock(
            map: line.map, uncertainty: bound(at: now) ?? .seconds(3600), estimatedAt: now,
            epoch: lineEpoch, quality: quality(at: now))
    }

    /// How good the line is at `now`.
    public func quality(at now: LocalInstant) -> SharedClock.Quality {
        guard let line, let lastAccepted else { return .none }
        guard estimate != nil, now - lastAccepted <= Self.silence else {
            // A line that was never good is not good for nobody answering.
            return isInUse ? .holdover : .acquiring
        }
        return (isInUse || isSettled(since: line.startedAt, at: now))
            && samplesSinceStart >= Self.samplesToLock
            ? .locked : .acquiring
    }

    /// Whether a line that began at `start` may be played by.
    private func isSettled(since start: LocalInstant, at now: LocalInstant) -> Bool {
        let knowledge = estimate.map {
            LockRule.Knowledge(
                error: $0.fit.error, skewDeviation: sqrt(filter.variance),
                roundTrip: history.floor.delay ?? 0)
        }
        return samplesSinceStart >= Self.samplesToLock
            && patience.isSatisfied(
                with: knowledge, since: start, at: now, isHeard: breaks > 0 || shakenSince != nil)
    }

    /// Half width of the interval around the line that contains the leader's clock, whatever the
    /// asymmetry of the path: half the smallest round trip, the line's distance from the estimate,
    /// the crystal's wander, and what may have happened since the last solve.
    public func bound(at now: LocalInstant) -> Nanoseconds? {
        guard let line else { return nil }
        guard let estimate, let base, let solvedAt else {
            // The measurements were dropped: only the last line is left, and a jump is likely.
            guard let last else { return nil }
            return last.bound + Self.growth(since: now - last.at, filter)
        }
        let offset = estimate.fit.offset + filter.skew * (base.time(now) - estimate.time)
        // A delay below zero: exchanges contradict each other by so much, and one of them is wrong.
        let seconds =
            (offset - base.difference(line.map(now), now)).magnitude
            + estimate.fit.delay.magnitude / 2 + estimate.fit.noise + 3 * estimate.fit.wander
            + estimate.fit.shift
            + 2 * sqrt(filter.variance) * estimate.fit.support
        return Nanoseconds(seconds: seconds) + Self.growth(since: now - solvedAt, filter)
    }

    /// What is known of the skew, to be passed to the next session's `init`.
    public var storedSkew: StoredSkew {
        StoredSkew(skew: filter.skew, deviation: sqrt(filter.variance))
    }

    /// Smallest round trip of the last five minutes.
    public var roundTripFloor: Nanoseconds? {
        history.floor.delay.map(Nanoseconds.init(seconds:))
    }

    /// Expected error of the estimate: noise, wander and half of the excess delay. The bound is a
    /// promise, this is a guess, usually ten times smaller.
    public var expectedError: Nanoseconds? {
        estimate.map { Nanoseconds(seconds: $0.fit.error) }
    }

    /// The same at `now`: with a third of what the bound allows a crystal since the last exchange.
    public func expectedError(at now: LocalInstant) -> Nanoseconds? {
        let since = estimate == nil ? last?.at : lastAccepted
        guard let known = expectedError ?? last?.expectedError, let since else { return nil }
        let growth = Self.growth(since: now - since, filter).seconds / 3
        return Nanoseconds(seconds: hypot(known.seconds, growth))
    }

    /// Estimate minus line at the last solve: what the line still has to lean by.
    public var deviation: Nanoseconds {
        Nanoseconds(seconds: line?.deviation ?? 0)
    }

    /// Length of the window the estimate was made from; seconds.
    public var window: Double { estimate?.fit.span ?? 0 }

    // MARK: -

    private var lineEpoch: UInt64 = 0
    /// Bound and expected error of the estimate that was dropped last, and when that happened.
    private var last: (bound: Nanoseconds, expectedError: Nanoseconds?, at: LocalInstant)?

    /// What an unwatched crystal may do: its skew's uncertainty, half a ppm of breathing, and a
    /// thermal ramp of 0.1 ppm/s up to 5 ppm.
    private static func growth(since age: Nanoseconds, _ filter: SkewFilter) -> Nanoseconds {
        let age = max(0, age.seconds)
        let rate = 3 * sqrt(filter.variance) + 0.5e-6 + min(0.05e-6 * age, 5e-6)
        return Nanoseconds(seconds: rate * age)
    }

    private func contradicts(_ sample: ExchangeSample) -> Bool {
        guard let base, let estimate else { return false }
        let f = base.difference(sample.t2, sample.t1)
        let b = -base.difference(sample.t3, sample.t4)
        let middle = (base.time(sample.t1) + base.time(sample.t4)) / 2
        let age = middle - estimate.time
        let predicted = estimate.fit.offset + filter.skew * age
        let margin = 50e-6 + 5 * estimate.fit.error + 100e-6 * age.magnitude
        return ((f - b) / 2 - predicted).magnitude > (f + b) / 2 + margin
    }

    private mutating func store(_ sample: ExchangeSample, at now: LocalInstant) {
        let base = self.base ?? ClockBase(sample)
        if self.base == nil {
            self.base = base
            startedAt = now
        }
        history.insert(
            sent: base.time(sample.t1), outward: base.difference(sample.t2, sample.t1),
            arrived: base.time(sample.t4), homeward: -base.difference(sample.t3, sample.t4),
            slope: filter.skew)
        lastAccepted = now
        samplesSinceStart += 1
        isDirty = true
    }

    private mutating func restart(at now: LocalInstant) {
        if let bound = bound(at: now) { last = (bound, expectedError(at: now), now) }
        history.removeAll()
        contradictions.removeAll()
        base = nil
        estimate = nil
        solvedAt = nil
        isDirty = false
        samplesSinceStart = 0
        filter.loosen()
        line?.coast(at: now, skew: filter.skew)
        if isInUse { shakenSince = now } else { line?.begin(at: now) }
        restarts += 1
    }

    /// What was called locked since the last packet stays so: somebody may have begun to play.
    private mutating func keepLock(at now: LocalInstant) {
        if !isInUse, quality(at: now) == .locked { isInUse = true }
    }

    /// Between a solve at `instant` and the next.
    private func pause(after instant: LocalInstant) -> Nanoseconds {
        guard let startedAt, instant - startedAt > Self.youngSpan else {
            return Self.solveInterval
        }
        return Self.calmInterval
    }

    private mutating func solveIfDue(at now: LocalInstant) {
        guard isDirty, let startedAt else { return }
        if let solvedAt {
            let age = now - startedAt
            let pause =
                age <= Self.eagerSpan
                ? max(Self.eagerInterval, Nanoseconds(age.count / 20)) : pause(after: solvedAt)
            if now - solvedAt < pause { return }
        }
        solve(at: now)
    }

    private mutating func solve(at now: LocalInstant) {
        guard let base else { return }
        isDirty = false
        let time = base.time(now)
        let elapsed = solvedAt.map { (now - $0).seconds } ?? 0.01
        filter.advance(by: max(0, elapsed))
        guard
            let fit = history.solve(
                at: time, elapsed: elapsed, window: estimate?.fit.window, filter: &filter)
        else { return }
        let estimate = Estimate(fit: fit, time: time)
        self.estimate = estimate
        solvedAt = now
        aim(estimate, at: now)
    }

    /// Leans the line towards the estimate, or sets it where that is allowed.
    private mutating func aim(_ estimate: Estimate, at now: LocalInstant) {
        guard let base else { return }
        let offset = estimate.fit.offset + filter.skew * (base.time(now) - estimate.time)
        guard var line else { return setLine(offset, base, at: now, startedAt: now) }
        let deviation = offset - base.difference(line.map(now), now)
        guard isInUse else {
            // Also by the estimate that makes it good: nobody has seen the line as that yet.
            setLine(offset, base, at: now, startedAt: line.startedAt)
            isInUse = isSettled(since: line.startedAt, at: now)
            return
        }
        let fit = estimate.fit
        if let since = shakenSince, isSettled(since: since, at: now) {
            shakenSince = nil
            // Others may play by the new line at once: it is as good as the old one was.
            if ClockLine.isJump(deviation, excess: fit.excess, error: fit.error) {
                return startLine(offset, base, at: now)
            }
        }
        if line.breaks(at: now, edge: ClockLine.edge(deviation, fit.excess)) {
            isInUse = false
            return startLine(offset, base, at: now)
        }
        line.aim(
            at: now, deviation: deviation, excess: fit.excess, error: fit.error, skew: filter.skew)
        self.line = line
    }

    /// Another line, and everybody is told so.
    private mutating func startLine(_ offset: Double, _ base: ClockBase, at now: LocalInstant) {
        breaks += 1
        lineEpoch = leaderEpoch &+ breaks
        setLine(offset, base, at: now, startedAt: now)
    }

    private mutating func setLine(
        _ offset: Double, _ base: ClockBase, at now: LocalInstant, startedAt: LocalInstant
    ) {
        line = ClockLine(
            at: now, reading: base.group(now, difference: offset), skew: filter.skew,
            startedAt: startedAt)
    }
}
