import Testing
import TuttiChance
import TuttiTiming
@testable import TuttiSimulation

import func Glibc.exp

/// The models of paths, stamps and crystals are what they say.
@Suite struct ClockModelTests {
    private static func delays(_ shape: PathShape, every spacing: Double, count: Int) -> [Double?] {
        var path = NetworkPath(shape, random: SplitMix64(seed: 11))
        return (0..<count).map { index in
            let sent = TrueInstant(nanoseconds: Int64((1 + Double(index) * spacing) * 1e9))
            return path.arrivals(of: sent).min().map { ($0 - sent).microseconds }
        }
    }

    private static let bare = PathShape(floor: 100, jitterScale: 0)

    @Test func `a path without chance takes its floor`() {
        #expect(Self.delays(Self.bare, every: 0.1, count: 20).allSatisfy { $0 == 100 })
    }

    @Test func `hops add up, and each can lose`() {
        var shape = Self.bare
        var second = PathShape(floor: 30, jitterScale: 0)
        second.loss = 0.5
        shape.further = [second]
        let delays = Self.delays(shape, every: 0.1, count: 1_000)
        #expect(delays.compactMap { $0 }.allSatisfy { $0 == 130 })
        // Half of a thousand, four standard deviations of 16.
        #expect(abs(delays.filter { $0 == nil }.count - 500) < 64)
    }

    @Test func `emulated jitter has its mean, its least and its order`() {
        var shape = PathShape(floor: 0, jitterScale: 0)
        shape.emulation = .init(mean: 100, deviation: 20, least: 40)
        let delays = Self.delays(shape, every: 0.1, count: 4_000).compactMap { $0 }
        #expect(delays.allSatisfy { $0 >= 40 })
        let mean = delays.reduce(0, +) / 4_000
        // Five standard errors of 20/√4000; what the floor cuts off is a thousandth.
        #expect(abs(mean - 100) < 1.6, "\(mean)")
        // Packets 1 µs apart with 20 µs of jitter arrive in the order in which they left.
        let close = Self.delays(shape, every: 1e-6, count: 500).compactMap { $0 }
        #expect(zip(close, close.dropFirst()).allSatisfy { $1 + 1 >= $0 })
    }

    @Test func `a download is a saw-tooth in its part of the period`() {
        var shape = Self.bare
        shape.download = .init(
            period: 60, begin: 35, length: 20, tooth: 4, low: 8_000, high: 140_000)
        let delays = Self.delays(shape, every: 1, count: 120).map { $0 ?? 0 }
        for (second, delay) in zip(1..., delays) {
            let phase = Double(second % 60) - 35
            let inside = phase >= 0 && phase < 20
            #expect((delay > 8_000) == inside, "second \(second): \(delay) µs")
            #expect(delay <= 140_100)
        }
    }

    @Test func `a sleeping station wakes for the first packet only`() {
        var shape = Self.bare
        shape.powerSave = .init(idle: 0.1, wait: 102_400)
        #expect(Self.delays(shape, every: 0.05, count: 50).dropFirst().allSatisfy { $0 == 100 })
        let slow = Self.delays(shape, every: 0.2, count: 400).compactMap { $0 }
        let mean = slow.reduce(0, +) / Double(slow.count)
        // Uniform to 102.4 ms: five standard errors of 29.6/√400 ms.
        #expect(abs(mean - 51_300) < 7_400, "\(mean)")
    }

    @Test func `losses come in bursts, and an outage loses all`() {
        var shape = Self.bare
        shape.lossBursts = .init(begin: 0.01, end: 0.1, loss: 1)
        let lost = Self.delays(shape, every: 0.01, count: 20_000).map { $0 == nil }
        let share = Double(lost.filter { $0 }.count) / 20_000
        // Stationary 0.01/0.11 = 0.091; bursts of ten make 180 of them: five of √180.
        #expect(abs(share - 0.091) < 0.091 * 5 / 13.4, "\(share)")
        let repeats = zip(lost, lost.dropFirst()).filter { $0 && $1 }.count
        #expect(Double(repeats) > 0.8 * 20_000 * share, "a loss is followed by another")

        shape = Self.bare
        shape.outages = [3..<5]
        let delays = Self.delays(shape, every: 0.5, count: 20)
        for (index, delay) in delays.enumerated() {
            let time = 1 + Double(index) * 0.5
            #expect((delay == nil) == (time >= 3 && time < 5), "at \(time) s")
        }
    }

    @Test func `a thermal step is an exponential, a frequency step is one`() {
        let shape = OscillatorShape(
            constant: 10, thermalSteps: [.init(at: 100, partsPerMillion: 3, time: 40)],
            frequencySteps: [.init(at: 200, partsPerMillion: 5)])
        var crystal = HostCrystal(epoch: 0, shape: shape, random: SplitMix64(seed: 1))
        func rate(at seconds: Double) -> Double {
            let a = TrueInstant(nanoseconds: Int64(seconds * 1e9))
            let b = a + .seconds(1)
            return Double((crystal.reading(at: b) - crystal.reading(at: a)).count - 1_000_000_000)
                / 1e3
        }
        // Of a nanosecond a second, which is 0.001 ppm; the mean over a second is that of its
        // middle.
        #expect(abs(rate(at: 50) - 10) < 0.003)
        #expect(abs(rate(at: 140) - (10 + 3 * (1 - exp(-40.5 / 40)))) < 0.003)
        #expect(abs(rate(at: 500) - 18) < 0.003)
    }

    @Test(arguments: StampShape.allCases)
    func `stamps only lengthen a delay`(stamps: StampShape) {
        var random = SplitMix64(seed: 4)
        var sum = 0.0
        for _ in 0..<2_000 {
            let late = stamps.receiveLateness(&random)
            #expect(late >= 0)
            #expect(stamps.sendEarliness(&random) >= 0)
            sum += late
        }
        // Means of the models: 6 + 3 + 0.05 µs, and 16.8 + 10.5 + 9 µs more for a program.
        let means: [StampShape: Double] = [
            .ideal: 0, .virtual: 0.7e-6, .kernel: 9.05e-6, .program: 45.35e-6,
        ]
        let mean = means[stamps] ?? 0
        #expect(abs(sum / 2_000 - mean) < 0.25 * mean + 1e-12, "\(sum / 2_000)")
    }

    @Test func `every seed has its own world, and the same one each time`() throws {
        let path = try #require(ClockPath.named("bloat"))
        func trace(_ seed: UInt64) -> [Exchange] {
            ExchangeTrace(ClockParts(path, seed: seed), seconds: 5).exchanges
        }
        #expect(trace(1).map(\.sample) == trace(1).map(\.sample))
        #expect(trace(1).map(\.sample) != trace(2).map(\.sample))
        #expect(trace(1).count > 60)
    }
}
