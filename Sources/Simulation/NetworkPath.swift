import TuttiChance
import TuttiTiming

import func Glibc.exp
import func Glibc.fmod
import func Glibc.pow

/// What lies between the leader and one room.
struct NetworkProfile: Sendable {
    var name: String
    var toLeader: PathShape
    var toRoom: PathShape
    /// Rate at which a room fetches a file from the leader.
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
    /// Mean time in one regime, seconds; see ``PathShape/regimes``.
    private static let regimeSeconds = 9.0

    private let shape: PathShape
    private var random: SplitMix64
    private var regime = 0.0
    private var regimeEnds = TrueInstant(nanoseconds: 0)
    private var hops: [NetworkPath]
    /// When the next burst begins, or the present one ends; seconds.
    private var burstTurns = 0.0
    private var isBurst = true
    private var isLossy = false
    private var emulated = 0.0
    private var lastArrival = TrueInstant(nanoseconds: .min)
    private var lastPacket = -Double.infinity
    private var stallBegins = TrueInstant(nanoseconds: .min)
    private var stallEnds = TrueInstant(nanoseconds: .min)

    init(_ shape: PathShape, random: SplitMix64) {
        self.shape = shape
        self.random = random
        var seeds = random
        hops = shape.further.map { NetworkPath($0, random: SplitMix64(seed: seeds.next(), "hop")) }
    }

    /// When copies of a datagram sent at `instant` arrive: none, one or two.
    mutating func arrivals(of instant: TrueInstant) -> [TrueInstant] {
        if random.chance(shape.loss) || isLost(at: instant) { return [] }
        var arrivals = [arrival(of: instant)]
        if random.chance(shape.duplication) { arrivals.append(arrival(of: instant)) }
        for hop in hops.indices { arrivals = arrivals.flatMap { hops[hop].arrivals(of: $0) } }
        return arrivals
    }

    /// When a segment of a stream gets through: a lost one is sent again, after 200 ms and then
    /// twice as long each time, as TCP does by default (kernels with TCP_RTO_MIN_US are asked for
    /// 50 ms).
    mutating func streamArrival(of instant: TrueInstant) -> TrueInstant {
        var sent = instant
        var timeout = Nanoseconds.milliseconds(200)
        while random.chance(shape.loss) || isLost(at: sent) {
            sent += timeout
            timeout = timeout * 2
        }
        sent = arrival(of: sent)
        for hop in hops.indices { sent = hops[hop].streamArrival(of: sent) }
        return sent
    }

    // MARK: Loss

    private mutating func isLost(at instant: TrueInstant) -> Bool {
        if let bursts = shape.lossBursts {
            if random.chance(isLossy ? bursts.end : bursts.begin) { isLossy.toggle() }
            if isLossy, random.chance(bursts.loss) { return true }
        }
        return !shape.outages.isEmpty && shape.outages.contains { $0.contains(instant.seconds) }
    }

    // MARK: Delay

    private mutating func arrival(of instant: TrueInstant) -> TrueInstant {
        var arrival = instant + delay(at: instant)
        if let stalls = shape.stalls { arrival = released(from: stalls, arrival, at: instant) }
        guard let emulation = shape.emulation else { return arrival }
        if !random.chance(emulation.overtaking) {
            lastArrival = max(arrival, lastArrival + .microseconds(1))
            arrival = lastArrival
        }
        guard emulation.lateness > 0 else { return arrival }
        let late =
            random.gamma(shape: 3, scale: emulation.lateness)
            + (random.chance(0.01) ? random.exponential(mean: 25 * emulation.lateness) : 0)
        return arrival + Nanoseconds(seconds: (late - PathShape.Emulation.earliest) * 1e-6)
    }

    private mutating func released(
        from stalls: PathShape.Stalls, _ arrival: TrueInstant, at instant: TrueInstant
    ) -> TrueInstant {
        if instant > stallEnds {
            stallBegins =
                instant + Nanoseconds(seconds: random.exponential(mean: stalls.every))
            stallEnds =
                stallBegins + Nanoseconds(seconds: random.exponential(mean: stalls.lasting))
        }
        return arrival >= stallBegins ? max(arrival, stallEnds) : arrival
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
        microseconds += chanceDelay(at: instant.seconds) + scheduledDelay(at: instant.seconds)
        return Nanoseconds(seconds: microseconds * 1e-6)
    }

    /// µs; the parts that are drawn.
    private mutating func chanceDelay(at time: Double) -> Double {
        var delay = 0.0
        if shape.coalescing > 0 { delay += random.uniform(0, shape.coalescing) }
        if let access = shape.access {
            delay += access.median * exp(access.deviation * random.normal())
        }
        if let bursts = shape.bursts {
            while time >= burstTurns {
                isBurst.toggle()
                burstTurns += random.exponential(mean: isBurst ? bursts.lasting : bursts.every)
            }
            if isBurst { delay += random.exponential(mean: bursts.wait) }
        }
        if let emulation = shape.emulation {
            var fresh = random.normal()
            if emulation.hasTail {
                // Pareto of shape 3, brought to mean 0 and deviation 1.
                let pareto = (pow(1 - random.uniform(), -1 / 3) - 1.5) / 0.866_025_4
                fresh = 0.25 * fresh + 0.75 * min(12, pareto)
            }
            let memory = emulation.correlation
            emulated = memory * emulated + (1 - memory * memory).squareRoot() * fresh
            delay += max(emulation.least, emulation.mean + emulation.deviation * emulated)
        }
        if let sleep = shape.powerSave {
            if time - lastPacket > sleep.idle { delay += random.uniform(0, sleep.wait) }
            lastPacket = time
        }
        return delay
    }

    /// µs; the parts that a time decides.
    private func scheduledDelay(at time: Double) -> Double {
        var delay = 0.0
        if let download = shape.download {
            let phase = fmod(time, download.period) - download.begin
            if phase >= 0, phase < download.length {
                let rise = fmod(phase, download.tooth) / download.tooth
                delay += download.low + (download.high - download.low) * rise
            }
        }
        for episode in shape.episodes where episode.times.contains(time) { delay += episode.delay }
        return delay
    }
}

extension TrueInstant {
    /// Since the beginning of the world.
    var seconds: Double { Double(nanoseconds) * 1e-9 }
}
