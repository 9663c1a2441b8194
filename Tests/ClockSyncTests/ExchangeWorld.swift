import TuttiClockSync
import TuttiTiming

import func Glibc.sin

/// A follower, a leader and the network between them in virtual time.
///
/// True time is the leader's crystal, seconds from 0. The clocks' epochs lie thousands of seconds
/// apart, as on real machines.
struct ExchangeWorld {
    struct Reading {
        var time: Double
        var clock: SharedClock
        /// Published line minus the leader's clock, seconds.
        var error: Double
    }

    private struct Packet {
        var arrival: Double
        var order: Int
        var content: Content
    }
    private enum Content {
        case request(TimeRequest)
        /// Its hold is over.
        case held(TimeRequest, arrival: GroupInstant)
        case reply(TimeReply)
        case requestStamp(UInt32, LocalInstant)
        case replyStamp(UInt32, LocalInstant)
    }

    static let localEpoch: Int64 = 86_400_000_000_000
    static let leaderEpoch: Int64 = 3_456_789_000_000_000

    var path: PathModel
    var follower: ClockFollower
    var server = ClockServer<Int>()
    /// Leader's crystal against ours: constant part, in ppm; the sign is ours minus the leader's.
    let partsPerMillion: Double
    var duplicates = 0.0
    /// The share of transmit stamps that the kernel fails to deliver.
    var missingStamps = 0.0
    var epoch: UInt64 = 42
    /// Our clock loses this at the moment: the machine slept.
    var sleep = (at: Double.infinity, seconds: 0.0)
    /// The leader's clock jumps.
    var jump = (at: Double.infinity, seconds: 0.0)
    var silence = Double.infinity...Double.infinity

    private(set) var now = 0.0
    private(set) var published: [SharedClock] = []
    private(set) var readings: [Reading] = []
    private var random: Randomness
    private var packets: [Packet] = []
    private var order = 0
    private var serverPackets: UInt32 = 0
    /// Phase of our crystal on a grid of 0.1 s: skew, random walk, slow breathing.
    private var phase: [Double] = [0]

    init(
        _ kind: PathModel.Kind, seed: UInt64, partsPerMillion: Double? = nil,
        stored: StoredSkew = .unknown, steadyCrystal: Bool = false
    ) {
        var random = Randomness(seed: seed)
        let skew = partsPerMillion ?? (random.unit() * 90 - 45)
        self.partsPerMillion = skew
        path = PathModel(kind, seed: seed)
        follower = ClockFollower(
            start: LocalInstant(nanoseconds: Self.localEpoch), seed: seed, stored: stored)
        var wander = 0.0
        for step in 0..<4000 {
            // 0.004 ppm/√s random walk of the rate and 0.15 ppm of breathing over 200 s.
            wander += steadyCrystal ? 0 : 0.004e-6 * 0.316 * random.normal()
            let breath = steadyCrystal ? 0 : 0.15e-6 * sin(2 * .pi * Double(step) / 2000)
            phase.append(phase[step] + 0.1 * (skew * 1e-6 + wander + breath))
        }
        self.random = random
    }

    // MARK: - Clocks

    func local(_ time: Double) -> LocalInstant {
        let position = min(max(time, 0) * 10, Double(phase.count - 2))
        let index = Int(position)
        let gained = phase[index] + (phase[index + 1] - phase[index]) * (position - Double(index))
        let slept = time >= sleep.at ? sleep.seconds : 0
        return LocalInstant(
            nanoseconds: Self.localEpoch + Int64((time + gained - slept) * 1e9))
    }

    func group(_ time: Double) -> GroupInstant {
        let jumped = time >= jump.at ? jump.seconds : 0
        return GroupInstant(nanoseconds: Self.leaderEpoch + Int64((time + jumped) * 1e9))
    }

    /// The true time at which our clock reads `instant`.
    private func time(_ instant: LocalInstant) -> Double {
        var time = now
        for _ in 0..<3 { time += (instant - local(time)).seconds }
        return time
    }

    var sent: Int { follower.statistics(at: local(now)).sent }

    // MARK: - Running

    /// Runs until `end`, reading the published line every 50 ms.
    mutating func run(until end: Double, readFrom start: Double = 0) {
        var nextReading = (now * 20 + 1).rounded(.down) / 20
        while now < end {
            let due = max(time(follower.nextDeadline), now)
            let arrival = packets.map(\.arrival).min() ?? .infinity
            let next = min(due, arrival, nextReading)
            now = max(now, next)
            if nextReading <= next {
                if nextReading >= start { read() }
                nextReading += 0.05
            } else if arrival <= due {
                deliver()
            } else {
                now += 1e-6
                perform(follower.advance(to: local(now)))
            }
        }
    }

    mutating func suspend(for seconds: Double, isNoticed: Bool) {
        now += seconds
        sleep = (now, seconds)
        packets.removeAll()
        if isNoticed { perform(follower.localClockJumped(at: local(now))) }
    }

    /// A foreign host answers with a clock of its own.
    mutating func inject(_ reply: TimeReply) {
        perform(follower.receive(reply, t4: local(now), isKernelStamp: true, at: local(now)))
    }

    private mutating func read() {
        guard let clock = published.last else { return }
        let line = clock.map(local(now))
        readings.append(
            Reading(
                time: now, clock: follower.sharedClock(at: local(now)) ?? clock,
                error: (line - group(now)).seconds))
    }

    private mutating func deliver() {
        let index = packets.indices.min {
            (packets[$0].arrival, packets[$0].order) < (packets[$1].arrival, packets[$1].order)
        }!
        let packet = packets.remove(at: index)
        switch packet.content {
        case .request(let request):
            let arrival = LocalInstant(nanoseconds: group(now).nanoseconds)
            let due = server.admit(request, from: 1, arrival: arrival, at: arrival)
            guard let due else { return }
            post(.held(request, arrival: group(now)), at: now + (due - arrival).seconds)
        case .held(let request, let arrival): answer(request, arrival)
        case .reply(let reply):
            perform(
                follower.receive(reply, t4: local(now), isKernelStamp: true, at: local(now)))
        case .requestStamp(let sequence, let stamp):
            perform(follower.transmitted(sequence: sequence, at: stamp, now: local(now)))
        case .replyStamp(let number, let stamp): server.transmitted(packet: number, at: stamp)
        }
    }

    private mutating func answer(_ request: TimeRequest, _ arrival: GroupInstant) {
        let departure = now + 20e-6 + random.exponential(15e-6)
        let leader = { (group: GroupInstant) in LocalInstant(nanoseconds: group.nanoseconds) }
        let clock = SharedClock.own(at: leader(group(now)), epoch: epoch)
        let number = serverPackets
        serverPackets += 1
        guard
            let reply = server.reply(
                to: request, from: 1, arrival: leader(arrival), isKernelStamp: true,
                departure: leader(group(now + 10e-6)), packet: number, clock: clock)
        else { return }
        if !random.chance(missingStamps) {
            post(.replyStamp(number, leader(group(departure))), at: departure + 5e-6)
        }
        if !silence.contains(now), let delay = path.delay(.toFollower, at: now) {
            post(.reply(reply), at: departure + delay)
            if random.chance(duplicates) {
                post(.reply(reply), at: departure + delay + random.exponential(5e-3))
            }
        }
    }

    private mutating func perform(_ effects: [ClockFollower.Effect]) {
        for effect in effects {
            switch effect {
            case .publish(let clock): published.append(clock)
            case .send(let request):
                let departure = now + 5e-6 + random.exponential(10e-6)
                if !random.chance(missingStamps) {
                    post(.requestStamp(request.sequence, local(departure)), at: departure + 3e-6)
                }
                if !silence.contains(now), let delay = path.delay(.toLeader, at: now) {
                    post(.request(request), at: departure + delay)
                    if random.chance(duplicates) {
                        post(
                            .request(request),
                            at: departure + delay + random.exponential(5e-3))
                    }
                }
            }
        }
    }

    private mutating func post(_ content: Content, at arrival: Double) {
        order += 1
        packets.append(Packet(arrival: arrival, order: order, content: content))
    }
}

extension Array where Element == Double {
    /// The value below which a share `q` of the magnitudes lies; microseconds for seconds.
    func microseconds(percentile q: Double) -> Double {
        let sorted = map { $0.magnitude }.sorted()
        return sorted[Swift.min(sorted.count - 1, Int(Double(sorted.count) * q))] * 1e6
    }
}
