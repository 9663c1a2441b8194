import TuttiChance
public import TuttiTiming

/// A room's side of the exchange: when to ask, and what to make of the answers.
///
/// `RequestSchedule` says when to ask. The kernel tells when a packet left only after it left: our
/// own stamp arrives from the error queue, the leader's with its next reply. An exchange is held
/// back until both are known or cannot come any more; while joining that costs a millisecond or
/// two.
public struct ClockFollower: Sendable {
    /// What the shell has to do, in the order in which it is told.
    public enum Effect: Equatable, Sendable {
        /// Send it now; `t1` is the instant given to the call that returned it.
        case send(TimeRequest)
        /// The line goes on like this; supersedes what was published before.
        case publish(SharedClock)
    }

    /// How many requests an answer may still come to.
    static let outstandingLimit = 64
    /// How long an exchange waits for transmit stamps: two pauses between trains, one between those
    /// of an idle room, or four idle ones on air.
    static let holdLimit = Nanoseconds.seconds(2)
    /// How long an answer may wait in the socket: more than the usual time between two requests.
    static let answerPatience = Nanoseconds.milliseconds(150)
    /// How long our own transmit stamp may take. The kernel delivers it in a fraction of that.
    static let ownStampLimit = Nanoseconds.milliseconds(50)

    /// After this many requests without a stamp the way out is taken to have none, and none is
    /// waited for.
    static let unstampedLimit = 16

    private struct Exchange {
        var sequence: UInt32
        var sentAt: LocalInstant
        var t1Kernel: LocalInstant?
        var answer: Answer?
        var isWaking: Bool
    }
    private struct Answer {
        var reply: TimeReply
        var t4: LocalInstant
        var isKernelStamp: Bool
        var t3Kernel: GroupInstant?
        /// No stamp can come any more: a later reply arrived without it.
        var isFinal: Bool
    }

    private var estimator: ClockEstimator
    private var schedule: RequestSchedule
    private var exchanges: [Exchange] = []
    private var nextSequence: UInt32
    /// Requests since the kernel stamped one.
    private var unstamped = Self.unstampedLimit
    private var kernelReceives = false
    private var leaderEpoch: UInt64?
    private var counts = ClockStatistics()
    private var published: SharedClock?
    private var reference = ReferenceListener()

    /// - Parameters:
    ///   - start: local time now; the first request is due at once.
    ///   - seed: of the first sequence number and of the spacing.
    ///   - stored: skew known from an earlier session with this leader.
    ///   - withheld: readings that have no say; see ``ClockEstimator``.
    public init(
        start: LocalInstant, seed: UInt64, stored: StoredSkew = .unknown,
        withholding withheld: Set<ReadingKind> = []
    ) {
        self.estimator = ClockEstimator(stored: stored, withholding: withheld)
        var random = SplitMix64(seed: seed)
        self.nextSequence = UInt32(truncatingIfNeeded: random.next())
        self.schedule = RequestSchedule(start: start, random: random)
    }

    /// - Parameters:
    ///   - clock: a line that is in use and goes on; see ``ClockEstimator``.
    ///   - stored: what is known of its rate.
    public init(
        start: LocalInstant, seed: UInt64, continuing clock: SharedClock, stored: StoredSkew
    ) {
        self.init(start: start, seed: seed, stored: stored)
        estimator = ClockEstimator(continuing: clock, stored: stored, at: start)
    }

    // MARK: - Input

    /// What is known of the leader's rate, when that turned out only after the first requests.
    public mutating func recall(_ stored: StoredSkew) { estimator.recall(stored) }

    /// A reply has arrived.
    ///
    /// - Parameters:
    ///   - t4: when, by the local clock.
    ///   - isKernelStamp: whether the kernel says so, or the program.
    ///   - now: local time of this call.
    public mutating func receive(
        _ reply: TimeReply, t4: LocalInstant, isKernelStamp: Bool, at now: LocalInstant
    ) -> [Effect] {
        // Also ends duplicates: an exchange takes one answer.
        guard
            var index = exchanges.firstIndex(where: {
                $0.sequence == reply.sequence && $0.sentAt == reply.t1 && $0.answer == nil
            })
        else {
            counts.ignored += 1
            return []
        }
        counts.answered += 1
        kernelReceives = isKernelStamp
        // Negative when the leader's clock jumped between its stamps.
        schedule.answered(
            roundTrip: max(.zero, (t4 - reply.t1) - (reply.t3 - reply.t2)),
            isNewest: reply.sequence &+ 1 == nextSequence, at: now)
        reference.take(
            reply.reference, sequence: reply.sequence, isNeeded: schedule.path == .air, at: now)
        if reply.epoch != leaderEpoch {
            // Samples of two lines do not mix; those still held back belong to the old one.
            leaderEpoch = reply.epoch
            exchanges.removeAll { $0.answer != nil }
            index = exchanges.firstIndex { $0.sequence == reply.sequence } ?? 0
            estimator.leaderChanged(epoch: reply.epoch, at: now)
            if published != nil { schedule.measureAnew(at: now) }
        }
        exchanges[index].answer = Answer(
            reply: reply, t4: t4, isKernelStamp: isKernelStamp, t3Kernel: nil, isFinal: false)
        settleEarlier(with: reply)
        return complete(at: now)
    }

    /// The kernel's stamp of our request `sequence`.
    public mutating func transmitted(
        sequence: UInt32, at t1: LocalInstant, now: LocalInstant
    ) -> [Effect] {
        unstamped = 0
        guard let index = exchanges.firstIndex(where: { $0.sequence == sequence }),
            t1 >= exchanges[index].sentAt, t1 - exchanges[index].sentAt < Self.ownStampLimit
        else { return [] }
        exchanges[index].t1Kernel = t1
        return exchanges[index].answer == nil ? [] : complete(at: now)
    }

    /// A reference broadcast of the leader that this room follows; `instant` is the kernel's stamp.
    public mutating func receive(_ beacon: ReferenceBeacon, at instant: LocalInstant) {
        if beacon.epoch == leaderEpoch { reference.receive(beacon, at: instant) }
    }

    /// Whether the room takes part in reference broadcasts (`nil`), or why not; `off` at first.
    public mutating func setReferenceRefusal(_ reason: ReferenceState?) {
        reference.setRefusal(reason)
    }

    /// Sends what is due, gives up waiting for stamps, keeps the line moving.
    public mutating func advance(to now: LocalInstant) -> [Effect] {
        var effects = complete(at: now)
        if now >= schedule.next { effects.insert(.send(ask(at: now)), at: 0) }
        estimator.advance(to: now)
        if let effect = publication(at: now) { effects.append(effect) }
        return effects
    }

    /// 16 requests from now on, 10 ms apart at most; before the line is played by again. Nothing
    /// within 0.1 s of the burst before.
    public mutating func burst(at now: LocalInstant) {
        schedule.burst(at: now)
    }

    /// Somebody is about to play by the line: a burst, or as many requests as when joining while it
    /// cannot be played by.
    public mutating func expectStart(_ start: ExpectedStart, at now: LocalInstant) {
        if estimator.quality(at: now) == .acquiring {
            schedule.measureAnew(at: now)
        } else {
            schedule.burst(at: now)
        }
        estimator.expectUse(for: start, at: now)
    }

    /// Nothing plays: a lower rate will do.
    public mutating func setIdle(_ isIdle: Bool, at now: LocalInstant) {
        schedule.setIdle(isIdle, at: now)
    }

    /// The machine was suspended: measures anew.
    public mutating func localClockJumped(at now: LocalInstant) -> [Effect] {
        exchanges.removeAll()
        estimator.localClockJumped(at: now)
        reference.forget()
        schedule.measureAnew(at: now)
        return publication(at: now).map { [$0] } ?? []
    }

    /// When ``advance(to:)`` has something to do.
    public var nextDeadline: LocalInstant {
        var next = schedule.next
        if let solve = estimator.nextDeadline { next = min(next, solve) }
        if let published, published.quality >= .acquiring, estimator.isInUse,
            let last = counts.lastAcceptedAt
        {
            next = min(next, last + ClockEstimator.silence + Nanoseconds(1))
        }
        return next
    }

    /// Whether answers may wait in the socket, where the kernel has stamped them, for `pause`,
    /// until ``nextDeadline``. On air a thread that wakes for each costs half as much again. On
    /// wires it must wake, since the next request leaves with the answer.
    ///
    /// - Parameter pause: until the thread wakes anyway.
    public func mayAnswersWait(_ pause: Nanoseconds) -> Bool {
        kernelReceives && published?.quality == .locked && schedule.path == .air
            && pause <= Self.answerPatience
    }

    // MARK: - Output

    /// The group clock as it is estimated now, reference broadcasts included; `nil` before the
    /// first exchange that was believed.
    public func sharedClock(at now: LocalInstant) -> SharedClock? {
        estimator.sharedClock(at: now).map { reference.corrected($0, at: now) }
    }

    /// The skew and how surely it is known, to be kept for the next time with this leader.
    public var storedSkew: StoredSkew { estimator.storedSkew }

    /// Replies that belonged to a request.
    public var answered: Int { counts.answered }

    /// Whether the last request has no answer yet. One that still comes to an earlier request is
    /// late.
    public var isAnswerAwaited: Bool {
        exchanges.last.map { $0.answer == nil && $0.sequence &+ 1 == nextSequence } ?? false
    }

    /// All figures of the exchange as of `now`, for status and log; reads nothing from outside.
    public func statistics(at now: LocalInstant) -> ClockStatistics {
        var all = counts
        let skew = estimator.storedSkew
        all.quality = estimator.quality(at: now)
        all.restarts = estimator.restarts
        all.roundTripFloor = estimator.roundTripFloor ?? .zero
        all.skewPartsPerMillion = skew.skew * 1e6
        all.skewDeviationPartsPerMillion = skew.deviation * 1e6
        all.reference = reference.statistics(at: now)
        all.bound =
            estimator.bound(at: now).map { $0 + all.reference.correction.magnitude } ?? .zero
        all.expectedError = estimator.expectedError(at: now) ?? .zero
        all.deviation = estimator.deviation
        all.age = counts.lastAcceptedAt.map { now - $0 } ?? .zero
        all.leaderEpoch = leaderEpoch ?? 0
        return all
    }

    // MARK: -

    /// Whether the kernel says when our packets leave.
    private var kernelTransmits: Bool { unstamped < Self.unstampedLimit }

    private mutating func ask(at now: LocalInstant) -> TimeRequest {
        let sequence = nextSequence
        nextSequence &+= 1
        if exchanges.count >= Self.outstandingLimit { exchanges.removeFirst() }
        let slot = schedule.depart(
            at: now,
            RequestSchedule.Prospect(
                roundTrip: counts.roundTrip, expectedError: estimator.expectedError,
                skewDeviation: estimator.storedSkew.deviation))
        exchanges.append(Exchange(sequence: sequence, sentAt: now, isWaking: slot.isWaking))
        counts.sent += 1
        unstamped = min(unstamped + 1, Self.unstampedLimit)
        return TimeRequest(
            sequence: sequence, t1: now,
            stamps: StampClass(receive: kernelReceives, transmit: kernelTransmits),
            pause: silence(until: slot.pause), isPrompt: slot.isPrompt,
            reference: reference.report(
                at: now, sequence: sequence, estimator.sharedClock(at: now),
                skew: estimator.storedSkew.skew, error: estimator.expectedError))
    }

    /// What is left of a pause for nothing to be on the path. Within a train the two packets take a
    /// large part of it; on a path of milliseconds the last round trip says little of the next.
    private func silence(until next: Nanoseconds) -> Nanoseconds {
        guard schedule.path <= .short else { return next }
        return max(next - counts.roundTrip, Nanoseconds(next.count / 2))
    }

    /// What a reply says about the replies that left before it: only the last of them can still
    /// get its stamp, and by this reply alone.
    private mutating func settleEarlier(with reply: TimeReply) {
        for index in exchanges.indices {
            guard let answer = exchanges[index].answer, answer.reply.t3 < reply.t3 else { continue }
            if let previous = reply.previous, previous.sequence == exchanges[index].sequence,
                previous.t3 >= answer.reply.t3
            {
                exchanges[index].answer?.t3Kernel = previous.t3
            }
            exchanges[index].answer?.isFinal = true
        }
    }

    /// Turns exchanges into samples that need not wait any longer.
    private mutating func complete(at now: LocalInstant) -> [Effect] {
        var isChanged = false
        var index = 0
        while index < exchanges.count {
            let exchange = exchanges[index]
            guard let answer = exchange.answer, !mustWait(exchange, answer, now) else {
                index += 1
                continue
            }
            exchanges.remove(at: index)
            isChanged = true
            take(exchange, answer, at: now)
        }
        guard isChanged, let effect = publication(at: now) else { return [] }
        return [effect]
    }

    private func mustWait(_ exchange: Exchange, _ answer: Answer, _ now: LocalInstant) -> Bool {
        let age = now - exchange.sentAt
        if kernelTransmits, exchange.t1Kernel == nil, age < Self.ownStampLimit { return true }
        let isComing = answer.reply.stamps == .kernel && !answer.isFinal
        return isComing && age < Self.holdLimit
    }

    private mutating func take(_ exchange: Exchange, _ answer: Answer, at now: LocalInstant) {
        let here = StampClass(
            receive: answer.isKernelStamp, transmit: exchange.t1Kernel != nil)
        let there = StampClass(
            receive: answer.reply.stamps != .program, transmit: answer.t3Kernel != nil)
        let sample = ExchangeSample(
            t1: exchange.t1Kernel ?? exchange.sentAt, t2: answer.reply.t2,
            t3: answer.t3Kernel ?? answer.reply.t3, t4: answer.t4, stamps: min(here, there))
        counts.stamps = sample.stamps
        counts.ownStamps = here
        counts.leaderStamps = there
        counts.roundTrip = max(.zero, sample.roundTrip)
        guard !exchange.isWaking else { return }
        switch estimator.receive(sample, at: now) {
        case .accepted:
            counts.accepted += 1
            counts.lastAcceptedAt = now
        case .rejected(let reason):
            counts.rejected += 1
            // A jump is believed when others say so too: ask them now.
            if reason == .contradiction { schedule.hasten(at: now) }
        case .restarted:
            counts.rejected += 1
            counts.lastAcceptedAt = now
            reference.forget()
            schedule.measureAnew(at: now)
        }
    }

    /// Nobody answers: what is published says so by its bound, which grows.
    private func isSilent(at now: LocalInstant) -> Bool {
        counts.lastAcceptedAt.map { now - $0 > ClockEstimator.silence } ?? true
    }

    /// The clock, when it is not the one published last.
    private mutating func publication(at now: LocalInstant) -> Effect? {
        guard let twoWay = estimator.sharedClock(at: now) else { return nil }
        reference.aim(
            at: now, twoWay.map, skew: estimator.storedSkew,
            error: estimator.expectedError ?? .zero,
            limit: (estimator.roundTripFloor ?? .zero) / 2,
            maySet: twoWay.quality == .acquiring || twoWay.epoch != published?.epoch)
        let clock = reference.corrected(twoWay, at: now)
        if let published, published.map == clock.map, published.quality == clock.quality,
            published.epoch == clock.epoch,
            !isSilent(at: now) || now - published.estimatedAt < .seconds(1)
        {
            return nil
        }
        published = clock
        return .publish(clock)
    }
}
