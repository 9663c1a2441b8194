import TuttiChance
import TuttiTiming

/// When a room asks for the time, and which of its requests only wake what sleeps.
///
/// - Joining: up to 16 requests 10 ms apart until somebody answers, then two a round trip (1 ms
///   apart at least; on wires trains with pauses of 8 ms) until the line is good and settled
///   (``LockRule``), at most for 1.5 s, or 3 s where it cannot be played by; then 40 a second
///   until 3 s, and on wires 100 until 10.
/// - Steady: as many as keep the expected error below a tenth of a sample, 6 to 25 a second
///   on average (50 on wires, 100 in the first half minute), at random distances, so that no
///   periodic disturbance stays hidden; 2 when idle, 3 on wires. Elsewhere no more than two a round
///   trip, but for bursts.
/// - A burst of 16 on demand and after a silence; one a second while nobody answers.
///
/// On wires (``PathKind/wire``) they come in trains of up to sixteen,
/// each request with the answer to the one before, and from train to train it is two thirds of a
/// second on average at most (a second when idle): the next one finds a clock that jumped. A line
/// that is far better than it needs to be takes trains of four, 6 a second. Evenly spaced requests
/// find the processors of both rooms, and of what lies between, asleep; how long those take to wake
/// depends on what else they do, so differs by direction, and two-way exchange turns half of that
/// into an error. In a train each packet, out or home, leaves on the heels of one that came the
/// other way, and one wake-up of each side makes one exchange. The first two requests do the
/// waking. On a path of milliseconds that does not matter, while requests close behind each other
/// would share one fate in its queues: there they stay apart. In between (``PathKind/short``)
/// requests of a train are a round trip apart, and are answered halfway to the next.
struct RequestSchedule: Sendable {
    /// What the estimator knows of the path.
    struct Prospect {
        /// Round trip of the last exchange.
        var roundTrip: Nanoseconds
        var expectedError: Nanoseconds?
        /// Standard deviation of the skew, 1.
        var skewDeviation: Double
    }
    struct Slot {
        /// To the next request.
        var pause: Nanoseconds
        /// The answer says how long waking took, nothing of the clock.
        var isWaking: Bool
        /// It belongs to a train on a wire and is to be answered at once.
        var isPrompt = false
    }

    /// Requests that go one behind the other, and a pause that is as long as all of them should
    /// take.
    private struct Train {
        var length: Int
        /// The request that is due included.
        var left: Int
        /// On average, with the pause.
        var spacing: Nanoseconds
        /// Each request leaves with the answer to the one before.
        var isPrompt: Bool
        /// There is no pause.
        var isInHaste = false

        var isAsleep: Bool { left > length - wakingLength }
    }

    /// Requests of a burst, and the time between two of them.
    static let burstLength = 16
    static let burstSpacing = Nanoseconds.milliseconds(10)
    /// The shortest time from the beginning of one burst to that of the next.
    static let burstPause = Nanoseconds.milliseconds(100)
    /// The shortest time between two requests outside of trains.
    static let closestSpacing = Nanoseconds.milliseconds(1)
    /// The time between two requests in the first ``joinSpan``, once the line is good.
    static let joinSpacing = Nanoseconds.milliseconds(25)
    static let joinSpan = Nanoseconds.seconds(3)
    /// The mean time between two requests of a young line on wires: trains whose pauses make some
    /// thousand requests a second. With twice as much rooms are nearly twice as far apart when they
    /// begin to play.
    static let denseWireSpacing = Nanoseconds.microseconds(500)
    /// The time in which requests follow each other as closely as the path allows. The first
    /// packets tell more than all later ones, and a common start waits for them (``LockRule``).
    static let denseSpan = Nanoseconds.milliseconds(1_500)
    /// The age until which a path that is seldom clean may be asked as often as its queues let
    /// pass. Some seven packets in a thousand meet nobody on busy air: asked less often, the clock
    /// becomes worse again after the first seconds.
    static let earlySpan = Nanoseconds.seconds(30)
    /// The age until which a path of wires is asked 100 times a second, unless nobody plays: a rate
    /// is learnt from packets that lie far apart.
    static let wireSpan = Nanoseconds.seconds(10)
    /// The longest mean time between two requests while somebody plays.
    static let activeSpacing = Nanoseconds.milliseconds(125)
    /// The same on wires, where it makes trains of four. The last reply of a train is stamped by
    /// the first of the next, so with longer pauses a jump would be found late.
    static let calmSpacing = Nanoseconds.milliseconds(162)
    /// The shortest mean time between two requests while the expected error is far above
    /// ``contentment``. On a path that is seldom clean only more packets help, but slowly: 40 a
    /// second instead of 25 gain less than seeds differ by, and cost half as much again.
    static let anxiousSpacing = Nanoseconds.milliseconds(40)
    /// The same on wires, where an exchange costs one wake-up and not two.
    static let anxiousWireSpacing = Nanoseconds.milliseconds(20)
    /// The expected error that is asked for, less than a tenth of a sample at 48 kHz: the errors of
    /// two rooms and their cards then stay below a quarter. On wires it is a seventeenth of a
    /// sample.
    static let contentment = Nanoseconds(1_500)
    static let wireContentment = Nanoseconds(1_200)
    /// The deviation of the skew that is asked for: in a second it adds little to the error.
    static let straightness = 2e-6
    /// The time between two requests while nothing plays.
    static let idleSpacing = Nanoseconds.milliseconds(500)
    /// The same on wires: trains of three, a second apart. One may be lost without the clock being
    /// taken for lost.
    static let idleWireSpacing = Nanoseconds.milliseconds(333)
    /// How many requests a train has at most.
    static let longestTrain = 8
    /// The same on wires.
    static let longestWireTrain = 16
    /// The longest mean time from train to train.
    static let longestPause = Nanoseconds.milliseconds(650)
    /// How many requests of a train only wake the path, and are not counted.
    static let wakingLength = 2
    /// A longer round trip moves the quartile upwards by one part in this many; a shorter one moves
    /// it down by three.
    private static let quartileSteps: Int64 = 32
    /// A radio that nothing was sent over for this long may sleep.
    static let drowsiness = Nanoseconds.milliseconds(80)
    /// A radio takes at least this long to wake.
    static let wakePause = Nanoseconds.milliseconds(25)
    /// How many requests wake it before a burst. One alone may be lost.
    static let wakeLength = 2
    /// The time between two requests when nobody answers, at first and after ``patience``.
    static let silentSpacing = Nanoseconds.milliseconds(250)
    static let deafSpacing = Nanoseconds.seconds(1)
    static let patience = Nanoseconds.seconds(10)
    /// An answer after a silence of this length is followed by a burst.
    static let silence = Nanoseconds.seconds(2)

    /// When the next request is due.
    private(set) var next: LocalInstant

    private var random: SplitMix64
    private var askedSince: LocalInstant
    private var joinedAt: LocalInstant?
    private var lastSent: LocalInstant?
    private var lastAnswer: LocalInstant?
    /// The lower quartile, roughly. A mean, and on a loaded machine the median, would take the
    /// machine's stalls for a long path, and the wider spacing of a long path makes them longer.
    private var usualRoundTrip: Nanoseconds?
    private var burstLeft = Self.burstLength
    /// What is under way, while a request of it is left.
    private var train: Train?
    /// How many requests are left that wake the radio for the burst behind them.
    private var wakesLeft = 0
    private var isIdle = false
    /// The next request leaves with the answer to the last one, if that comes before ``next``.
    private var isAnswerFollowed = false
    /// The request that is due leaves with an answer.
    private var isOnHeels = false
    private var lastBurst: LocalInstant?

    /// - Parameter start: local time now; the first request is due at once.
    init(start: LocalInstant, random: SplitMix64) {
        self.next = start
        self.askedSince = start
        self.random = random
    }

    /// The kind of path, by what exchanges take unless something holds them up.
    var path: PathKind { PathKind(roundTrip: usualRoundTrip) }

    private var isWire: Bool { path == .wire }

    private var contentment: Nanoseconds { isWire ? Self.wireContentment : Self.contentment }

    /// Somebody answers; the exchange took `roundTrip`.
    ///
    /// - Parameter isNewest: whether no later request awaits its answer.
    mutating func answered(roundTrip: Nanoseconds, isNewest: Bool, at now: LocalInstant) {
        if isAnswerFollowed, isNewest {
            next = min(next, now)
            isOnHeels = true
        }
        if joinedAt == nil {
            joinedAt = now
            next = min(next, now + Self.closestSpacing)
        }
        // The first answer of all is part of the joining burst, unless that went unheard.
        if now - (lastAnswer ?? askedSince) > Self.silence { burst(at: now) }
        lastAnswer = now
        let before = usualRoundTrip ?? roundTrip
        let step = Nanoseconds(before.count / Self.quartileSteps + 1)
        usualRoundTrip = roundTrip > before ? before + step : before - step * 3
    }

    /// 16 requests 10 ms apart from now on; closer while joining; a train on wires. Nothing when
    /// one has just begun: whatever makes a leader another one again and again, each burst has an
    /// end.
    mutating func burst(at now: LocalInstant) {
        if let lastBurst, now - lastBurst < Self.burstPause { return }
        lastBurst = now
        burstLeft = Self.burstLength
        train = nil
        if !isWire, let lastSent, now - lastSent > Self.drowsiness {
            wakesLeft = Self.wakeLength
        }
        next = min(next, now)
    }

    /// Begins as when joining: nothing that was measured counts any more.
    mutating func measureAnew(at now: LocalInstant) {
        joinedAt = now
        burst(at: now)
    }

    /// Another answer is wanted soon.
    mutating func hasten(at now: LocalInstant) {
        next = min(next, now + Self.burstSpacing)
        train?.isInHaste = true
    }

    mutating func setIdle(_ isIdle: Bool, at now: LocalInstant) {
        guard isIdle != self.isIdle else { return }
        self.isIdle = isIdle
        if !isIdle { next = min(next, now + Self.activeSpacing) }
    }

    /// A request leaves now; when the next will follow.
    mutating func depart(at now: LocalInstant, _ prospect: Prospect) -> Slot {
        let slot = slot(at: now, prospect)
        lastSent = now
        next = now + slot.pause
        isAnswerFollowed = slot.isPrompt && train != nil
        isOnHeels = false
        return slot
    }

    private mutating func slot(at now: LocalInstant, _ prospect: Prospect) -> Slot {
        func slot(_ pause: Nanoseconds) -> Slot { Slot(pause: pause, isWaking: false) }
        if wakesLeft > 0 {
            wakesLeft -= 1
            let pause = wakesLeft > 0 ? Self.burstSpacing : Self.wakePause
            return Slot(pause: pause, isWaking: true)
        }
        let age = joinedAt.map { now - $0 } ?? .zero
        let isGood = prospect.expectedError.map { $0 <= contentment } ?? false
        let isStraight = prospect.skewDeviation <= Self.straightness
        let isSettled = age > LockRule.settling && isGood && isStraight
        let isYoung = age < Self.denseSpan && !isSettled
        if burstLeft > 1, isWire {
            burstLeft = 0
            let joining = newTrain(of: Self.burstLength, every: Self.denseWireSpacing)
            return next(of: joining, prospect)
        }
        if let train { return next(of: train, prospect) }
        if burstLeft > 1 {
            burstLeft -= 1
            let isJoining = joinedAt != nil && isYoung
            return slot(
                isJoining ? min(closeSpacing(prospect), Self.burstSpacing) : Self.burstSpacing)
        }
        burstLeft = 0
        let quiet = now - (lastAnswer ?? askedSince)
        if quiet > Self.patience { return slot(jittered(Self.deafSpacing)) }
        if quiet > Self.silence { return slot(jittered(Self.silentSpacing)) }
        guard joinedAt != nil else { return slot(Self.burstSpacing) }
        // While the line is young every packet brings it forward, and while nobody can play by it.
        let isPlayable =
            prospect.expectedError.map { $0.seconds <= LockRule.goodError } ?? false
        if isYoung || age < Self.joinSpan && !isPlayable {
            return isWire
                ? steady(Self.denseWireSpacing, prospect) : slot(closeSpacing(prospect))
        }
        if path <= .short, !isIdle, age < Self.wireSpan {
            return steady(Self.burstSpacing, prospect)
        }
        if age < Self.joinSpan { return steady(max(Self.joinSpacing, queueSpacing), prospect) }
        if isIdle {
            return isWire
                ? steady(Self.idleWireSpacing, prospect) : slot(jittered(Self.idleSpacing))
        }
        let anxious = isWire ? Self.anxiousWireSpacing : Self.anxiousSpacing
        let closest = age < Self.earlySpan ? Self.burstSpacing : anxious
        let spacing = steadySpacing(
            prospect, closest: max(closest, queueSpacing),
            widest: path <= .short ? Self.calmSpacing : Self.activeSpacing)
        return steady(spacing, prospect)
    }

    /// Requests of a train when they come `spacing` apart on average.
    static func trainLength(at spacing: Nanoseconds, isWire: Bool) -> Int {
        let longest = isWire ? longestWireTrain : longestTrain
        return min(longest, max(wakingLength + 1, Int(longestPause.count / spacing.count)))
    }

    /// One of the requests that come `spacing` apart on average.
    private mutating func steady(_ spacing: Nanoseconds, _ prospect: Prospect) -> Slot {
        guard path <= .short else {
            return Slot(pause: jittered(spacing), isWaking: false)
        }
        let length = Self.trainLength(at: spacing, isWire: isWire)
        return next(of: newTrain(of: length, every: spacing), prospect)
    }

    private func newTrain(of length: Int, every spacing: Nanoseconds) -> Train {
        Train(length: length, left: length, spacing: spacing, isPrompt: isWire)
    }

    /// One request of it. While its answers come, the one behind does not wait for the pause.
    private mutating func next(of train: Train, _ prospect: Prospect) -> Slot {
        // An answer that is lost or late lets the path fall asleep.
        let isWaking = train.isAsleep || train.isPrompt && !isOnHeels
        var pause = closeSpacing(prospect)
        self.train = train
        self.train?.left -= 1
        if train.left == 1 {
            self.train = nil
            let whole = Nanoseconds(train.spacing.count * Int64(train.length))
            pause = train.isInHaste ? Self.burstSpacing : jittered(whole)
        }
        return Slot(pause: pause, isWaking: isWaking, isPrompt: train.isPrompt)
    }

    /// The closest spacing that leaves packets apart on the path.
    private func closeSpacing(_ prospect: Prospect) -> Nanoseconds {
        let least = max(Self.closestSpacing, min(prospect.roundTrip, Self.closestSpacing * 2))
        return max(least, queueSpacing)
    }

    /// Half of the usual round trip: where packets keep their order, those that follow closer
    /// mostly wait behind each other and tell nothing. Through two emulated hops of 10 ± 15 ms,
    /// with two rooms, one packet in 400 came unhindered at 45 requests a second a room, one in
    /// 2000 at 100.
    private var queueSpacing: Nanoseconds {
        min(Nanoseconds((usualRoundTrip?.count ?? 0) / 2), Self.activeSpacing)
    }

    /// The spacing that brings as many packets as ``contentment`` takes. The error falls with less
    /// than the root of their number, so the square of what is missing is more than enough, and
    /// settles.
    private func steadySpacing(
        _ prospect: Prospect, closest: Nanoseconds, widest: Nanoseconds
    ) -> Nanoseconds {
        guard let error = prospect.expectedError, error > .zero else { return closest }
        let share = contentment.seconds / error.seconds
        let wanted = Nanoseconds(seconds: Self.activeSpacing.seconds * share * share)
        return min(max(wanted, closest), widest)
    }

    /// ± 20 %.
    private mutating func jittered(_ spacing: Nanoseconds) -> Nanoseconds {
        Nanoseconds(spacing.count * 4 / 5 + Int64(random.next() % UInt64(spacing.count * 2 / 5)))
    }
}
