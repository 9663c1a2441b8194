import func Glibc.pow

/// One-way delays of a kind of network, seconds; plausible, not recorded.
struct PathModel: Sendable {
    enum Kind: Sendable, CaseIterable {
        case symmetric, wired, wiredLoad, wifi, wifiBusy
        /// Two hops of normal jitter: nothing gathers at the floor.
        case normal
        /// Two hops of Pareto-normal jitter, as network emulators make a bad air: milliseconds,
        /// in order, with a floor that many packets meet.
        case pareto
    }
    enum Direction { case toLeader, toFollower }

    let kind: Kind
    var extraLoss = 0.0
    /// Added to both directions after this moment: another route.
    var detour = (from: Double.infinity, seconds: 0.0)
    private var random: Randomness
    /// Rate-dependent floors of the air, switching at random.
    private var floors = (toLeader: 0.0, toFollower: 0.0)
    private var emulated = [(state: Double, last: Double)](repeating: (0, 0), count: 4)
    private var nextSwitch = (toLeader: 0.0, toFollower: 0.0)

    init(_ kind: Kind, seed: UInt64) {
        self.kind = kind
        self.random = Randomness(seed: seed ^ 0xDE1A)
    }

    /// `nil`: lost.
    mutating func delay(_ direction: Direction, at time: Double) -> Double? {
        if random.chance(extraLoss) { return nil }
        let detour = time >= self.detour.from ? self.detour.seconds : 0
        guard let network = networkDelay(direction, at: time) else { return nil }
        return network + detour + stampJitter()
    }

    private mutating func networkDelay(_ direction: Direction, at time: Double) -> Double? {
        switch kind {
        case .symmetric:
            // Half of the packets meet an empty path, the others a queue.
            return 50e-6 + (random.chance(0.5) ? 0 : random.exponential(200e-6))
        case .wired: return wire()
        case .normal:
            return (0..<2).reduce(0) { sum, _ in sum + max(40e-6, 100e-6 + 20e-6 * random.normal())
            }
        case .pareto:
            if random.chance(0.01) { return nil }
            var arrival = time
            for hop in 0..<2 { arrival = emulatedAir(hop, direction, arrival) }
            return arrival - time
        case .wiredLoad:
            guard direction == .toFollower else { return wire() }
            return wire() + (random.chance(0.65) ? random.exponential(180e-6) : 0)
                + (random.chance(0.05) ? random.exponential(1.5e-3) : 0)
        case .wifi:
            if random.chance(0.01) { return nil }
            return air(direction, time, contention: 0.22e-3, retries: 0.10)
                + (random.chance(0.01) ? random.exponential(12e-3) : 0)
        case .wifiBusy:
            if random.chance(0.03) { return nil }
            let queue = direction == .toFollower && random.chance(0.6)
            return air(direction, time, contention: 1.3e-3, retries: 0.28)
                + (random.chance(0.05) ? random.exponential(25e-3) : 0)
                + (queue ? random.exponential(2.5e-3) : 0)
        }
    }

    private mutating func wire() -> Double {
        28e-6 + random.gamma(0.8, 2.5e-6)
            + (random.chance(0.02) ? random.exponential(60e-6) : 0)
    }

    private mutating func air(
        _ direction: Direction, _ time: Double, contention: Double, retries: Double
    ) -> Double {
        let states = [0, 30e-6, 80e-6, 160e-6]
        if direction == .toLeader, time >= nextSwitch.toLeader {
            floors.toLeader = states[Int(random.next() % 4)]
            nextSwitch.toLeader = time + random.exponential(9)
        }
        if direction == .toFollower, time >= nextSwitch.toFollower {
            floors.toFollower = states[Int(random.next() % 4)]
            nextSwitch.toFollower = time + random.exponential(9)
        }
        let floor = direction == .toLeader ? floors.toLeader : floors.toFollower
        return 0.36e-3 + floor + random.exponential(contention)
            + (random.chance(retries) ? random.exponential(0.6e-3) : 0)
    }

    /// Mean 2 ms, deviation 3 ms, correlation 0.25, floor 0.3 ms; a packet in a hundred overtakes.
    private mutating func emulatedAir(
        _ hop: Int, _ direction: Direction, _ time: Double
    ) -> Double {
        let pipe = 2 * hop + (direction == .toLeader ? 0 : 1)
        let pareto = (pow(random.unit(), -1 / 3) - 1.5) / 0.8660254
        let fresh = 0.25 * random.normal() + 0.75 * min(12, pareto)
        emulated[pipe].state = 0.25 * emulated[pipe].state + 0.9682458 * fresh
        let arrival = time + max(0.3e-3, 2e-3 + 3e-3 * emulated[pipe].state)
        if random.chance(0.01) { return arrival }
        emulated[pipe].last = max(arrival, emulated[pipe].last + 1e-6)
        return emulated[pipe].last
    }

    /// Kernel stamps: interrupt coalescing and the way through the driver.
    private mutating func stampJitter() -> Double {
        [.symmetric, .normal, .pareto].contains(kind)
            ? 0 : 12e-6 * random.unit() + random.gamma(2, 1.5e-6)
    }
}
