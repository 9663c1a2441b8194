/// Networks as a network emulator makes them: the profiles of the rig that judges whole rooms.
///
/// A packet passes one pipe for each end that is on the air: the room's alone when the leader hangs
/// on a wire, two otherwise. Each pipe draws a delay, cuts it off at its least, so that a good part
/// of all packets meets the floor exactly, and keeps the order but for some that overtake. On top,
/// the emulating process wakes some ten microseconds late.
extension ClockPath {
    static let emulated: [ClockPath] = [
        ClockPath(
            name: "two-hops", summary: "two hops of 100 ± 20 µs, normal: no mass at a floor",
            network: both("two hops", pipes(wire)), stamps: .virtual),
        ClockPath(
            name: "em-wired", summary: "a hop of 100 ± 20 µs, hosts that wake late",
            network: both("emulated wire", wireAndHosts), stamps: .virtual),
        ClockPath(
            name: "em-wifi", summary: "a hop of 2 ± 3 ms, Pareto-normal, 0.3 ms at least",
            network: both("emulated wifi", air), stamps: .virtual, goodError: 150e-6),
        ClockPath(
            name: "pareto", summary: "two such hops: leader and room on emulated air",
            network: both("pareto", pipes(air)), stamps: .virtual, goodError: 150e-6),
        ClockPath(
            name: "em-stall", summary: "a hop of it that stands still for 80 ms, every 8 s",
            network: both("emulated stalls", stalling), stamps: .virtual, goodError: 150e-6),
        ClockPath(
            name: "em-busy", summary: "a hop of 10 ± 15 ms, Pareto-normal, 0.5 ms at least",
            network: both("emulated busy wifi", busyAir), stamps: .virtual, goodError: 400e-6),
        ClockPath(
            name: "busy-pareto", summary: "two such hops",
            network: both("busy pareto", pipes(busyAir)), stamps: .virtual, goodError: 400e-6),
        ClockPath(
            name: "asymmetric", summary: "1 ms there, 5 ms back: 2 ms that nobody can see",
            network: NetworkProfile(
                name: "asymmetric", toLeader: pipe(mean: 1_000, deviation: 300, least: 300),
                toRoom: pipe(mean: 5_000, deviation: 300, least: 1_000)),
            stamps: .virtual, goodError: 2_200e-6),
    ]

    private static let wire = pipe(mean: 100, deviation: 20, least: 40)

    /// One such hop with the hosts on either side, as recorded between namespaces.
    private static let wireAndHosts = pipe(mean: 170, deviation: 31, least: 60)

    /// 130 bytes on the wire at 60 Mbit/s.
    private static let air: PathShape = {
        var shape = pipe(mean: 2_000, deviation: 3_000, least: 300, floor: 17)
        shape.emulation?.hasTail = true
        shape.emulation?.correlation = 0.25
        shape.emulation?.overtaking = 0.01
        shape.loss = 0.005
        return shape
    }()

    private static let stalling: PathShape = {
        var shape = air
        shape.stalls = .init(every: 8, lasting: 0.08)
        return shape
    }()

    /// At 20 Mbit/s; two packets are lost together.
    private static let busyAir: PathShape = {
        var shape = pipe(mean: 10_000, deviation: 15_000, least: 500, floor: 52)
        shape.emulation?.hasTail = true
        shape.emulation?.correlation = 0.3
        shape.emulation?.overtaking = 0.02
        shape.lossBursts = .init(begin: 0.02 / 2 / 0.98, end: 0.5, loss: 1)
        return shape
    }()

    /// µs, all.
    private static func pipe(
        mean: Double, deviation: Double, least: Double, floor: Double = 0
    ) -> PathShape {
        PathShape(
            floor: floor, jitterScale: 0,
            emulation: .init(mean: mean, deviation: deviation, least: least, lateness: 6))
    }

    /// Two pipes in one process, which wakes for the second alone.
    private static func pipes(_ shape: PathShape) -> PathShape {
        var first = shape
        first.emulation?.lateness = 0
        first.further = [shape]
        return first
    }

    private static func both(_ name: String, _ shape: PathShape) -> NetworkProfile {
        NetworkProfile(name: name, toLeader: shape, toRoom: shape)
    }
}
