import TuttiChance
import TuttiTiming

/// What a seed makes of a path: the parts of one world of two clocks and a network.
struct ClockParts: Sendable {
    var network: NetworkProfile
    var stamps: StampShape
    /// The room's clock; the leader's is true but for its jumps. Only their difference is seen.
    var crystal: OscillatorShape
    /// When the leader's clock jumps, and by how much; seconds.
    var leaderJumps: [(at: Double, by: Double)] = []
    let seed: UInt64

    init(_ path: ClockPath, seed: UInt64, stamps: StampShape? = nil) {
        network = path.network(seed: seed)
        self.stamps = stamps ?? path.stamps
        var random = SplitMix64(seed: seed, "crystal of the room")
        crystal = .typical(&random)
        self.seed = seed
    }

    /// With an event in it.
    func with(_ event: ClockEvent, at time: Double) -> ClockParts {
        var changed = self
        event.apply(at: time, to: &changed)
        return changed
    }

    var clocks: ClockPair { ClockPair(self) }

    var toLeader: NetworkPath {
        NetworkPath(network.toLeader, random: SplitMix64(seed: seed, "clock path to leader"))
    }

    var toRoom: NetworkPath {
        NetworkPath(network.toRoom, random: SplitMix64(seed: seed, "clock path to room"))
    }
}

/// Two clocks and the truth about them.
struct ClockPair {
    /// The clocks' epochs lie weeks apart, as on real machines.
    static let localEpoch: Int64 = 86_400_000_000_000
    static let leaderEpoch: Int64 = 3_456_789_000_000_000

    private var crystal: HostCrystal
    private let jumps: [(at: Double, by: Double)]

    init(_ parts: ClockParts) {
        crystal = HostCrystal(
            epoch: Self.localEpoch, shape: parts.crystal,
            random: SplitMix64(seed: parts.seed, "wander of the room"))
        jumps = parts.leaderJumps
    }

    mutating func local(_ instant: TrueInstant) -> LocalInstant { crystal.reading(at: instant) }

    /// The first true instant at which the room's clock reads `local`.
    mutating func instant(of local: LocalInstant) -> TrueInstant { crystal.instant(of: local) }

    func group(_ instant: TrueInstant) -> GroupInstant {
        var jumped = 0.0
        for jump in jumps where instant.seconds >= jump.at { jumped += jump.by }
        return GroupInstant(nanoseconds: Self.leaderEpoch + instant.nanoseconds)
            + Nanoseconds(seconds: jumped)
    }
}
