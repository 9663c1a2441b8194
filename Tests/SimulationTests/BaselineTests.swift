import Testing
import TuttiClockSync
import TuttiTiming
@testable import TuttiSimulation

/// Each filter of the comparison does what it is described to do.
@Suite struct BaselineTests {
    /// Exchanges eight a second with constant delays; the leader runs `ppm` fast.
    private static func exchanges(
        _ count: Int, ppm: Double = 0, there: Double = 50e-6, back: Double = 50e-6
    ) -> [Exchange] {
        (0..<count).map { index in
            let time = Double(index) * 0.125
            func group(_ time: Double) -> GroupInstant {
                GroupInstant(nanoseconds: ClockPair.leaderEpoch)
                    + Nanoseconds(seconds: time * (1 + ppm * 1e-6))
            }
            let local = LocalInstant(nanoseconds: ClockPair.localEpoch)
            return Exchange(
                ExchangeSample(
                    t1: local + Nanoseconds(seconds: time), t2: group(time + there),
                    t3: group(time + there), t4: local + Nanoseconds(seconds: time + there + back),
                    stamps: .kernel))
        }
    }

    /// Error at the last exchange; µs.
    private static func error(_ name: String, _ exchanges: [Exchange], ppm: Double) -> Double? {
        guard var filter = ClockFilters.make(name) else { return nil }
        for exchange in exchanges { filter.receive(exchange) }
        let time = exchanges[exchanges.count - 1].arrived
        return filter.offset(at: time).map { ($0 - time * ppm * 1e-6) * 1e6 }
    }

    @Test(arguments: [ClockFilters.ours] + ClockFilters.baselines.map(\.name))
    func `equal clocks and equal delays leave no error`(name: String) throws {
        let error = try #require(Self.error(name, Self.exchanges(300), ppm: 0))
        // One way, all of the delay remains.
        #expect(abs(error - (name == "one way" ? -50 : 0)) < 0.1, "\(error) µs")
    }

    @Test(arguments: [
        "best of 8, Kalman", "least squares of 32", "weighted squares", "best delay of 8, PLL",
        "minimum delay, Kalman", "hulls of 60 s",
    ])
    func `a filter with a rate follows one`(name: String) throws {
        let error = try #require(
            Self.error(name, Self.exchanges(1_200, ppm: 30), ppm: 30))
        // After 150 s without noise: a sample and its rounding.
        #expect(abs(error) < 1, "\(error) µs")
    }

    @Test func `a median is as old as the half of its window`() throws {
        let error = try #require(
            Self.error("median of 200", Self.exchanges(600, ppm: 20), ppm: 20))
        // 200 exchanges are 25 s; 20 ppm in 12.5 s is 250 µs, to one exchange.
        #expect(abs(error + 250) < 2 * 2.5, "\(error) µs")
    }

    @Test
    func `one-sided delay is half an error for all that use both ways, and all of it for one`()
        throws
    {
        let exchanges = Self.exchanges(300, there: 50e-6, back: 250e-6)
        for (name, expected) in [("hulls of 60 s", -100.0), ("one way", -250)] {
            let error = try #require(Self.error(name, exchanges, ppm: 0))
            #expect(abs(error - expected) < 0.5, "\(name): \(error) µs")
        }
    }

    @Test func `a filter that steps by a quarter of a round trip needs a while for a jump`() throws
    {
        var filter = RegressionFilter()
        for exchange in Self.exchanges(64) { filter.receive(exchange) }
        var moved = Self.exchanges(66).suffix(2).map { $0 }
        for index in moved.indices {
            moved[index].forward += 2e-3
            moved[index].backward -= 2e-3
            filter.receive(moved[index])
        }
        let offset = try #require(filter.offset(at: moved[1].arrived))
        #expect(offset.magnitude <= 2 * 100e-6 / 4 + 1e-9)
    }
}
