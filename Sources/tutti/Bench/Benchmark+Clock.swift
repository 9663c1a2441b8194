import TuttiClockSync
import TuttiTiming

extension Benchmark {
    static var clockBenchmarks: [Benchmark] { steadyClockBenchmarks + joiningClockBenchmarks }

    /// The exchanges of half a second received, and solved once, with five minutes of history
    /// behind them: what a room does twice a second.
    private static var steadyClockBenchmarks: [Benchmark] {
        [("wired", 40.0, 4.0), ("wifi", 900, 600)].map { name, delay, jitter in
            Benchmark(
                name: "clock/solve-\(name)",
                operation:
                    "\(ExchangeStage.exchanges) exchanges received and solved, five minutes behind them",
                unit: "solve"
            ) {
                let world = ExchangeStage(delay: delay * 1e-6, jitter: jitter * 1e-6)
                _ = world.solve(count: 600)
                return { world.solve(count: $0) }
            }
        }
    }

    /// What a room does in the first two seconds, which it asks densely: on air where one packet in
    /// sixteen meets nobody, and where none does.
    private static var joiningClockBenchmarks: [Benchmark] {
        [("wifi", 300.0, 2_000.0, UInt64(16)), ("busy", 500, 8_000, .max)].map {
            name, delay, jitter, unhindered in
            Benchmark(
                name: "clock/join-\(name)",
                operation:
                    "\(ExchangeStage.joiningExchanges) exchanges received and solved, none before",
                unit: "join"
            ) {
                let world = ExchangeStage(
                    delay: delay * 1e-6, jitter: jitter * 1e-6, unhindered: unhindered)
                return { world.join(count: $0) }
            }
        }
    }
}

/// A leader 17 ppm fast behind a path whose delay is a floor and exponential queues.
private final class ExchangeStage {
    private var estimator = ClockEstimator()
    private var now = LocalInstant(nanoseconds: 50_000_000_000)
    private var lastArrival = LocalInstant(nanoseconds: 0)
    private var word: UInt64 = 0x9E37_79B9_7F4A_7C15
    private let delay: Double
    private let jitter: Double
    /// One of so many packets meets nobody on its way.
    private let unhindered: UInt64

    /// Exchanges from one solve to the next, at the 25 a second of a room that has settled.
    static let exchanges = 13
    /// A little more than `ClockEstimator.calmInterval`, so that each operation solves once.
    private static let interval = Nanoseconds.milliseconds(520)
    /// Exchanges of the first two seconds on air, 2.3 ms apart.
    static let joiningExchanges = 870

    /// - Parameters:
    ///   - delay, jitter: of each direction, seconds.
    ///   - unhindered: of so many packets one has the delay and a tenth of it at most.
    init(delay: Double, jitter: Double, unhindered: UInt64 = .max) {
        self.delay = delay
        self.jitter = jitter
        self.unhindered = unhindered
    }

    private func queue() -> Nanoseconds {
        word ^= word &<< 13
        word ^= word &>> 7
        word ^= word &<< 17
        if word % unhindered == 0 {
            return Nanoseconds(seconds: delay * (1 + Double(word >> 40 & 0xFFFF) / 655_360))
        }
        // Exponential by the position of the first bit: geometric, and good enough to solve.
        let steps = Double(word.leadingZeroBitCount) + Double(word & 0xFFFF) / 65_536
        return Nanoseconds(seconds: delay + jitter * steps)
    }

    private func leader(_ local: LocalInstant) -> GroupInstant {
        let elapsed = local.nanoseconds - 50_000_000_000
        return GroupInstant(nanoseconds: 7_000_000_000 + elapsed + elapsed / 58_824)
    }

    func solve(count: Int) -> UInt64 {
        exchange(
            count * Self.exchanges, every: Nanoseconds(Self.interval.count / Int64(Self.exchanges)))
        return UInt64(truncatingIfNeeded: estimator.bound(at: now)?.count ?? 0)
    }

    func join(count: Int) -> UInt64 {
        var sum: UInt64 = 0
        for _ in 0..<count {
            estimator = ClockEstimator()
            exchange(Self.joiningExchanges, every: .microseconds(2_300))
            sum &+= UInt64(truncatingIfNeeded: estimator.bound(at: now)?.count ?? 0)
        }
        return sum
    }

    private func exchange(_ count: Int, every spacing: Nanoseconds) {
        for _ in 0..<count {
            now += spacing
            let arrival = now + queue()
            let answer = arrival + .microseconds(12)
            // A path of air keeps its order.
            let back = max(answer + queue(), lastArrival)
            lastArrival = back
            _ = estimator.receive(
                ExchangeSample(
                    t1: now, t2: leader(arrival), t3: leader(answer), t4: back, stamps: .kernel),
                at: back)
            estimator.advance(to: back)
        }
    }
}
