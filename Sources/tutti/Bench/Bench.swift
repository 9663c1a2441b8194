import ArgumentParser
import Foundation

/// `tutti bench`: what the hot parts cost on this machine.
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Time the hot parts: clock, messages, resampler, rendering, simulation.",
        discussion: """
            Each benchmark runs in short runs for a while; the best run says what the code costs, \
            the one in the middle what it costs here and now. Time is processor time of one \
            thread. "× ref" is the figure in steps of a fixed loop of arithmetic that is timed \
            beside each run: it changes little from machine to machine and tells a change of the \
            code. SPREAD is the width of the middle half of these ratios, in percent of their \
            median: smaller differences tell nothing.

            In JSON all figures are per "unit"; an operation has unitsPerOperation of them, and a \
            run operationsPerRun operations. Instead of the spread there are both quartiles.

            NAME chooses all benchmarks that begin with it.

            Examples:
              tutti bench
              tutti bench resampler render/1
              tutti bench --json --seconds 3 > bench.json
            """)

    @Argument(help: "Only those whose names begin so; default: all.")
    var name: [String] = []

    @Flag(help: "Print JSON.")
    var json = false

    @Option(parsing: .unconditional, help: "Seconds of processor time for each benchmark.")
    var seconds = 1.0

    func validate() throws {
        guard (0.01...600).contains(seconds) else {
            throw ValidationError("\"--seconds \(seconds)\" is not from 0.01 to 600")
        }
    }

    func run() throws {
        let benchmarks = try Benchmark.chosen(by: name)
        var runner = BenchRunner(seconds: seconds)
        var measurements: [Measurement] = []
        for benchmark in benchmarks {
            if Terminal.error.isInteractive { Terminal.error.write("\(benchmark.name) …\r") }
            measurements.append(try runner.measure(benchmark))
            if Terminal.error.isInteractive { Terminal.error.write("\u{1B}[K") }
        }
        let report = BenchReport(
            version: Tutti.version, secondsEach: seconds,
            referenceNanoseconds: runner.bestReferenceNanoseconds, benchmarks: measurements)
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            let text = String(decoding: try encoder.encode(report), as: UTF8.self)
            Terminal.output.write(text + "\n")
        } else {
            if !BenchReport.isOptimised {
                Terminal.error.write("tutti: a debug build; build with -c release to measure\n")
            }
            let terminal = Terminal.output
            terminal.write(
                report.text(width: terminal.isInteractive ? max(terminal.width, 60) : 200))
        }
    }
}
