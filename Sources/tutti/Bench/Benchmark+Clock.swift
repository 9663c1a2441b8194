import ClockSync
import Timing

extension Benchmark {
    /// The exchanges of half a second received, and solved once, with five minutes of history behind
    /// them: what a room does twice a second.
    static var clockBenchmarks: [Benchmark] {
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
}

/// A leader 17 ppm fast behind a path whose delay is a floor and exponential queues.
private final class ExchangeStage {
    private var estimator = ClockEstimator()
    private var now = LocalInstant(nanoseconds: 50_000_000_000)
    private var word: UInt64 = 0x9E37_79B9_7F4A_7C15
    private let delay: Double
    private let jitter: Double

    /// From solve to solve, at the 25 a second of a room that has played for half a minute.
    static let exchanges = 13
    /// A little more than what lies between two solves then (`ClockEstimator.calmInterval`).
    private static let interval = Nanoseconds.milliseconds(520)

    /// - Parameters:
    ///   - delay, jitter: of each direction, seconds.
    init(delay: Double, jitter: Double) {
        self.delay = delay
        self.jitter = jitter
    }

    private func queue() -> Nanoseconds {
        word ^= word &<< 13
        word ^= word &>> 7
        word ^= word &<< 17
        // Exponential by the position of the first bit: geometric, and good enough to solve.
        let steps = Double(word.leadingZeroBitCount) + Double(word & 0xFFFF) / 65_536
        return Nanoseconds(seconds: delay + jitter * steps)
    }

    private func leader(_ local: LocalInstant) -> GroupInstant {
        let elapsed = local.nanoseconds - 50_000_000_000
        return GroupInstant(nanoseconds: 7_000_000_000 + elapsed + elapsed / 58_824)
    }

    func solve(count: Int) -> UInt64 {
        for _ in 0..<count * Self.exchanges {
            now += Nanoseconds(Self.interval.count / Int64(Self.exchanges))
            let arrival = now + queue()
            let answer = arrival + .microseconds(12)
            let back = answer + queue()
            _ = estimator.receive(
                ExchangeSample(
                    t1: now, t2: leader(arrival), t3: leader(answer), t4: back, stamps: .kernel),
                at: back)
            estimator.advance(to: back)
        }
        return UInt64(truncatingIfNeeded: estimator.bound(at: now)?.count ?? 0)
    }
}
