import TuttiChance
import TuttiClockSync
import TuttiTiming

/// One exchange as every filter gets it.
struct Exchange: Sendable {
    var sample: ExchangeSample
    /// When the request left and the reply arrived by the room's clock; seconds from
    /// ``ClockPair/localEpoch``.
    var sent: Double
    var arrived: Double
    /// t2 − t1 and t4 − t3 without the difference of the epochs; seconds.
    var forward: Double
    var backward: Double

    init(_ sample: ExchangeSample) {
        self.sample = sample
        sent = Self.seconds(of: sample.t1)
        arrived = Self.seconds(of: sample.t4)
        forward = Self.offset(sample.t2, sample.t1)
        backward = -Self.offset(sample.t3, sample.t4)
    }

    /// Seconds of the room's clock from its epoch.
    static func seconds(of local: LocalInstant) -> Double {
        Double(local.nanoseconds - ClockPair.localEpoch) * 1e-9
    }

    /// Leader minus room without the difference of the epochs; seconds.
    static func offset(_ group: GroupInstant, _ local: LocalInstant) -> Double {
        let epochs = ClockPair.leaderEpoch - ClockPair.localEpoch
        return Double(group.nanoseconds - local.nanoseconds - epochs) * 1e-9
    }

    /// The middle of the exchange by the room's clock; seconds.
    var time: Double { (sent + arrived) / 2 }
    /// Leader minus room if both directions were equally long; seconds.
    var offset: Double { (forward - backward) / 2 }
    /// Both directions' delay; seconds.
    var delay: Double { forward + backward }
}

/// The exchanges of one run, asked for by a schedule that no answer changes: the same for every
/// filter that is compared.
struct ExchangeTrace {
    /// In the order in which they are complete.
    private(set) var exchanges: [Exchange] = []
    private(set) var clocks: ClockPair
    let seconds: Double

    /// 16 exchanges 10 ms apart, 20 a second until 3 s, then 8 a second ± 20 %.
    init(_ parts: ClockParts, seconds: Double) {
        self.seconds = seconds
        clocks = parts.clocks
        var (toLeader, toRoom) = (parts.toLeader, parts.toRoom)
        var schedule = SplitMix64(seed: parts.seed, "schedule of the trace")
        var stamping = SplitMix64(seed: parts.seed, "stamps of the trace")
        var time = 1e-3
        var requests = 0
        while time < seconds {
            let departure = TrueInstant(nanoseconds: Int64(time * 1e9))
            requests += 1
            time +=
                requests < 16 ? 0.01 : time < 3 ? 0.05 : 0.125 * schedule.uniform(0.8, 1.2)
            let t1 = departure - Nanoseconds(seconds: parts.stamps.sendEarliness(&stamping))
            let t2 = Nanoseconds(seconds: parts.stamps.receiveLateness(&stamping))
            let answer = Nanoseconds(seconds: 20e-6 + stamping.exponential(mean: 15e-6))
            let t3 = Nanoseconds(seconds: parts.stamps.sendEarliness(&stamping))
            let t4 = Nanoseconds(seconds: parts.stamps.receiveLateness(&stamping))
            guard let there = toLeader.arrivals(of: departure).min() else { continue }
            let reply = there + t2 + answer + t3
            guard let back = toRoom.arrivals(of: reply).min(), back.seconds < seconds else {
                continue
            }
            exchanges.append(
                Exchange(
                    ExchangeSample(
                        t1: clocks.local(max(t1, TrueInstant(nanoseconds: 0))),
                        t2: clocks.group(there + t2), t3: clocks.group(reply - t3),
                        t4: clocks.local(back + t4),
                        stamps: parts.stamps == .program ? .program : .kernel)))
        }
        exchanges.sort { $0.sample.t4 < $1.sample.t4 }
    }
}
