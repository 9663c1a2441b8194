import Foundation
import Testing
@testable import TuttiSimulation

/// What the estimator makes of exchanges that are kept in files.
///
/// Made, after a change that makes the clock better or a model different, by
/// `tutti simulate clocks --golden Tests/SimulationTests/GoldenTraces`.
@Suite struct GoldenTraceTests {
    private static func text(_ file: String) throws -> String {
        let folder = try #require(
            Bundle.module.url(forResource: "GoldenTraces", withExtension: nil))
        return try String(contentsOf: folder.appending(path: file), encoding: .utf8)
    }

    private static let names = GoldenTraces.make().map(\.name)

    private static func expected(_ name: String) throws -> GoldenOutcome {
        let lines = try text(GoldenTraces.expectations).split(separator: "\n")
        #expect(lines.first.map(String.init) == GoldenOutcome.header)
        let outcomes = lines.dropFirst().compactMap { GoldenOutcome(line: $0) }
        return try #require(outcomes.first { $0.trace == name }, "\(name) is not in the file")
    }

    @Test(arguments: names)
    func `an estimator is not worse than it was on a kept trace`(name: String) throws {
        let trace = try #require(
            GoldenTrace(name: name, text: Self.text(name + ".csv")), "\(name): no trace")
        let expected = try Self.expected(name)
        let outcome = GoldenOutcome(trace)
        // What the comparison with others calls a tie: a tenth, or half a microsecond.
        func isNoWorse(_ value: Double, than old: Double) -> Bool {
            value <= max(old * 1.1, old + 0.5)
        }
        #expect(isNoWorse(outcome.p50, than: expected.p50), "\(outcome.line)")
        #expect(isNoWorse(outcome.p99, than: expected.p99), "\(outcome.line)")
        #expect(isNoWorse(outcome.boundP50, than: expected.boundP50), "\(outcome.line)")
        #expect(outcome.boundMisses <= expected.boundMisses, "\(outcome.line)")
        #expect(outcome.restarts == expected.restarts, "\(outcome.line)")
        // A solve more or less, at four a second.
        #expect(outcome.locked <= expected.locked + 0.25, "\(outcome.line)")
        // The skew is known to some tenths of a ppm after a minute; 2 ppm is yesterday's.
        #expect(abs(outcome.skew - expected.skew) < 1, "\(outcome.line)")
    }

    @Test func `a trace survives its file`() throws {
        let path = try #require(ClockPath.named("wifi"))
        let trace = GoldenTrace(name: "wifi", ClockParts(path, seed: 3), seconds: 4)
        #expect(trace.rows.count > 40)
        #expect(GoldenTrace(name: "wifi", text: trace.text) == trace)
        #expect(GoldenTrace(name: "wifi", text: "t1,forward\n1,2\n") == nil)
    }
}
