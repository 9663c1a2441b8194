import ArgumentParser
import Foundation
import TuttiClockSync
import TuttiSimulation

/// `tutti simulate clocks`: our clock beside those of other systems, on the same packets.
struct SimulateClocks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clocks",
        abstract: "Compare the clock with those of other systems on the same exchanges.",
        discussion: """
            Every filter gets the same packets at the same times. The others are written from \
            descriptions of what they do, with their published constants; they are models, not \
            the programs. Exit status 1 when on some path another one is better at 99 of a \
            hundred readings by more than \(tie): less is a tie. Joins, events and \
            pairs do not count. With all paths and seeds it takes one or two minutes of two \
            processors.

            Paths (ho-: not looked at while constants were chosen):
            \(ClockComparison.paths.map { "  \($0.name): \($0.summary)" }.joined(separator: "\n"))

            Examples:
              tutti simulate clocks --seeds 3 --paths wired,wifi
              tutti simulate clocks --held-out --json | jq .columns
              tutti simulate clocks --pairs --seeds 5
              tutti simulate clocks --without each --paths wired,wifi
            """)

    private static let readings = ReadingKind.allCases.map(\.rawValue).joined(separator: ", ")

    private static let tie =
        "\((100 * ClockReport.tieShare).text(0)) % and \(ClockReport.tieMicroseconds.text(1)) µs"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Runs of 300 s of every path. (default: \(ClockComparison.usualSeeds); 10 of pairs)",
            discussion: "Of joins and events \(ClockComparison.eventSeeds) at most."))
    var seeds: Int?

    @Option(help: "Names of paths, with commas; all without this.")
    var paths = ""

    @Flag(help: "Seeds and shapes that no constant was chosen on.")
    var heldOut = false

    @Flag(help: "Only steady runs: neither joins nor events.")
    var steady = false

    @Flag(
        help: ArgumentHelp(
            "Compare two rooms of one leader, with reference broadcasts and without, instead.",
            discussion: "Then --paths are houses: \(PairComparison.names.joined(separator: ", ")).",
            visibility: .default))
    var pairs = false

    @Option(
        help: ArgumentHelp(
            "Show what readings of the clock earn: run without each of these, or \"each\".",
            discussion: "Readings: \(Self.readings).",
            valueName: "readings"),
        completion: .list(["each"] + ReadingKind.allCases.map(\.rawValue)))
    var without: String?

    @Flag(help: "One JSON object instead of tables.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Write the golden traces of the tests, and what the clock makes of them, instead.",
            valueName: "folder"))
    var golden: String?

    func validate() throws {
        if let seeds, !(1...10_000).contains(seeds) {
            throw ValidationError("--seeds \(seeds): 1 to 10000")
        }
    }

    func run() async throws {
        if let golden { return try write(to: URL(fileURLWithPath: golden, isDirectory: true)) }
        if pairs { return try await comparePairs() }
        if let without { return try await compareReadings(without) }
        let comparison: ClockComparison
        do {
            let names = paths.split(separator: ",").map(String.init)
            comparison = try ClockComparison(
                paths: names, seeds: seeds ?? ClockComparison.usualSeeds, heldOut: heldOut,
                joins: !steady, events: !steady)
        } catch {
            throw CommandError("simulate clocks: \(error)")
        }
        let outcomes = await inParallel(comparison.jobs) { $0.perform() }
        let report = comparison.report(of: outcomes)
        Terminal.output.write(json ? jsonText(report, pretty: false) + "\n" : "\(report)\n")
        if !report.lost.isEmpty { throw ExitCode.failure }
    }

    private func compareReadings(_ words: String) async throws {
        let ablation: ReadingAblation
        do {
            let words = words == "each" ? [] : words.split(separator: ",").map(String.init)
            let kinds = try words.map { word throws(ValidationError) -> ReadingKind in
                guard let kind = ReadingKind(rawValue: word) else {
                    throw ValidationError(
                        "there is no reading \"\(word)\"; there are \(Self.readings), and each")
                }
                return kind
            }
            let names = paths.split(separator: ",").map(String.init)
            ablation = try ReadingAblation(
                kinds, paths: names, seeds: seeds ?? Self.usualAblationSeeds, heldOut: heldOut)
        } catch let error as SimulationError {
            throw CommandError("simulate clocks: \(error)")
        }
        let outcomes = await inParallel(ablation.jobs) { $0.perform() }
        let report = ablation.report(of: outcomes)
        Terminal.output.write(json ? jsonText(report, pretty: false) + "\n" : "\(report)\n")
    }

    /// Enough for a tenth of difference; each costs a steady run for every path and reading.
    private static let usualAblationSeeds = 8

    private func comparePairs() async throws {
        let comparison: PairComparison
        do {
            let names = paths.split(separator: ",").map(String.init)
            comparison = try PairComparison(names: names, seeds: seeds ?? 10, heldOut: heldOut)
        } catch {
            throw CommandError("simulate clocks: \(error)")
        }
        let outcomes = await inParallel(comparison.jobs) { $0.perform() }
        let report = comparison.report(of: outcomes)
        Terminal.output.write(json ? jsonText(report, pretty: false) + "\n" : "\(report)\n")
    }

    /// As many jobs at once as there are processors; says how many are done to who waits.
    private func inParallel<Job: Sendable, Outcome: Sendable>(
        _ jobs: [Job], _ perform: @escaping @Sendable (Job) -> Outcome
    ) async -> [Outcome] {
        await withTaskGroup(of: Outcome.self) { group in
            var waiting = jobs[...]
            var outcomes: [Outcome] = []
            for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount) {
                if let job = waiting.popFirst() { group.addTask { perform(job) } }
            }
            for await outcome in group {
                outcomes.append(outcome)
                if Terminal.error.isInteractive {
                    Terminal.error.write("\r\(outcomes.count) of \(jobs.count) runs")
                }
                if let job = waiting.popFirst() { group.addTask { perform(job) } }
            }
            // The report begins where the count of runs stands.
            if Terminal.error.isInteractive { Terminal.error.write("\r\u{1B}[K") }
            return outcomes
        }
    }

    private func write(to folder: URL) throws {
        do {
            for file in GoldenTraces.files() {
                try Data(file.text.utf8).write(to: folder.appending(path: file.name))
            }
        } catch {
            throw CommandError("simulate clocks: \(folder.path): \(error.localizedDescription)")
        }
    }
}
