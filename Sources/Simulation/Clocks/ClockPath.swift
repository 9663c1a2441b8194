import TuttiChance

/// A kind of network that clocks are compared on: delays of both directions and time stamps.
struct ClockPath: Sendable {
    var name: String
    var summary: String
    var network: NetworkProfile
    var stamps: StampShape
    /// Not looked at while an estimator's constants are chosen.
    var isHeldOut = false
    /// An error below which a clock counts as recovered from an event; seconds.
    var goodError = 50e-6

    /// What one seed makes of the path: downloads do not begin at the same second everywhere.
    func network(seed: UInt64) -> NetworkProfile {
        var random = SplitMix64(seed: seed, "phase of the download")
        var drawn = network
        drawn.toRoom.download?.begin += random.uniform(0, 10)
        return drawn
    }

    static func named(_ name: String) -> ClockPath? { all.first { $0.name == name } }

    static let all = physical + emulated + heldOut

    /// Wires and air as they are thought to be.
    private static let physical: [ClockPath] = [
        ClockPath(
            name: "wired", summary: "an idle switch, a network adapter's interrupts",
            network: .wired, stamps: .kernel),
        ClockPath(
            name: "wired-load", summary: "a burst in two of three packets towards the room",
            network: wiredLoad, stamps: .kernel),
        ClockPath(
            name: "wifi", summary: "contention, retries, floors that change every nine seconds",
            network: .wifi, stamps: .kernel, goodError: 150e-6),
        ClockPath(
            name: "wifi2", summary: "leader and room both on the air",
            network: NetworkProfile(
                name: "wifi2", toLeader: twice(NetworkProfile.wifi.toLeader),
                toRoom: twice(NetworkProfile.wifi.toRoom)), stamps: .kernel, goodError: 250e-6),
        ClockPath(
            name: "busy-wifi", summary: "a neighbour streams, the queue is seldom empty",
            network: .busyWiFi, stamps: .kernel, goodError: 300e-6),
        ClockPath(
            name: "bloat", summary: "wifi, and 20 s of every minute a download of 8 to 140 ms",
            network: bloat, stamps: .kernel, goodError: 150e-6),
        ClockPath(
            name: "sleepy", summary: "wifi that sleeps after 100 ms and wakes with a beacon",
            network: sleepy, stamps: .kernel, goodError: 300e-6),
    ]

    /// Kept from the choice of constants.
    private static let heldOut: [ClockPath] = [
        ClockPath(
            name: "ho-wired", summary: "interrupts coalesced to 50 µs, no mass at the floor",
            network: heldOutWired, stamps: .kernel, isHeldOut: true),
        ClockPath(
            name: "ho-load", summary: "a queue in nine of ten packets towards the room",
            network: heldOutLoad, stamps: .kernel, isHeldOut: true),
        ClockPath(
            name: "ho-wifi", summary: "log-normal access, high floors, bursts",
            network: heldOutWiFi, stamps: .kernel, isHeldOut: true, goodError: 150e-6),
    ]

    // MARK: Shapes

    private static let wire = NetworkProfile.wired.toLeader

    /// A queue behind the wire.
    private static func queue(
        chance: Double, mean: Double, spikes: Double = 0, spike: Double = 0
    ) -> PathShape {
        PathShape(
            floor: 0, jitterScale: 0, queueChance: chance, queue: mean, spikeChance: spikes,
            spike: spike)
    }

    private static let wiredLoad: NetworkProfile = {
        var loaded = wire
        loaded.further = [queue(chance: 0.65, mean: 180, spikes: 0.05, spike: 1_500)]
        return NetworkProfile(name: "wired load", toLeader: wire, toRoom: loaded)
    }()

    private static let bloat: NetworkProfile = {
        var bloated = NetworkProfile.wifi.toRoom
        bloated.download = .init(
            period: 60, begin: 35, length: 20, tooth: 4, low: 8_000, high: 140_000)
        return NetworkProfile(
            name: "bloat", toLeader: NetworkProfile.wifi.toLeader, toRoom: bloated)
    }()

    private static let sleepy: NetworkProfile = {
        var room = NetworkProfile.wifi.toRoom
        room.powerSave = .init(idle: 0.1, wait: 102_400)
        return NetworkProfile(
            name: "sleepy", toLeader: NetworkProfile.wifi.toLeader, toRoom: room)
    }()

    private static func twice(_ shape: PathShape) -> PathShape {
        var first = shape
        first.further = [shape]
        return first
    }

    private static let coalesced = PathShape(
        floor: 28, jitterShape: 2.5, jitterScale: 4, coalescing: 50)
    private static let heldOutWired = NetworkProfile(
        name: "held-out wired", toLeader: coalesced, toRoom: coalesced)

    private static let heldOutLoad: NetworkProfile = {
        var loaded = wire
        loaded.further = [queue(chance: 0.9, mean: 250)]
        return NetworkProfile(name: "held-out load", toLeader: wire, toRoom: loaded)
    }()

    private static let heldOutAir = PathShape(
        floor: 540, regimes: [0, 45, 120, 240], loss: 0.01,
        access: .init(median: 150, deviation: 1),
        bursts: .init(every: 4, lasting: 0.5, wait: 3_000))
    private static let heldOutWiFi = NetworkProfile(
        name: "held-out wifi", toLeader: heldOutAir, toRoom: heldOutAir)
}
