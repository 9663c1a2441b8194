import TuttiChance
import TuttiGroupControl
import TuttiTiming

/// A machine on the network: its clock, its paths and what is in its cache. Outlives processes.
struct Host {
    let plan: RoomPlan
    var crystal: HostCrystal
    var isOn = true
    /// Its process stands still until then.
    var frozenUntil = TrueInstant(nanoseconds: 0)
    /// Its kernel stands still too, and its clock.
    var isAsleep = false
    var isDiskFull = false
    /// Getting ready takes so many times as long as usual.
    var slowness = 1.0
    var toLeader: NetworkPath
    var toRoom: NetworkPath
    var cached: [ContentHash] = []
    /// Draws how late threads wake and how long work takes.
    var scheduling: SplitMix64
    /// Draws how far time stamps are from the packets.
    var stamping: SplitMix64

    init(_ plan: RoomPlan, place: Int, seed: UInt64) {
        self.plan = plan
        var draw = SplitMix64(seed: seed, "host", place)
        // Up to eleven days since boot, each its own.
        let epoch = Int64(draw.uniform(100, 1e6) * 1e9)
        let drawn = draw.uniform(-20, 20)
        crystal = HostCrystal(
            epoch: epoch, partsPerMillion: plan.host ?? drawn, wander: 0.01,
            random: SplitMix64(seed: seed, "host crystal", place))
        let network = place == World.firstLeaderPlace ? .inProcess : plan.network
        toLeader = NetworkPath(
            network.toLeader, random: SplitMix64(seed: seed, "to leader", place))
        toRoom = NetworkPath(network.toRoom, random: SplitMix64(seed: seed, "to room", place))
        scheduling = SplitMix64(seed: seed, "scheduling", place)
        stamping = SplitMix64(seed: seed, "stamping", place)
    }

    /// The leader is another one: its own room reaches it within its process.
    mutating func reach(_ network: NetworkProfile, draw: inout SplitMix64) {
        toLeader = NetworkPath(network.toLeader, random: SplitMix64(seed: draw.next()))
        toRoom = NetworkPath(network.toRoom, random: SplitMix64(seed: draw.next()))
    }

    // MARK: How long things take

    /// Lateness of a real-time thread, as measured: some µs, now and then a millisecond.
    mutating func realTimeLateness() -> Nanoseconds {
        let spike = scheduling.chance(0.001) ? scheduling.exponential(mean: 500e-6) : 0
        return Nanoseconds(seconds: 4e-6 + scheduling.exponential(mean: 6e-6) + spike)
    }

    /// Lateness of an ordinary task.
    mutating func taskLateness() -> Nanoseconds {
        let spike = scheduling.chance(0.01) ? scheduling.exponential(mean: 2e-3) : 0
        return Nanoseconds(seconds: 50e-6 + scheduling.exponential(mean: 80e-6) + spike)
    }

    /// From the arrival of a packet to the kernel's stamp of it: coalesced interrupts.
    mutating func receiveStampLateness() -> Nanoseconds {
        Nanoseconds(seconds: stamping.uniform(0, 12e-6) + stamping.gamma(shape: 2, scale: 1.5e-6))
    }

    /// From the program's look at its clock to the packet's departure.
    mutating func sendDuration() -> Nanoseconds {
        Nanoseconds(seconds: 3e-6 + stamping.gamma(shape: 1.2, scale: 14e-6))
    }

    /// From a stamp or a packet in the kernel to the program that reads it.
    mutating func readDuration() -> Nanoseconds {
        Nanoseconds(seconds: 10e-6 + stamping.exponential(mean: 25e-6))
    }

    /// Opening, seeking and decoding ahead.
    mutating func prepareDuration() -> Nanoseconds {
        Nanoseconds(seconds: slowness * scheduling.uniform(4e-3, 18e-3))
    }

    mutating func fetchDuration(bytes: Int64) -> Nanoseconds {
        Nanoseconds(
            seconds: 5e-3 + Double(bytes) / plan.network.bytesPerSecond
                * scheduling.uniform(0.9, 1.4))
    }
}
