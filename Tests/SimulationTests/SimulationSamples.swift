import TuttiGroupControl

@testable import TuttiSimulation

// What the documentation shows; `DocumentationTests` sees to it that it is the same text.

func report() throws {
    let report = try SimulationRun.run(scenario: "wifi", seed: 7, seconds: 30)
    print(report)  // a table
    print(report.skewSettled.p99)  // µs
    print(report.slewSettled.max)  // ppm: faster or slower than the group
}

func threeRooms(_ network: NetworkProfile) -> [RoomPlan] {
    [80, -120, 20].enumerated().map { number, card in
        RoomPlan(name: "room \(number)", card: card, network: network)
    }
}

func scenarios() -> [Scenario] {
    [
        Scenario(
            name: "cellar-door", summary: "a room loses power in a pause and comes back",
            rooms: threeRooms(.wired),
            script: [
                .at(5, .pause), .at(6, .powerOff(room: 2)),
                .at(8, .start(room: 2)), .at(9, .play),
            ],
            seconds: 15)
    ]
}
