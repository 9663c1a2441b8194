import ClockSync
import Timing

extension Benchmark {
    /// One exchange received and solved with five minutes of history behind it: what a room does
    /// four times a second.
    static var clockBenchmarks: [Benchmark] {
        [("wired", 40.0, 4.0), ("wifi", 900, 600)].map { name, delay, jitter in
            Benchmark(
                name: "clock/solve-\(name)",
                operation: "an exchange received and solved, five minutes of them behind it",
                unit: "solve"
            ) {
                let world = ExchangeStage(delay: delay * 1e-6, jitter: jitter * 1e-6)
                _ = world.solve(count: 1_200)
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
        for _ in 0..<count {
            now += .milliseconds(260)
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
