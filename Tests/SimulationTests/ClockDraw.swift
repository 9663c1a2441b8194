import Foundation
import Testing
import TuttiChance
import TuttiClockSync
import TuttiTiming
@testable import TuttiSimulation

/// Worlds of two clocks, drawn from everything that the models can do.
enum ClockDraw {
    /// `TUTTI_SEEDS=10` draws ten times as many worlds; 1 is what fits into a minute of a slow
    /// machine and a debug build.
    static let factor = max(
        1, ProcessInfo.processInfo.environment["TUTTI_SEEDS"].flatMap(Int.init) ?? 1)

    /// Seeds in blocks: a block is one case, so that several processors share the work.
    static func blocks(_ count: Int, of size: Int) -> [Range<UInt64>] {
        (0..<count * factor / size).map { UInt64($0 * size + 1)..<UInt64(($0 + 1) * size + 1) }
    }

    /// Any path, a crystal between good and terrible, any loss up to a third.
    static func parts(seed: UInt64) -> ClockParts {
        var random = SplitMix64(seed: seed, "drawn parts")
        let path = ClockPath.all[Int(random.next() % UInt64(ClockPath.all.count))]
        let stamps = [path.stamps, .kernel, .program][Int(random.next() % 3)]
        var parts = ClockParts(path, seed: seed, stamps: stamps)
        parts.crystal = OscillatorShape(
            constant: random.uniform(-100, 100), wander: random.uniform(0.004, 0.02),
            breathing: .init(
                partsPerMillion: random.uniform(0.15, 1), period: random.uniform(60, 600),
                phase: random.uniform()))
        let loss = random.uniform(0, 0.3)
        let isBursty = random.chance(0.5)
        for direction in [\NetworkProfile.toLeader, \.toRoom] {
            if isBursty {
                parts.network[keyPath: direction].lossBursts = .init(
                    begin: 0.05 * loss, end: 0.1, loss: 0.8)
            } else {
                parts.network[keyPath: direction].loss += loss
            }
            parts.network[keyPath: direction].duplication = random.uniform(0, 0.1)
        }
        if random.chance(0.3) {
            // Up to 0.1 ppm/s, as the bound assumes of a machine that warms up.
            let warming = random.uniform(-3, 3)
            parts.crystal.thermalSteps.append(
                .init(at: random.uniform(0, 3), partsPerMillion: warming, time: 30))
        }
        return parts
    }
}

extension ClockParts {
    /// What to look for when a seed fails.
    var name: String { "seed \(seed), \(network.name), \(stamps) stamps" }
}

/// Watches a published line and says what is wrong with it.
struct LineWatch {
    /// Two crystals at the ends of what exists, and the lean.
    static let rateLimit = 500e-6

    private var last: SharedClock?
    private var wasLocked = false
    private(set) var complaints: [String] = []
    private(set) var readings = 0
    /// Readings at which the bound did not contain the truth.
    private(set) var misses: [String] = []
    /// Places where a line that was said to be locked was set instead of leaned.
    private(set) var steps: [String] = []

    /// - Parameters:
    ///   - clock: as it is at `local`.
    ///   - truth: of the leader's clock at `local`.
    mutating func look(_ clock: SharedClock, at local: LocalInstant, truth: GroupInstant) {
        let error = clock.map(local) - truth
        readings += 1
        if error.magnitude > clock.uncertainty {
            misses.append(
                "error \(error.microseconds) µs outside ±\(clock.uncertainty.microseconds) µs,"
                    + " \(clock.quality), at \(Exchange.seconds(of: local)) s")
        }
        if clock.map.skew.magnitude > Self.rateLimit {
            complaints.append("rate \(clock.map.skew * 1e6) ppm")
        }
        if let last, wasLocked, last.epoch == clock.epoch {
            let handOver = clock.map.fromAnchor
            // To the nanosecond of the representation.
            if (clock.map(handOver) - last.map(handOver)).magnitude > Nanoseconds(1) {
                steps.append("a step of \(clock.map(handOver) - last.map(handOver))")
            }
            let before = last.map(last.estimatedAt)
            if local > last.estimatedAt, clock.map(local) <= before {
                complaints.append("backwards by \(before - clock.map(local))")
            }
        } else {
            wasLocked = false
        }
        wasLocked = wasLocked || clock.quality == .locked
        last = clock
    }
}
