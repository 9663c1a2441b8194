public import Timing

/// A room's side of the exchange: when to ask, and what to make of the answers.
///
/// Schedule: when joining 16 requests 10 ms apart, then one a round trip (1 to 10 ms) for a second
/// and a half or until the line is good, then 40 a second until 3 s, then as many as keep the
/// expected error below a tenth of a sample, 8 to 40 a second with ±20 % random spacing, so that no
/// periodic disturbance stays hidden; 2 when idle. A burst of 16 on demand and after a silence;
/// back-off to one a second while nobody answers. After a pause the first request of a burst only
/// wakes a sleeping radio: the others follow 25 ms later.
///
/// The kernel tells when a packet left only after it left: our own stamp arrives from the error
/// queue, the leader's with its next reply. An exchange is held back until both are known or
/// cannot come any more; in the joining burst that costs 10 ms.
public struct ClockFollower: Sendable {
    public enum Effect: Equatable, Sendable {
        /// Send it now; `t1` is the instant given to the call that returned it.
        case send(TimeRequest)
        /// The line goes on like this; supersedes what was published before.
        case publish(SharedClock)
    }

    public static let burstLength = 16
    public static let burstSpacing = Nanoseconds.milliseconds(10)
    static let closestSpacing = Nanoseconds.milliseconds(1)
    static let joinSpacing = Nanoseconds.milliseconds(25)
    static let joinSpan = Nanoseconds.seconds(3)
    /// The first of it, in which requests follow each other as closely as the path allows.
    static let denseSpan = Nanoseconds.milliseconds(1_500)
    static let activeSpacing = Nanoseconds.milliseconds(125)
    /// While the expected error is far above ``contentment``: on a path that is seldom clean only
    /// more packets help; 40 a second are 70 kbit/s.
    static let anxiousSpacing = Nanoseconds.milliseconds(25)
    /// Less than a tenth of a sample at 48 kHz: two rooms' errors and their cards' stay below a
    /// quarter.
    static let contentment = Nanoseconds(1_500)
    /// The same for the skew: in a second it adds as much.
    static let straightness = 2e-6
    static let idleSpacing = Nanoseconds.milliseconds(500)
    /// Round trip of a path of wires, where cold caches are a part of the delay worth removing. On
    /// a longer one a herald would only be one more packet to queue behind.
    static let shortPath = Nanoseconds.microseconds(400)
    /// A radio that was left alone for this long may sleep …
    static let drowsiness = Nanoseconds.milliseconds(80)
    /// … and takes this long to wake, at least: the first request of a burst does that.
    static let wakePause = Nanoseconds.milliseconds(25)
    /// Nobody answers: at this pace, at first and after ``patience``.
    static let silentSpacing = Nanoseconds.milliseconds(250)
    static let deafSpacing = Nanoseconds.seconds(1)
    static let patience = Nanoseconds.seconds(10)
    /// An answer after a silence of this length is followed by a burst.
    static let silence = Nanoseconds.seconds(2)
    /// Requests that an answer may still come to.
    static let outstandingLimit = 64
    /// How long an exchange waits for transmit stamps: two idle periods and a round trip.
    static let holdLimit = Nanoseconds.milliseconds(1_200)
    /// How long our own transmit stamp may take. The kernel delivers it in a fraction of that.
    static let ownStampLimit = Nanoseconds.milliseconds(50)

    private struct Exchange {
        var sequence: UInt32
        var sentAt: LocalInstant
        var t1Kernel: LocalInstant?
        var answer: Answer?
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
    private var random: SplitMix64
    private var exchanges: [Exchange] = []
    private var nextSequence: UInt32
    private var nextSend: LocalInstant
    private var burstLeft = Self.burstLength
    private var lastSent: LocalInstant?
    /// The next request wakes the radio for the burst behind it.
    private var wakes = false
    private var joinedAt: LocalInstant?
    private var askedSince: LocalInstant
    private var lastAnswer: LocalInstant?
    private var isIdle = false
    private var kernelTransmits = false
    private var kernelReceives = false
    private var leaderEpoch: UInt64?
    private var counts = ClockStatistics()
    private var published: SharedClock?
    private var reference = ReferenceListener()

    /// - Parameters:
    ///   - start: local time now; the first request is due at once.
    ///   - seed: of the first sequence number and of the spacing.
    ///   - stored: skew known from an earlier session with this leader.
    public init(start: LocalInstant, seed: UInt64, stored: StoredSkew = .unknown) {
        self.estimator = ClockEstimator(stored: stored)
        self.random = SplitMix64(seed: seed)
        self.nextSequence = UInt32(truncatingIfNeeded: random.next())
        self.nextSend = start
        self.askedSince = start
    }

    // MARK: - Input

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
        noteAnswer(at: now)
        reference.take(
            reply.reference, sequence: reply.sequence, skew: estimator.storedSkew.skew,
            error: estimator.expectedError, at: now)
        if reply.epoch != leaderEpoch {
            // Samples of two lines do not mix; those still held back belong to the old one.
            leaderEpoch = reply.epoch
            exchanges.removeAll { $0.answer != nil }
            index = exchanges.firstIndex { $0.sequence == reply.sequence } ?? 0
            estimator.leaderChanged(epoch: reply.epoch, at: now)
            if published != nil { measureAnew(at: now) }
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
        kernelTransmits = true
        guard let index = exchanges.firstIndex(where: { $0.sequence == sequence }),
            t1 >= exchanges[index].sentAt, t1 - exchanges[index].sentAt < Self.ownStampLimit
        else { return [] }
        exchanges[index].t1Kernel = t1
        return exchanges[index].answer == nil ? [] : complete(at: now)
    }

    /// A reference broadcast of the leader that this room follows; `instant` is the kernel's stamp.
    public mutating func receive(_ beacon: ReferenceBeacon, at instant: LocalInstant) {
        reference.receive(beacon, at: instant)
    }

    /// Whether the room takes part in reference broadcasts (`nil`), or why not; `off` at first.
    public mutating func setReferenceRefusal(_ reason: ReferenceState?) {
        reference.setRefusal(reason)
    }

    /// Sends what is due, gives up waiting for stamps, keeps the line moving.
    public mutating func advance(to now: LocalInstant) -> [Effect] {
        var effects = complete(at: now)
        if now >= nextSend { effects.insert(.send(ask(at: now)), at: 0) }
        estimator.advance(to: now)
        if let effect = publication(at: now) { effects.append(effect) }
        return effects
    }

    /// 16 requests 10 ms apart from now on; before a scheduled start.
    public mutating func burst(at now: LocalInstant) {
        burstLeft = Self.burstLength
        if let lastSent, now - lastSent > Self.drowsiness { wakes = true }
        nextSend = min(nextSend, now)
    }

    /// As when joining: nothing that was measured counts any more.
    private mutating func measureAnew(at now: LocalInstant) {
        joinedAt = now
        burst(at: now)
    }

    /// Nothing plays: a lower rate will do.
    public mutating func setIdle(_ isIdle: Bool, at now: LocalInstant) {
        guard isIdle != self.isIdle else { return }
        self.isIdle = isIdle
        if !isIdle { nextSend = min(nextSend, now + Self.activeSpacing) }
    }

    /// The machine was suspended: measures anew.
    public mutating func localClockJumped(at now: LocalInstant) -> [Effect] {
        exchanges.removeAll()
        estimator.localClockJumped(at: now)
        reference.forget()
        measureAnew(at: now)
        return publication(at: now).map { [$0] } ?? []
    }

    /// When ``advance(to:)`` has something to do.
    public var nextDeadline: LocalInstant {
        var next = nextSend
        if let solve = estimator.nextDeadline { next = min(next, solve) }
        if let published, published.quality >= .acquiring, let last = counts.lastAcceptedAt {
            next = min(next, last + ClockEstimator.silence + Nanoseconds(1))
        }
        return next
    }

    // MARK: - Output

    public func sharedClock(at now: LocalInstant) -> SharedClock? {
        estimator.sharedClock(at: now).map { reference.corrected($0, at: now) }
    }

    public var storedSkew: StoredSkew { estimator.storedSkew }

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
        all.expectedError = estimator.expectedError ?? .zero
        all.deviation = estimator.deviation
        all.age = counts.lastAcceptedAt.map { now - $0 } ?? .zero
        all.leaderEpoch = leaderEpoch ?? 0
        return all
    }

    // MARK: -

    private mutating func noteAnswer(at now: LocalInstant) {
        if joinedAt == nil { joinedAt = now }
        // The first answer of all is part of the joining burst, unless that went unheard.
        let since = lastAnswer ?? askedSince
        if now - since > Self.silence { burst(at: now) }
        lastAnswer = now
    }

    private mutating func ask(at now: LocalInstant) -> TimeRequest {
        let sequence = nextSequence
        nextSequence &+= 1
        if exchanges.count >= Self.outstandingLimit { exchanges.removeFirst() }
        exchanges.append(Exchange(sequence: sequence, sentAt: now))
        counts.sent += 1
        let pause = spacing(at: now)
        nextSend = now + pause
        let isShort = estimator.roundTripFloor.map { $0 <= Self.shortPath } ?? false
        return TimeRequest(
            sequence: sequence, t1: now,
            stamps: StampClass(receive: kernelReceives, transmit: kernelTransmits), pause: pause,
            hasHerald: isShort,
            reference: reference.report(
                at: now, sequence: sequence, estimator.sharedClock(at: now),
                skew: estimator.storedSkew.skew, error: estimator.expectedError))
    }

    private mutating func spacing(at now: LocalInstant) -> Nanoseconds {
        lastSent = now
        if wakes {
            wakes = false
            return Self.wakePause
        }
        if burstLeft > 1 {
            burstLeft -= 1
            return Self.burstSpacing
        }
        burstLeft = 0
        let quiet = now - (lastAnswer ?? askedSince)
        if quiet > Self.patience { return jittered(Self.deafSpacing) }
        if quiet > Self.silence { return jittered(Self.silentSpacing) }
        let isGood = estimator.expectedError.map { $0 <= Self.contentment } ?? false
        if let joinedAt, now - joinedAt > Self.joinSpan {
            if isIdle { return jittered(Self.idleSpacing) }
            return jittered(steadySpacing)
        }
        // While the line is young every packet brings it forward.
        let isYoung = joinedAt.map { now - $0 < Self.denseSpan } ?? true
        let isStraight = estimator.storedSkew.deviation <= Self.straightness
        if !isYoung || (isGood && isStraight) { return Self.joinSpacing }
        // Closer than a round trip, packets of a jittery path would queue behind each other.
        return min(Self.burstSpacing, max(Self.closestSpacing, counts.roundTrip))
    }

    /// So many packets as ``contentment`` takes: the error falls with less than the root of their
    /// number, so the square of what is missing is more than enough, and settles.
    private var steadySpacing: Nanoseconds {
        guard let error = estimator.expectedError, error > .zero else { return Self.anxiousSpacing }
        let share = Self.contentment.seconds / error.seconds
        let wanted = Nanoseconds(seconds: Self.activeSpacing.seconds * share * share)
        return min(max(wanted, Self.anxiousSpacing), Self.activeSpacing)
    }

    private mutating func jittered(_ spacing: Nanoseconds) -> Nanoseconds {
        Nanoseconds(spacing.count * 4 / 5 + Int64(random.next() % UInt64(spacing.count * 2 / 5)))
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
        counts.roundTrip = sample.roundTrip
        switch estimator.receive(sample, at: now) {
        case .accepted:
            counts.accepted += 1
            counts.lastAcceptedAt = now
        case .rejected(let reason):
            counts.rejected += 1
            // A jump is believed when others say so too: ask them now.
            if reason == .contradiction { nextSend = min(nextSend, now + Self.burstSpacing) }
        case .restarted:
            counts.rejected += 1
            counts.lastAcceptedAt = now
            reference.forget()
            measureAnew(at: now)
        }
    }

    /// The clock, when it is not the one published last.
    private mutating func publication(at now: LocalInstant) -> Effect? {
        guard let twoWay = estimator.sharedClock(at: now) else { return nil }
        reference.aim(
            at: now, twoWay.map, skew: estimator.storedSkew.skew,
            limit: (estimator.roundTripFloor ?? .zero) / 2,
            maySet: twoWay.quality == .acquiring || twoWay.epoch != published?.epoch)
        let clock = reference.corrected(twoWay, at: now)
        if let published, published.map == clock.map, published.quality == clock.quality,
            published.epoch == clock.epoch,
            clock.quality != .holdover
                || now - published.estimatedAt < .seconds(1)
        {
            return nil
        }
        published = clock
        return .publish(clock)
    }
}
