import TuttiSimulation

extension Benchmark {
    /// The simulation, by how much of a house's time passes in a minute of a core.
    static var simulationBenchmarks: [Benchmark] {
        ["join", "wifi"].map { scenario in
            let rooms = 3.0
            let seconds = 30.0
            return Benchmark(
                name: "simulation/\(scenario)",
                operation: "\(Int(seconds)) s of \(Int(rooms)) rooms, positions only",
                unitsPerOperation: rooms * seconds, unit: "room-second",
                rate: Rate(
                    unit: "room-hours/min",
                    perOperationPerSecond: rooms * seconds / 3_600 * 60)
            ) {
                var seed: UInt64 = 0
                return { count in
                    var hash: UInt64 = 0
                    for _ in 0..<count {
                        seed += 1
                        let report = try? SimulationRun.run(
                            scenario: scenario, seed: seed % 16, seconds: seconds)
                        precondition(report?.rooms.count == Int(rooms), "no \(scenario) of 3 rooms")
                        hash &+= report?.traceHash ?? 0
                    }
                    return hash
                }
            }
        }
    }
}
