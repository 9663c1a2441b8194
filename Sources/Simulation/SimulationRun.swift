import TuttiPlayout

/// Why a simulation cannot be run.
public struct SimulationError: Error, Equatable, CustomStringConvertible {
    /// Kinds of failure, for programs.
    public enum Code: String, Sendable {
        case unknownScenario
        case unknownPath
    }
    /// What kind of failure it is.
    public var code: Code
    public var description: String
}

/// Runs scenarios in a deterministic world: the same scenario and seed give the same trace in every
/// process.
public enum SimulationRun {
    /// What can be run.
    public static var scenarios: [(name: String, summary: String)] {
        Scenario.all.map { ($0.name, $0.summary) }
    }

    /// Runs a scenario to its end; as fast as it goes.
    ///
    /// - Parameters:
    ///   - scenario: a name out of ``scenarios``.
    ///   - seed: what the world is drawn from.
    ///   - seconds: how long, instead of the scenario's own length.
    ///   - rendersAudio: whether the sound is computed too, and held against the positions; some
    ///     times slower.
    ///   - keepsHistory: whether the report tells how it went over time.
    /// - Throws: ``SimulationError`` with the names there are.
    public static func run(
        scenario: String, seed: UInt64, seconds: Double? = nil, rendersAudio: Bool = false,
        keepsHistory: Bool = false
    ) throws(SimulationError) -> SimulationReport {
        guard var found = Scenario.all.first(where: { $0.name == scenario }) else {
            let names = Scenario.all.map(\.name).joined(separator: ", ")
            throw SimulationError(
                code: .unknownScenario,
                description: "there is no scenario \"\(scenario)\"; there are \(names)")
        }
        if let seconds { found.seconds = seconds }
        return run(
            found, seed: seed, rendersAudio: rendersAudio, keepsHistory: keepsHistory)
    }

    static func run(
        _ scenario: Scenario, seed: UInt64, rendersAudio: Bool = false, keepsHistory: Bool = false
    ) -> SimulationReport {
        let world = World(
            scenario, seed: seed, fidelity: rendersAudio ? .audio : .positionsOnly)
        if keepsHistory {
            world.meter.history = SimulationHistory(rooms: scenario.rooms.map(\.name))
        }
        world.run()
        return SimulationReport(world)
    }
}
