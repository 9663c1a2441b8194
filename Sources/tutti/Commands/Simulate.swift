import ArgumentParser
import Simulation

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
              tutti simulate clocks --seeds 3 --paths wired,wifi
              tutti simulate cards --seeds 2 --seconds 60
            """,
        subcommands: [SimulateScenario.self, SimulateClocks.self, SimulateCards.self],
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

    func run() throws {
        do {
            let report = try SimulationRun.run(scenario: scenario, seed: seed)
            Terminal.output.write("\(report)\ntrace \(String(report.traceHash, radix: 16))\n")
        } catch {
            throw CommandError("simulate: \(error)")
        }
    }
}

/// `tutti version`.
struct Version: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Print the version.")

    func run() { Terminal.output.write("tutti \(Tutti.version)\n") }
}
