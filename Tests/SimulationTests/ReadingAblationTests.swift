import Testing
import TuttiClockSync

@testable import TuttiSimulation

@Suite struct ReadingAblationTests {
    /// A reading that can be left out without a trace would be no reading.
    @Test(arguments: ReadingKind.allCases)
    func `what is withheld has no say, and the rest is as before`(kind: ReadingKind) throws {
        var differs = false
        for path in try ClockComparison.paths(
            ["wired", "wifi", "em-wifi", "em-wired", "two-hops"], heldOut: false)
        {
            func line(_ withheld: Set<ReadingKind>) -> [Double?] {
                var world = ClockWorld(ClockParts(path, seed: 3), withholding: withheld)
                return (1...40).map { step in
                    world.run(until: Double(step) / 2)
                    return world.error()
                }
            }
            #expect(line([]) == line([]), "the same seed is the same run")
            if line([]) != line([kind]) { differs = true }
        }
        #expect(differs)
    }

    @Test func `a report has every path, and ratios to the whole`() throws {
        let ablation = try ReadingAblation([.edges], paths: ["wired"], seeds: 1, heldOut: false)
        let outcomes = ablation.jobs.map {
            ReadingAblation.Outcome(
                job: $0, figures: $0.withheld == nil ? [2, 4] : [3, 8])
        }
        let report = ablation.report(of: outcomes)
        #expect(report.readings == ["edges"])
        #expect(report.rows.map(\.figure) == ["steady", "joining, 0.5 s", "joining, 2.0 s"])
        #expect(report.rows.map(\.all) == [2, 2, 4])
        #expect(report.rows.map(\.ratios) == [[1.5], [1.5], [2]])
    }
}
