import ArgumentParser
import TuttiGroupControl
import TuttiSimulation

/// `tutti simulate`: a whole group, or only its clocks or cards, in one process and in no time.
struct Simulate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a scenario, or compare clocks or cards, in the deterministic simulation.",
        discussion: """
            The same decisions that run in a room, in a world of drifting clocks, a lossy network \
            and virtual cards. The same scenario and seed give the same trace, whatever the \
            machine: compare the trace hash.

            Scenarios:
            \(SimulationRun.scenarios.map { "  \($0.name): \($0.summary)" }.joined(separator: "\n"))

            Examples:
              tutti simulate \(SimulationRun.scenarios.first?.name ?? "SCENARIO") --seed 7
              tutti simulate list
              tutti simulate succession --plot succession.svg
              tutti simulate clocks --seeds 3 --paths wired,wifi
              tutti simulate cards --seeds 2 --seconds 60
            """,
        subcommands: [
            SimulateScenario.self, SimulateList.self, SimulateClocks.self, SimulateCards.self,
        ],
        defaultSubcommand: SimulateScenario.self)
}

/// `tutti simulate SCENARIO`.
struct SimulateScenario: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scenario", abstract: "Run a scenario; the word may be left out.")

    @Argument(help: "Name of the scenario; a wrong one lists them.")
    var scenario: String

    @Option(
        parsing: .unconditional, help: "What the world is drawn from; any whole number from 0 on.")
    var seed: UInt64 = 1

    @Option(
        help: ArgumentHelp(
            "Draw errors, clocks, skew and who leads over time into this SVG file.",
            valueName: "path"),
        completion: .file(extensions: ["svg"]))
    var plot: String?

    func run() throws {
        let report: SimulationReport
        do {
            report = try SimulationRun.run(
                scenario: scenario, seed: seed, keepsHistory: plot != nil)
        } catch {
            let names = SimulationRun.scenarios.map(\.name)
            throw CommandError(
                "simulate: \(error)" + Suggestion.question(for: scenario, among: names))
        }
        Terminal.output.write("\(report)\ntrace \(String(report.traceHash, radix: 16))\n")
        guard let plot, let history = report.history else { return }
        let picture = SimulationPlot(report: report, history: history)
        try writeFile(Array(picture.text.utf8), to: plot)
    }
}

/// `tutti simulate list`.
struct SimulateList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the scenarios.")

    func run() {
        let width = SimulationRun.scenarios.map(\.name.count).max() ?? 0
        for (name, summary) in SimulationRun.scenarios {
            Terminal.output.say(
                name + String(repeating: " ", count: width - name.count) + "  " + summary)
        }
    }
}

/// `tutti version`.
struct Version: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Print the version.")

    func run() { Terminal.output.write("tutti \(Tutti.version)\n") }
}
