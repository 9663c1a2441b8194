public import TuttiTiming

/// When the frames written to a card leave it, in local time.
///
/// A card counts frames with its own crystal. Each reading says: at local instant `t` the card had
/// played `N` frames, i.e. `N/fs` of its own seconds. The difference `z = N/fs − t` is a line whose
/// slope `r` is the card's rate error. Readings are noisy (the pointer moves in steps, the look at
/// it is late), so `[z, r]` is estimated by a Kalman filter: between readings `z` grows by `r·dt`
/// and both wander with the white frequency noise of a crystal; a reading observes `z`. The noise
/// of the readings is learnt from the innovations, and an innovation beyond three standard
/// deviations counts as one of three (Huber), so that a late look does not tear the line.
///
/// **Which reading counts** depends on the pointer (``PointerProbe`` tells, on the first silence):
/// - It counts frame by frame: each reading counts. A whole number of frames is on average half a
///   frame behind the card, which is added.
/// - It moves in steps (8 frames, 1 ms on USB, a period): it is always late and never early. Of
///   each window of up to 0.4 s only the edge counts: the freshest reading, brought forward by how
///   late the freshest is on average. Where readings are spread evenly near their edge, the mean
///   distance between the freshest ones equals the mean distance of the freshest from the edge, so
///   a third of the way from the fourth to the first is added. The result has no bias that depends
///   on the step; rooms with different cards play together.
///
/// Solving for `t` gives the instant of any frame: `t(n) = t₀ + (n/fs − z₀ − t₀) / (1 + r)`.
public struct CardClock: Sendable, BitwiseCopyable {
    private let sampleRate: Double
    private let periodFrames: Double
    /// Local instant of the first reading since the restart; `time` counts seconds from it.
    private var epoch = LocalInstant(nanoseconds: 0)
    private var time = 0.0
    private var z = 0.0
    private var r = 0.0
    private var p00 = 0.0
    private var p01 = 0.0
    private var p11 = CardClock.firstRateVariance
    private var noise = CardClock.firstNoise
    private var outliers = 0
    /// Mean of the last innovations, in their standard deviations: white, so about 0, while the
    /// crystal keeps its rate.
    private var trend = 0.0
    private var sinceRestart = 0
    private var probe = PointerProbe()
    /// Frames by which the pointer moves at once; 1 or less: frame by frame; 0: not known.
    private(set) var step = 0.0
    private var edge = EdgeWindow()
    /// Edges since the last restart.
    private var edges = 0
    /// No reading stands behind the line: it is assumed.
    private(set) var isAssumed = false
    /// Readings since the card was opened.
    private(set) var readings: Int64 = 0
    /// Times that the line was taken up anew: at starts, and where the card's position jumped.
    private(set) var anchors = 0
    private var anchoredAt = 0.0

    /// - Parameter periodFrames: a pointer that moves by that much is a ``CardClass/batch`` one.
    public init(sampleRate: Int, periodFrames: Int = 480) {
        self.sampleRate = Double(sampleRate)
        self.periodFrames = Double(periodFrames)
    }

    /// The card counts from 0 again: the rate is kept, the phase must be found again.
    @_noLocks @_noAllocation
    public mutating func restart() {
        sinceRestart = 0
        isAssumed = false
        outliers = 0
        trend = 0
        edges = 0
        p01 = 0
        p11 = max(p11, Self.keptRateVariance)
        probe = PointerProbe()
        edge = EdgeWindow()
    }

    /// Perhaps it is another card: its rate and the ways of its pointer are unknown again.
    @_noLocks @_noAllocation
    public mutating func replace() {
        restart()
        step = 0
        noise = Self.firstNoise
        p11 = Self.firstRateVariance
    }

    /// How the pointer moves.
    public var cardClass: CardClass {
        @_noLocks @_noAllocation get {
            if isAssumed { return .unreadable }
            if step == 0 { return .probing }
            if step < 16 { return .fine }
            return step >= 0.75 * periodFrames ? .batch : .coarse
        }
    }

    /// Whether only the edge of the readings counts.
    var usesEdge: Bool {
        @_noLocks @_noAllocation get { step >= 2 }
    }

    // MARK: Readings

    /// Takes in one look at the card.
    @_noLocks @_noAllocation
    public mutating func observe(_ reading: CardReading) {
        guard reading.framesHeard == reading.framesHeard else { return }
        readings += 1
        let raw = reading.framesHeard / sampleRate
        if isAssumed { return takeBack(reading, raw) }
        let half = usesEdge ? 0 : 0.5 * reading.resolution / sampleRate
        guard sinceRestart > 0 else {
            epoch = reading.instant
            time = 0
            anchor(z: raw + half)
            return
        }
        let now = (reading.instant - epoch).seconds
        guard now > time else { return }
        sinceRestart += 1
        let innovation = raw + half - now - (z + r * (now - time))
        if usesEdge {
            edge.add(innovation, at: now)
            if now >= edge.end, edge.looks >= Self.looksNeeded { takeEdge(now) }
        } else {
            update(innovation, at: now)
            if step == 0 {
                let verdict = probe.observe(
                    frames: reading.framesHeard, z: raw - now, at: now, rate: sampleRate)
                if let verdict { conclude(verdict, resolution: reading.resolution) }
            } else if sinceRestart > 50, noise > Self.coarseNoise {
                useEdge(step: 3.464 * squareRoot(of: noise) * sampleRate)
                z += 1.732 * squareRoot(of: noise)
            }
        }
    }

    /// A card that said nothing says where it is. A single look is not worth more than the
    /// assumption, so that holds until the pointer is known.
    @_noLocks @_noAllocation
    private mutating func takeBack(_ reading: CardReading, _ raw: Double) {
        let now = (reading.instant - epoch).seconds
        guard now > time else { return }
        let verdict = probe.observe(
            frames: reading.framesHeard, z: raw - now, at: now, rate: sampleRate)
        guard let verdict else { return }
        isAssumed = false
        time = now
        conclude(verdict, resolution: reading.resolution)
    }

    /// The pointer's steps are known, and with them what the readings so far say.
    @_noLocks @_noAllocation
    private mutating func conclude(_ verdict: PointerProbe.Verdict, resolution: Double) {
        noise = max(Self.probedNoise, verdict.noise)
        if verdict.step >= 2 {
            useEdge(step: verdict.step)
            // From the mean of the readings to their edge is half a step.
            z = verdict.z + 0.5 * verdict.step / sampleRate
        } else {
            step = 1
            z = verdict.z + 0.5 * resolution / sampleRate
        }
        // Few readings, and hardly independent ones: twice the deviation that they state.
        p00 = 4 * max(verdict.phaseVariance, Self.leastNoise)
        p01 = 0
        let slopeVariance = 4 * max(verdict.slopeVariance, Self.leastSlopeVariance)
        if slopeVariance < Self.firstRateVariance {
            r = verdict.slope
            p11 = slopeVariance
        } else {
            r = 0
            p11 = Self.firstRateVariance
        }
    }

    @_noLocks @_noAllocation
    private mutating func useEdge(step: Double) {
        self.step = step
        p01 = 0
        p11 = Self.firstRateVariance
        p00 = max(p00, noise)
        edges = 0
        edge = EdgeWindow()
        edge.end = time + shortestWindow
    }

    private var shortestWindow: Double {
        @_noLocks @_noAllocation get {
            max(Self.shortestSeconds, Self.shortestSteps * step / sampleRate)
        }
    }

    /// The window is over: its edge is one observation.
    @_noLocks @_noAllocation
    private mutating func takeEdge(_ now: Double) {
        // All looks of a window that lie more than a step off are no lateness: the card has jumped.
        let reach = 1.5 * step / sampleRate + 3 * squareRoot(of: p00 + noise)
        if edge.best.0 < -reach || edge.best.3 > reach {
            anchor(z: z + r * (now - time) + edge.best.0, at: now)
            return
        }
        // One that is early beyond reason is a fault of the pointer; the fourth is not.
        let isFaulty = edge.best.0 > reach
        let spacing = isFaulty ? 0 : edge.spacing
        let innovation = isFaulty ? edge.best.3 : edge.best.0 + spacing
        if edges == 0 {
            // Four looks may lie close together by chance; what the number of looks promises may
            // not.
            let promised = min(Self.firstEdgeSpacing, step / (sampleRate * Double(edge.looks)))
            noise = 1.4 * max(spacing * spacing, promised * promised)
        }
        edges += 1
        update(innovation, at: max(edge.bestTime, time))
        // The rate's uncertainty must not decide which look is the freshest; and as long as the
        // phase is not found, after a restart too, there is no time to lose.
        let length = 4e-6 / squareRoot(of: p11)
        edge = EdgeWindow()
        let isFound = p00 < Self.foundPhase * Self.foundPhase
        edge.end = now + max(shortestWindow, isFound ? min(Self.longestWindow, length) : 0)
    }

    /// One step of the filter: `innovation` is the measured less the predicted z at `now`.
    @_noLocks @_noAllocation
    private mutating func update(_ innovation: Double, at now: Double) {
        let dt = now - time
        let q = Self.rateNoise * Self.rateNoise
        z += r * dt
        p00 += dt * (2 * p01 + dt * p11) + q * dt * dt * dt / 3
        p01 += dt * p11 + q * dt * dt / 2
        p11 += q * dt
        time = now
        var variance = p00 + noise
        let squared = innovation * innovation
        var weighted = innovation
        if squared > 9 * variance {
            weighted = (innovation < 0 ? -3 : 3) * squareRoot(of: variance)
            outliers = innovation < 0 ? min(outliers, 0) - 1 : max(outliers, 0) + 1
            if usesEdge, outliers.magnitude >= Self.farEdgesMax {
                p00 += squared
                p01 = 0
                p11 += Self.wrongRate * Self.wrongRate
                noise = max(noise, Self.firstEdgeSpacing * Self.firstEdgeSpacing)
                variance = p00 + noise
                weighted = innovation
                outliers = 0
            } else if outliers.magnitude >= Self.outliersBeforeJump {
                anchor(z: z + innovation, at: now)
                return
            }
        } else {
            outliers = 0
        }
        let gain0 = p00 / variance
        let gain1 = p01 / variance
        z += gain0 * weighted
        r += gain1 * weighted
        p11 -= gain1 * p01
        p01 -= gain0 * p01
        p00 -= gain0 * p00
        let least = usesEdge ? Self.leastEdgeNoise : Self.leastNoise
        let count = usesEdge ? min(edges + 3, 50) : min(sinceRestart + 20, 400)
        watch(weighted / squareRoot(of: variance))
        noise = max(least, noise + (min(squared - p00, 9 * noise) - noise) / Double(count))
    }

    /// Frees the rate when the innovations have a trend: a heating comes on, a fan starts. Waiting
    /// for the random walk to follow would take ten seconds and as many microseconds.
    @_noLocks @_noAllocation
    private mutating func watch(_ normalized: Double) {
        let weight = usesEdge ? Self.edgeTrendWeight : Self.trendWeight
        trend += weight * (normalized - trend)
        guard trend * trend > Self.trendLimit * weight / (2 - weight) else { return }
        trend = 0
        p11 += Self.freedRate * Self.freedRate
    }

    /// Takes a card that cannot be looked at to play at the rate known of it, the nominal one at
    /// first, until it can.
    @_noLocks @_noAllocation
    mutating func assume(framesHeard: Double, at instant: LocalInstant) {
        epoch = instant - .milliseconds(100)
        anchor(z: framesHeard / sampleRate - 0.1, at: 0.1)
        sinceRestart = 4
        probe = PointerProbe()
        isAssumed = true
        p11 = min(p11, Self.keptRateVariance)
    }

    @_noLocks @_noAllocation
    private mutating func anchor(z measured: Double, at now: Double = 0) {
        z = measured
        time = now
        anchors += 1
        anchoredAt = now
        // A single look at a pointer with steps may be late by one.
        let late = step / sampleRate
        p00 = usesEdge ? late * late + Self.firstNoise : max(noise, Self.firstNoise)
        p01 = 0
        outliers = 0
        edge = EdgeWindow()
        edge.end = time + shortestWindow
        sinceRestart = 1
    }

    // MARK: What is known

    /// Whether any frame can be placed in time.
    public var isAnchored: Bool {
        @_noLocks @_noAllocation get { sinceRestart > 0 }
    }

    /// Whether a voice may enter: it is known how the pointer moves, the phase to 25 µs and the
    /// rate to 20 ppm; of a pointer with steps, whose deviations are rather guesses at first, half
    /// of that. A card that is worse than that for seconds will not become better.
    var isUsable: Bool {
        @_noLocks @_noAllocation get {
            if isAssumed { return true }
            guard step > 0, sinceRestart >= 4, time >= 0.1 else { return false }
            if time >= Self.patience, p00 < 50e-6 * 50e-6 { return true }
            if isHopeless { return true }
            return usesEdge
                ? edges >= 3 && p00 < 12e-6 * 12e-6 && p11 < 8e-6 * 8e-6
                : p00 < 25e-6 * 25e-6 && p11 < 20e-6 * 20e-6
        }
    }

    /// A position that wanders by more than a card's crystal or pointer explains, as sound servers
    /// and links over the air say it: a second makes it no better, and the bound says what it is.
    private var isHopeless: Bool {
        @_noLocks @_noAllocation get {
            time >= Self.wanderPatience && time - anchoredAt >= Self.jumpPatience
                && (p00 >= 50e-6 * 50e-6 || p11 >= 50e-6 * 50e-6)
        }
    }

    /// Whether waiting would make it better known by much.
    var isDecided: Bool {
        @_noLocks @_noAllocation get {
            isSettled || !isAssumed && isUsable && time >= Self.wanderPatience
        }
    }

    /// Whether phase and rate are known well enough for lockstep: 20 µs and 10 ppm (one sigma).
    public var isSettled: Bool {
        @_noLocks @_noAllocation get {
            isUsable && !isAssumed && p00 < 20e-6 * 20e-6 && p11 < 10e-6 * 10e-6
        }
    }

    /// Whether dense looks would still teach something: until then the card is looked at as often
    /// as can be. (`tutti simulate cards`: one that counts frames is known after 0.28 s; with a look
    /// a period once its pointer is known, after 0.36.)
    var isWellKnown: Bool {
        @_noLocks @_noAllocation get {
            if isAssumed { return true }
            guard usesEdge else { return isSettled || step > 0 && time >= Self.patience }
            return p00 < 5e-6 * 5e-6 && p11 < 3e-6 * 3e-6
        }
    }

    /// Rate of the card against the local clock, minus one; positive: the card is fast.
    public var skew: Double {
        @_noLocks @_noAllocation get { r }
    }

    /// One standard deviation of ``instant(ofFrame:)`` near the last reading, seconds; says
    /// nothing where the line is assumed.
    public var uncertaintySeconds: Double {
        @_noLocks @_noAllocation get { squareRoot(of: p00) }
    }

    /// The same where anything can be promised, 0 where the position is not known yet or assumed.
    var promisedUncertainty: Double {
        @_noLocks @_noAllocation get {
            if isAssumed { return 0 }
            return isUsable ? uncertaintySeconds : 0
        }
    }

    /// When frame `n` (counted from the last restart) leaves the card.
    @_noLocks @_noAllocation
    public func instant(ofFrame n: Double) -> LocalInstant {
        epoch + Nanoseconds(seconds: time + (n / sampleRate - z - time) / (1 + r))
    }

    /// Frames that have left the card at `instant`: the inverse of ``instant(ofFrame:)``.
    @_noLocks @_noAllocation
    public func frames(at instant: LocalInstant) -> Double {
        let t = (instant - epoch).seconds
        return (t + z + r * (t - time)) * sampleRate
    }
}
