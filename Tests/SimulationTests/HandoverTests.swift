import Testing
import TuttiGroupControl
import TuttiTiming

@testable import TuttiSimulation

/// The lead goes from one node to another while the rooms play.
@Suite struct HandoverTests {
    @Test(arguments: [1, 3] as [UInt64])
    func `nothing is heard when another room leads, and nobody is further off than before`(
        seed: UInt64
    ) throws {
        let report = try SimulationRun.run(scenario: "handover", seed: seed)
        // The same house, led by one.
        let steady = try SimulationRun.run(scenario: "join", seed: seed, seconds: 45)
        #expect(report.refusals == [])
        #expect(report.handovers.count == 2, "\(report)")
        for handover in report.handovers {
            // The clock goes on from the estimate: what that is off by is all that can be seen.
            #expect(handover.step.magnitude <= handover.bound, "\(report)")
            #expect(handover.step.magnitude < 10, "\(report)")
        }
        #expect(report.lines.count == 1, "\(report)")
        #expect(report.lines[0].begins == 3 && report.lines[0].joins == 0, "\(report)")
        for room in report.rooms {
            #expect(room.starvedFrames == 0, "\(report)")
            #expect(room.restarts == 0, "\(report)")
            #expect(room.steps == 0, "\(report)")
            #expect(room.absentMilliseconds == 0, "\(report)")
            #expect(room.lineAlarms == 0, "\(report)")
        }
        #expect(report.skewSettled.count > 2_000)
        #expect(report.skewSettled.p99 <= 2 * steady.skewSettled.p99, "\(report) \(steady)")
        // What the clocks lean and the servos add; and the group clock itself, by which all are
        // measured, goes by its step from one look to the next.
        let step = report.handovers.map(\.step.magnitude).max() ?? 0
        #expect(report.slewSettled.max <= 100 + step / World.grid.seconds, "\(report)")
    }

    @Test func `a pause by the next leader holds all rooms at one frame`() throws {
        var scenario = try #require(Scenario.all.first { $0.name == "handover" })
        scenario.script = [
            .at(10, .handOver(to: 2)), .at(12, .pause), .at(14, .play), .at(16, .seek(seconds: 80)),
        ]
        scenario.seconds = 20
        let report = SimulationRun.run(scenario, seed: 5)
        #expect(report.refusals == [])
        #expect(report.lines.count == 3, "\(report)")
        for line in report.lines { #expect(line.begins == 3 && line.joins == 0, "\(line)") }
    }
}
