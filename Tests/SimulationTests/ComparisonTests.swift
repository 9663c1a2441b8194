import Testing
@testable import TuttiSimulation

import func Glibc.exp
import func Glibc.log

/// Ours beside the filters of other systems, on the same packets.
@Suite struct ComparisonTests {
    /// One run of 300 s of each path tells little of that path, but all of them together do. With
    /// `TUTTI_SEEDS=48` each path must be won or tied, as `tutti simulate clocks` wants it.
    @Test func `over all paths and unseen ones ours is better than the best of the others`()
        async throws
    {
        let seeds = ClockDraw.factor
        var ratios: [(path: String, ratio: Double)] = []
        for isHeldOut in [false, true] {
            let comparison = try ClockComparison(
                seeds: seeds, heldOut: isHeldOut, joins: false, events: false)
            let outcomes = await withTaskGroup(of: ClockComparison.Outcome.self) { group in
                for job in comparison.jobs { group.addTask { job.perform() } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let report = comparison.report(of: outcomes)
            if seeds >= ClockComparison.usualSeeds { #expect(report.lost.isEmpty) }
            for column in report.columns {
                func p99(_ filter: String) -> Double {
                    column.figures.first { $0.filter == filter }?.p99 ?? .infinity
                }
                ratios.append((column.path, p99(ClockComparison.ours) / p99(column.best)))
            }
        }
        let paths = ClockComparison.paths
        #expect(ratios.count == paths.count + paths.count { !$0.isHeldOut })
        // Measured with one, two and three seeds: 0.77, 0.81, 0.78, and 1.63 for the worst of the
        // single paths. The best of the others is chosen after the fact, path by path, and its luck
        // is against us.
        let mean = exp(ratios.reduce(0) { $0 + log($1.ratio) } / Double(ratios.count))
        #expect(mean < 0.9, "\(mean)")
        #expect(ratios.allSatisfy { $0.ratio < 2 }, "\(ratios)")
    }

    @Test func `no path's joins are another's`() throws {
        // All those that are wifi with something more.
        let comparison = try ClockComparison(
            paths: ["wifi", "wifi2", "sleepy", "bloat"], seeds: 1, events: false)
        var seen: [[String: [Double]]] = []
        for job in comparison.jobs where job.kind == .join && job.seed == 1 {
            let figures = job.perform().figures
            #expect(!seen.contains(figures), "\(job.path.name)")
            seen.append(figures)
        }
        #expect(seen.count == 3)
    }
}
