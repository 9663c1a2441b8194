import Testing
import TuttiSimulation

@Suite struct DeterminismTests {
    @Test func `the same seed gives the same trace, another seed another`() throws {
        let first = try SimulationRun.run(scenario: "restart", seed: 7, seconds: 12)
        let second = try SimulationRun.run(scenario: "restart", seed: 7, seconds: 12)
        let other = try SimulationRun.run(scenario: "restart", seed: 8, seconds: 12)
        #expect(first == second)
        #expect(first.traceHash != other.traceHash)
    }

    /// Hash tables are seeded for each process: an order that depends on one shows here.
    @Test func `another process finds the same trace`() async throws {
        let here = try SimulationRun.run(scenario: "everything", seed: 3, seconds: 20)
        await #expect(processExitsWith: .success) { [hash = here.traceHash as UInt64] in
            let there = try SimulationRun.run(scenario: "everything", seed: 3, seconds: 20)
            precondition(there.traceHash == hash, "\(there.traceHash) is not \(hash)")
        }
    }

    @Test func `an unknown scenario is refused with the names there are`() {
        let error = #expect(throws: SimulationError.self) {
            try SimulationRun.run(scenario: "jion", seed: 1)
        }
        #expect(error?.code == .unknownScenario)
        for scenario in SimulationRun.scenarios {
            #expect(error?.description.contains(scenario.name) == true)
        }
    }
}
