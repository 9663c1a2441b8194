import Foundation
import Testing

@testable import tutti

@Suite struct BenchTests {
    @Test func `a name chooses all that begin with it, and one that chooses nothing is an error`()
        throws
    {
        #expect(try Benchmark.chosen(by: []).count == Benchmark.all.count)
        let wire = try Benchmark.chosen(by: ["wire/"]).map(\.name)
        #expect(wire.count == 6 && wire.allSatisfy { $0.hasPrefix("wire/") })
        #expect(throws: CommandError.self) { try Benchmark.chosen(by: ["wire/", "nothing"]) }
    }

    @Test func `names are unique`() {
        let names = Benchmark.all.map(\.name)
        #expect(Set(names).count == names.count)
    }

    /// Debug builds are slow: one of each kind, as short as it goes.
    @Test(arguments: [
        "wire/decode-reply", "resampler/48-48", "render/1-voices", "clock/solve-wired",
        "simulation/join",
    ])
    func `a benchmark does its work, and the same work each time`(name: String) throws {
        let benchmark = try #require(Benchmark.chosen(by: [name]).first)
        let first = try benchmark.prepare()(1)
        #expect(try benchmark.prepare()(1) == first)
        #expect(first != 0)
    }

    @Test func `the report holds best, median and the ratio to the reference`() throws {
        var runner = BenchRunner(seconds: 0.01)
        var calls = 0
        let steps = 1_000
        let measurement = try runner.measure(
            Benchmark(
                name: "reference", operation: "the reference itself",
                unitsPerOperation: Double(steps), unit: "step",
                rate: Benchmark.Rate(unit: "steps/s", perOperationPerSecond: Double(steps))
            ) {
                { count in
                    calls += 1
                    return (0..<count).reduce(0) { sum, _ in
                        sum &+ ReferenceLoop.run(steps: steps)
                    }
                }
            })
        #expect(measurement.runs >= BenchRunner.fewestRuns && calls > measurement.runs)
        #expect(measurement.bestNanoseconds > 0)
        #expect(measurement.bestNanoseconds <= measurement.medianNanoseconds)
        // Against itself, whatever the machine does meanwhile: half to double.
        #expect((0.5...2).contains(measurement.medianReferenceSteps))
        let rate = try #require(measurement.bestRate)
        #expect((rate * measurement.bestNanoseconds * 1e-9 - 1).magnitude < 1e-9)

        let report = BenchReport(
            version: "1", secondsEach: 0.01, referenceNanoseconds: 1.5, benchmarks: [measurement])
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(report))
        let fields = try #require(json as? [String: Any])
        #expect(fields["schema"] as? Int == 1)
        #expect(
            (fields["benchmarks"] as? [[String: Any]])?.first?["name"] as? String == "reference")
        #expect(report.text.contains("reference"))
    }

    @Test func `spans keep three digits and find their unit`() {
        let spans = [0.123, 1.5, 12.34, 123.4, 1_234, 12_345_678, 2e9].map(BenchReport.span)
        #expect(
            spans == [
                "0.12 ns", "1.50 ns", "12.3 ns", "123 ns", "1.23 µs", "12.3 ms", "2.00 s",
            ])
        #expect(BenchRunner.median([3, 1, 2]) == 2 && BenchRunner.median([4, 1, 2, 3]) == 2.5)
    }
}
