import Timing

/// How long one direction of a path takes, and what it loses: the shape of its delays.
///
///     delay = floor + regime + Γ(shape, scale) + contention + retries + queue + spike
///
/// The figures are plausible, not recorded. What an estimator
/// cannot know is the point of them: floors that change separately in both directions, and delays
/// without any mass near the floor.
struct PathShape: Sendable {
    /// µs; never less than this.
    var floor: Double
    var jitterShape = 0.8
    /// µs.
    var jitterScale = 2.5
    /// Mean of the waiting for the medium, µs.
    var contention = 0.0
    /// Probability of one more attempt on the air, 300 µs and an exponential 300 µs each.
    var retryChance = 0.0
    var queueChance = 0.0
    /// Mean of the time in a busy queue, µs.
    var queue = 0.0
    var spikeChance = 0.0
    /// Mean of a spike, µs.
    var spike = 0.0
    /// Added to the floor, µs; another one every nine seconds or so (rate adaptation).
    var regimes: [Double] = [0]
    var loss = 0.0
    var duplication = 0.0
}

/// What lies between the leader and one room.
struct NetworkProfile: Sendable {
    var name: String
    var toLeader: PathShape
    var toRoom: PathShape
    /// What a file comes at.
    var bytesPerSecond = 50e6

    /// Between a leader and its own room: the scheduler.
    static let inProcess = symmetric("in process", PathShape(floor: 20, jitterScale: 10))

    /// An idle switch.
    static let wired = symmetric(
        "wired",
        PathShape(floor: 28, spikeChance: 0.02, spike: 60, loss: 0.000_01))

    static let wifi = symmetric(
        "wifi",
        PathShape(
            floor: 360, contention: 220, retryChance: 0.1, spikeChance: 0.01, spike: 12_000,
            regimes: [0, 30, 80, 160], loss: 0.01, duplication: 0.001),
        bytesPerSecond: 20e6)

    /// A neighbour streams, and the queue towards the room is seldom empty.
    static let busyWiFi = NetworkProfile(
        name: "busy wifi", toLeader: busyAir,
        toRoom: {
            var shape = busyAir
            shape.queueChance = 0.6
            shape.queue = 2_500
            return shape
        }(),
        bytesPerSecond: 8e6)

    private static let busyAir = PathShape(
        floor: 360, contention: 1_300, retryChance: 0.28, spikeChance: 0.05, spike: 25_000,
        regimes: [0, 30, 80, 160], loss: 0.03, duplication: 0.002)

    private static func symmetric(
        _ name: String, _ shape: PathShape, bytesPerSecond: Double = 50e6
    ) -> NetworkProfile {
        NetworkProfile(
            name: name, toLeader: shape, toRoom: shape, bytesPerSecond: bytesPerSecond)
    }
}

/// One living direction of a path.
struct NetworkPath {
    /// Mean time in one regime.
    private static let regimeSeconds = 9.0

    private let shape: PathShape
    private var random: SplitMix64
    private var regime = 0.0
    private var regimeEnds = TrueInstant(nanoseconds: 0)

    init(_ shape: PathShape, random: SplitMix64) {
        self.shape = shape
        self.random = random
    }

    /// When copies of a datagram sent at `instant` arrive: none, one or two.
    mutating func arrivals(of instant: TrueInstant) -> [TrueInstant] {
        if random.chance(shape.loss) { return [] }
        var arrivals = [instant + delay(at: instant)]
        if random.chance(shape.duplication) { arrivals.append(instant + delay(at: instant)) }
        return arrivals
    }

    /// When a segment of a stream gets through: a lost one is sent again, after 200 ms and then
    /// twice as long each time, as TCP does.
    mutating func streamArrival(of instant: TrueInstant) -> TrueInstant {
        var sent = instant
        var timeout = Nanoseconds.milliseconds(200)
        while random.chance(shape.loss) {
            sent += timeout
            timeout = timeout * 2
        }
        return sent + delay(at: sent)
    }

    private mutating func delay(at instant: TrueInstant) -> Nanoseconds {
        if shape.regimes.count > 1, instant >= regimeEnds {
            regime = shape.regimes[Int(random.next() % UInt64(shape.regimes.count))]
            regimeEnds =
                instant + Nanoseconds(seconds: random.exponential(mean: Self.regimeSeconds))
        }
        var microseconds = shape.floor + regime
        microseconds += random.gamma(shape: shape.jitterShape, scale: shape.jitterScale)
        if shape.contention > 0 { microseconds += random.exponential(mean: shape.contention) }
        while random.chance(shape.retryChance) {
            microseconds += 300 + random.exponential(mean: 300)
        }
        if random.chance(shape.queueChance) {
            microseconds += random.exponential(mean: shape.queue)
        }
        if random.chance(shape.spikeChance) {
            microseconds += random.exponential(mean: shape.spike)
        }
        return Nanoseconds(seconds: microseconds * 1e-6)
    }
}
