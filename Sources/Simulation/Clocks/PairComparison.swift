import TuttiClockSync
import TuttiTiming

/// How far apart the rooms of one leader are, with reference broadcasts and without.
///
/// Three rooms a house: the difference of each two rooms' published lines at the same moment, which
/// is what a person between their loudspeakers hears. Both runs of a seed have the same crystals
/// and networks; the schedules of requests drift apart as the estimates do.
public struct PairComparison: Sendable {
    /// Seconds of a run, and from when on it counts.
    public static let seconds = 240.0
    /// Seconds after which a run counts.
    public static let settling = 30.0
    /// Rooms of a house, the leader not among them.
    public static let rooms = 3

    /// A network and how it treats multicast.
    struct Kind: Sendable {
        var name: String
        var path: String
        var multicast: MulticastShape
        /// Broadcasts tell something here; elsewhere they must not do harm.
        var isUseful: Bool
    }

    static let kinds: [Kind] = [
        Kind(name: "wired", path: "wired", multicast: .wire, isUseful: false),
        Kind(name: "wired-load", path: "wired-load", multicast: .wire, isUseful: false),
        Kind(name: "wifi", path: "wifi", multicast: .air, isUseful: true),
        Kind(name: "wifi2", path: "wifi2", multicast: .air, isUseful: true),
        Kind(name: "busy-wifi", path: "busy-wifi", multicast: .air, isUseful: true),
        Kind(name: "bloat", path: "bloat", multicast: .air, isUseful: true),
        Kind(name: "converted", path: "wifi", multicast: .converted, isUseful: false),
        Kind(name: "queued", path: "wifi", multicast: .queued, isUseful: false),
        Kind(name: "two-aps", path: "wifi", multicast: .twoAccessPoints, isUseful: false),
    ]

    /// Names of the houses.
    public static var names: [String] { kinds.map(\.name) }

    /// Something to be computed; independent of all the others.
    public struct Job: Sendable {
        var kind: Kind
        var seed: UInt64
    }

    /// What came of a job, for ``report(of:)``; µs.
    public struct Outcome: Sendable {
        var kind: String
        var seed: UInt64
        var without: Figures
        var with: Figures
        /// Share of all looks at all rooms in which the broadcasts are in use, 0…1.
        var shareInUse = 0.0

        struct Figures: Sendable {
            var p50 = Double.infinity
            var p99 = Double.infinity
            /// Against the leader's clock.
            var leaderP99 = Double.infinity
            /// Looks at a room whose bound does not contain the truth.
            var misses = 0
        }
    }

    /// Runs of each house, at least 1.
    public let seeds: Int
    /// All that is to be computed, in no order that matters.
    public let jobs: [Job]

    /// - Parameters:
    ///   - names: out of ``names``; empty: all.
    ///   - heldOut: whether to take seeds that no constant was chosen on.
    /// - Throws: ``SimulationError`` with the names there are.
    public init(
        names: [String] = [], seeds: Int, heldOut: Bool = false
    ) throws(SimulationError) {
        var kinds: [Kind] = []
        for name in names {
            guard let kind = Self.kinds.first(where: { $0.name == name }) else {
                throw SimulationError(
                    code: .unknownPath,
                    description: "there is no house \"\(name)\"; there are "
                        + Self.names.joined(separator: ", "))
            }
            kinds.append(kind)
        }
        self.seeds = max(1, seeds)
        let first = heldOut ? ClockComparison.heldOutSeeds : 0
        jobs = (kinds.isEmpty ? Self.kinds : kinds).flatMap { kind in
            (1...UInt64(max(1, seeds))).map { Job(kind: kind, seed: first + $0) }
        }
    }
}

extension PairComparison.Job {
    /// Computes it: some seconds of a processor.
    public func perform() -> PairComparison.Outcome { perform(seconds: PairComparison.seconds) }

    func perform(seconds: Double) -> PairComparison.Outcome {
        let (without, _) = run(nil, seconds)
        let (with, share) = run(kind.multicast, seconds)
        return PairComparison.Outcome(
            kind: kind.name, seed: seed, without: without, with: with, shareInUse: share)
    }

    private func run(
        _ multicast: MulticastShape?, _ seconds: Double
    ) -> (PairComparison.Outcome.Figures, inUse: Double) {
        guard let path = ClockPath.named(kind.path) else { return (.init(), 0) }
        var house = HouseWorld(
            path, rooms: PairComparison.rooms, multicast: multicast, seed: seed)
        house.run(until: PairComparison.settling)
        var (pairs, alone): ([Double], [Double]) = ([], [])
        var figures = PairComparison.Outcome.Figures()
        var (inUse, looks) = (0, 0)
        while house.time < seconds {
            house.run(until: house.time + ClockErrors.grid)
            let errors = house.errors()
            for room in errors.indices {
                looks += 1
                if house.state(of: room) == .inUse { inUse += 1 }
                if !house.containsTruth(room) { figures.misses += 1 }
                alone.append((errors[room]?.magnitude ?? .infinity) * 1e6)
                for other in 0..<room {
                    guard let a = errors[room], let b = errors[other] else {
                        pairs.append(.infinity)
                        continue
                    }
                    pairs.append((a - b).magnitude * 1e6)
                }
            }
        }
        pairs.sort()
        alone.sort()
        figures.p50 = pairs[pairs.count / 2]
        figures.p99 = pairs[pairs.count * 99 / 100]
        figures.leaderP99 = alone[alone.count * 99 / 100]
        return (figures, Double(inUse) / Double(max(1, looks)))
    }
}
