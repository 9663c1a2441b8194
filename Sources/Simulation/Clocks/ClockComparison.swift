import TuttiChance
import TuttiClockSync
import TuttiTiming

/// Our clock beside those of other systems, on the same exchanges.
///
/// Every filter gets one trace: the same packets at the same times with the same stamps, so that
/// what is compared is what they make of them. Ours runs a second time on its own schedule. The
/// others are written from descriptions of what they do, with their published constants; they are
/// models of those programs and not the programs.
///
/// The work is cut into jobs that depend on nothing, for whoever has more than one processor.
public struct ClockComparison: Sendable {
    /// Seconds of a steady run, and from when on it counts.
    public static let seconds = 300.0
    /// Seconds after which a steady run counts.
    public static let settling = 30.0
    /// Errors of a join are read at these times; seconds.
    public static let joinTimes = [0.1, 0.2, 0.5, 1, 2, 5]
    /// When an event happens, and when its later error counts; seconds.
    public static let eventTime = 100.0
    /// Seconds of a run in which the error after an event counts.
    public static let laterThanEvent = 160.0..<200.0
    /// Added to the number of a seed that no constant was chosen on.
    public static let heldOutSeeds: UInt64 = 1_000_000
    /// Half as many seeds do not yet decide between two filters that are close.
    public static let usualSeeds = 48
    /// Seeds of joins and events, at most; each has ten joins, which are short.
    public static let eventSeeds = 6
    /// Rooms that join for each of the first ``eventSeeds`` seeds.
    public static let joinsPerSeed = 10

    /// Kinds of network, and whether they are kept from the choice of constants.
    public static var paths: [(name: String, summary: String, isHeldOut: Bool)] {
        ClockPath.all.map { ($0.name, $0.summary, $0.isHeldOut) }
    }

    /// The filters that ours is compared with, and whose they are like.
    public static var baselines: [(name: String, like: String)] { ClockFilters.baselines }

    /// The name of our filter on the schedule that all filters share.
    public static let ours = ClockFilters.ours
    /// The name of our filter when it asks when it wants to.
    public static let oursAlone = "tutti, own schedule"
    /// The name of our filter when it remembers the skew of last time.
    public static let oursStored = "tutti, stored skew"
    /// Seconds to wait for a lock; a join that takes longer has none.
    static let lockLimit = 15.0
    /// What a late room has to find the clock in.
    static let hurry = Nanoseconds.milliseconds(500)
    /// As wide as stamps and schedulers blur a floor.
    static let floorWidth = Nanoseconds.microseconds(30)
    /// The largest error of so many seconds after a lock counts; who plays then hears it.
    static let firstSeconds = 2.0
    static let lock = "lock"

    /// Something to be computed; independent of all the others.
    public struct Job: Sendable {
        enum Kind: Equatable, Sendable {
            case steady
            case join
            case event(ClockEvent)
        }
        var path: ClockPath
        var seed: UInt64
        var kind: Kind
    }

    /// What came of a job, for ``report(of:)``.
    public struct Outcome: Sendable {
        var job: Job
        /// By filter: half and 99 hundredths, or the errors at the times of a join, or the time to
        /// recover and the later error; µs and seconds, infinite where there is none.
        var figures: [String: [Double]]
    }

    /// Steady runs of each path, at least 1.
    public let seeds: Int
    /// All that is to be computed, in no order that matters.
    public let jobs: [Job]

    /// - Parameters:
    ///   - paths: names out of ``paths``; empty: all of them, the held-out shapes when `heldOut`.
    ///   - seeds: steady runs of each, from 1 on; of joins and events ``eventSeeds`` at most.
    ///   - heldOut: whether to take seeds and shapes that no constant was chosen on.
    ///   - joins, events: whether to compute those tables too.
    /// - Throws: ``SimulationError`` with the names there are.
    public init(
        paths names: [String] = [], seeds: Int, heldOut: Bool = false, joins: Bool = true,
        events: Bool = true
    ) throws(SimulationError) {
        let paths = try Self.paths(names, heldOut: heldOut)
        let first = heldOut ? Self.heldOutSeeds : 0
        let numbers = (1...UInt64(max(1, seeds))).map { first + $0 }
        let few = numbers.prefix(Self.eventSeeds)
        var jobs: [Job] = []
        for path in paths {
            jobs += numbers.map { Job(path: path, seed: $0, kind: .steady) }
        }
        if joins {
            // A download begins when a room has long joined: until then it is the path without it.
            for path in paths where path.network.toRoom.download == nil {
                for seed in 1...UInt64(few.count * Self.joinsPerSeed) {
                    jobs.append(Job(path: path, seed: first + seed, kind: .join))
                }
            }
        }
        if events {
            for path in paths where ["wired", "wifi", "ho-wired", "ho-wifi"].contains(path.name) {
                for event in ClockEvent.allCases {
                    jobs += few.map { Job(path: path, seed: $0, kind: .event(event)) }
                }
            }
        }
        self.seeds = numbers.count
        self.jobs = jobs
    }

    /// The paths of these names; where none is named all, the held-out ones if they are wanted.
    static func paths(_ names: [String], heldOut: Bool) throws(SimulationError) -> [ClockPath] {
        var paths: [ClockPath] = []
        for name in names {
            guard let path = ClockPath.named(name) else {
                let all = ClockPath.all.map(\.name).joined(separator: ", ")
                throw SimulationError(
                    code: .unknownPath,
                    description: "there is no path \"\(name)\"; there are \(all)")
            }
            paths.append(path)
        }
        return paths.isEmpty ? ClockPath.all.filter { !$0.isHeldOut || heldOut } : paths
    }
}

extension ClockComparison.Job {
    /// Computes it: some 100 ms of a processor for a steady run.
    public func perform() -> ClockComparison.Outcome {
        switch kind {
        case .steady: .init(job: self, figures: steady())
        case .join: .init(job: self, figures: join())
        case .event(let event): .init(job: self, figures: self.event(event))
        }
    }

    private func steady() -> [String: [Double]] {
        let parts = ClockParts(path, seed: seed)
        let span = ClockComparison.settling..<ClockComparison.seconds + 1
        var figures = measured(parts, seconds: ClockComparison.seconds) { errors in
            let part = errors.percentiles(span)
            return [part.p50, part.p99]
        }
        let alone = ClockErrors(ClockWorld(parts), seconds: ClockComparison.seconds)
            .percentiles(span)
        figures[ClockComparison.oursAlone] = [alone.p50, alone.p99]
        return figures
    }

    private func join() -> [String: [Double]] {
        let parts = ClockParts(path, seed: seed)
        let seconds = ClockComparison.joinTimes.max()!
        func read(_ errors: ClockErrors) -> [Double] {
            ClockComparison.joinTimes.map { errors.magnitude(at: $0) }
        }
        var figures = measured(parts, seconds: seconds, read)
        // A stored skew is right within 2 ppm.
        var random = SplitMix64(seed: seed, "yesterday")
        let skew = -(parts.crystal.constant + random.uniform(-2, 2)) * 1e-6
        let trace = ExchangeTrace(parts, seconds: seconds)
        figures[ClockComparison.oursStored] = read(
            ClockErrors(trace, EstimatorFilter(stored: StoredSkew(skew: skew))))
        figures[ClockComparison.oursAlone] = read(
            ClockErrors(ClockWorld(parts), seconds: seconds))
        figures[ClockComparison.lock] = lock(ClockWorld(parts))
        return figures
    }

    /// When a room's own line may be played by, and how far it is off then, and at most in the
    /// first seconds after that; seconds and µs. And how many packets nothing held up in the first
    /// half second.
    func lock(_ world: ClockWorld) -> [Double] {
        var world = world
        world.keepsTravels = true
        var time = 0.0
        while world.published?.quality != .locked, time < ClockComparison.lockLimit {
            time += ClockErrors.grid / 5
            world.run(until: time)
        }
        guard world.published?.quality == .locked, let first = world.error() else {
            return [.infinity, .infinity, .infinity, Self.unhindered(world)]
        }
        var most = first.magnitude
        let end = time + ClockComparison.firstSeconds
        var later = time
        while later < end {
            later += ClockErrors.grid
            world.run(until: later)
            most = max(most, world.error()?.magnitude ?? .infinity)
        }
        return [time, first.magnitude * 1e6, most * 1e6, Self.unhindered(world)]
    }

    /// Packets of the first half second that took as long as the quickest of all, in the direction
    /// that has fewer.
    private static func unhindered(_ world: ClockWorld) -> Double {
        func count(_ travels: [ClockWorld.Travel]) -> Int {
            guard let floor = travels.lazy.map(\.duration).min() else { return 0 }
            let end = TrueInstant(nanoseconds: 0) + ClockComparison.hurry
            return travels.count {
                $0.departure <= end && $0.duration <= floor + ClockComparison.floorWidth
            }
        }
        return Double(min(count(world.travels.toLeader), count(world.travels.toRoom)))
    }

    private func event(_ event: ClockEvent) -> [String: [Double]] {
        let start = ClockComparison.eventTime
        let parts = ClockParts(path, seed: seed).with(event, at: start)
        let seconds = ClockComparison.laterThanEvent.upperBound
        func read(_ errors: ClockErrors) -> [Double] {
            [
                errors.recovery(after: start, below: path.goodError) ?? .infinity,
                errors.percentiles(ClockComparison.laterThanEvent).p99,
            ]
        }
        var figures = measured(parts, seconds: seconds, read)
        figures[ClockComparison.oursAlone] = read(
            ClockErrors(ClockWorld(parts), seconds: seconds))
        return figures
    }

    /// All filters on one trace.
    private func measured(
        _ parts: ClockParts, seconds: Double, _ read: (ClockErrors) -> [Double]
    ) -> [String: [Double]] {
        let trace = ExchangeTrace(parts, seconds: seconds)
        var figures: [String: [Double]] = [:]
        for name in [ClockFilters.ours] + ClockFilters.baselines.map(\.name) {
            guard let filter = ClockFilters.make(name) else { continue }
            figures[name] = read(ClockErrors(trace, filter))
        }
        return figures
    }
}
