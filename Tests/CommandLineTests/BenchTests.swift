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

        // The middle half is around the median, and is what the table shows of it.
        let (low, high) = (
            measurement.lowerQuartileReferenceSteps, measurement.upperQuartileReferenceSteps
        )
        #expect(low <= measurement.medianReferenceSteps && measurement.medianReferenceSteps <= high)
        #expect(measurement.unitsPerOperation == Double(steps))

        let report = BenchReport(
            version: "1", secondsEach: 0.01, referenceNanoseconds: 1.5, benchmarks: [measurement])
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(report))
        let fields = try #require(json as? [String: Any])
        #expect(fields["schema"] as? Int == 1)
        #expect(
            (fields["benchmarks"] as? [[String: Any]])?.first?["name"] as? String == "reference")
        #expect(report.text(width: 200).contains("reference"))
    }

    @Test func `a table of 80 columns still tells the spread`() throws {
        let measurement = Measurement(
            name: "simulation/some-scenario", operation: "30 s of 3 rooms", unit: "room-second",
            bestNanoseconds: 2.63e6, medianNanoseconds: 2.75e6, medianReferenceSteps: 1_600_000,
            lowerQuartileReferenceSteps: 1_580_000, upperQuartileReferenceSteps: 1_620_000,
            runs: 2_000, operationsPerRun: 1, unitsPerOperation: 90,
            rateUnit: "room-hours/min", bestRate: 6.33, checksum: "1")
        var report = BenchReport(
            version: "1", secondsEach: 1, referenceNanoseconds: 1.5, benchmarks: [measurement])
        report.processor = "A Processor"
        let lines = report.text(width: 80).split(separator: "\n").map(String.init)
        #expect(lines.prefix(2).allSatisfy { $0.columns <= 80 })
        #expect(lines[0].contains("SPREAD") && lines[1].contains("2.5 %"))
        #expect(lines[1].contains(measurement.name) && lines[1].contains("1600000"))
        #expect(lines.last?.contains("A Processor") == true)
        let wide = report.text(width: 200)
        #expect(wide.contains("room-hours/min") && wide.contains("2000"))
    }

    @Test func `quantiles lie on the line between values`() {
        // Of 0…100 each share is its own percentage, in whatever order they come.
        let values = (0...100).map { Double(($0 * 37) % 101) }
        for percent in 0...100 {
            let quantile = BenchRunner.quantile(Double(percent) / 100, of: values)
            #expect((quantile - Double(percent)).magnitude < 1e-9)
        }
        #expect(BenchRunner.quantile(0.75, of: [2, 4]) == 3.5)
        #expect(BenchRunner.quantile(0.25, of: [7]) == 7 && BenchRunner.quantile(0.5, of: []) == 0)
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
