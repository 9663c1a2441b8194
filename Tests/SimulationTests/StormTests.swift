import Foundation
import Testing
import TuttiSimulation

/// Whole houses in storms of chance: processes that die, stand still, sleep, decode slowly and have no
/// room on their disk, datagrams that are changed, sent again and made up, and people who steer.
@Suite struct StormTests {
    /// `STORM_SEED=7` repeats one; `STORM_SEEDS=2000` goes through more.
    private static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let one = environment["STORM_SEED"].flatMap(UInt64.init) { return [one] }
        return Array(1...(environment["STORM_SEEDS"].flatMap(UInt64.init) ?? 16))
    }()

    @Test(arguments: seeds)
    func `after a storm all rooms play as if nothing had been`(seed: UInt64) throws {
        let report = try SimulationRun.run(scenario: "storm", seed: seed)
        let again: Comment = "STORM_SEED=\(seed) deploy/test --filter StormTests: \(report)"
        let rest = try #require(report.rest)
        #expect(rest.unrestMilliseconds == 0, again)
        // As of rooms on wifi that nothing befell.
        #expect(rest.skew.p99 < 150, again)
        #expect(rest.droppedDatagrams > 0, again)
        // Nothing befell the last one, whoever leads: its card never ran dry, and nothing it played
        // jumped.
        let spared = try #require(report.rooms.last)
        #expect(spared.restarts == 0 && spared.starvedFrames == 0 && spared.steps == 0, again)
        #expect(spared.lineAlarms == 0, again)
    }
}
