import Testing

@testable import tutti

@Suite struct SkewMeterTests {
    /// What the issue asks of the analysis, seconds.
    static let tolerance = 0.1e-6

    static func skew(delay: Double, seed: UInt64 = 1) throws -> SkewMeter.Window {
        let content = Content(seed: seed)
        let a = Take.synthetic(
            "a", of: content, partsPerMillion: 80, delay: 0, length: 0.7, sounds: -1...2)
        let b = Take.synthetic(
            "b", of: content, partsPerMillion: -120, delay: delay, length: 0.7, sounds: -1...2,
            phase: 0.37)
        let grid = TimeGrid(start: 0, sampleRate: 48_000, count: 33_000)
        let meter = SkewMeter(.init(a, grid: grid), .init(b, grid: grid))
        return meter.window(from: 7_200, count: 14_400)
    }

    @Test(arguments: [0, 3.7e-6, -11.25e-6, 211.3e-6, -4.321e-3, 0.041])
    func `a known delay between cards of different crystals is found to a tenth of a microsecond`(
        delay: Double
    ) throws {
        guard case .matched(let found) = try Self.skew(delay: delay) else {
            Issue.record("the same content at \(delay) s was not recognised")
            return
        }
        #expect(abs(found - delay) < Self.tolerance)
    }

    @Test(arguments: [0, 1, 5, 18_607, 18_608])
    func `a window at the edge of the recordings says what one in the middle says`(
        start: Int
    ) throws {
        let content = Content(seed: 3)
        let grid = TimeGrid(start: 0, sampleRate: 48_000, count: 33_008)
        let a = Take.synthetic(
            "a", of: content, partsPerMillion: 0, delay: 0, length: 0.7, sounds: -1...2)
        for delay in [211.3e-6, -211.3e-6] {
            let b = Take.synthetic(
                "b", of: content, partsPerMillion: 0, delay: delay, length: 0.7, sounds: -1...2)
            let meter = SkewMeter(.init(a, grid: grid), .init(b, grid: grid))
            guard case .matched(let found) = meter.window(from: start, count: 14_400) else {
                Issue.record("not recognised at \(start)")
                continue
            }
            // What is missing beyond the edge is 10 of 14 400 samples.
            #expect(abs(found - delay) < 10 * Self.tolerance)
        }
    }

    @Test func `positive means that the second plays later, and swapping turns the sign`() throws {
        let content = Content(seed: 5)
        let grid = TimeGrid(start: 0, sampleRate: 48_000, count: 20_000)
        let early = SkewMeter.Signal(
            .synthetic("a", of: content, partsPerMillion: 0, delay: 0, length: 0.4, sounds: -1...2),
            grid: grid)
        let late = SkewMeter.Signal(
            .synthetic(
                "b", of: content, partsPerMillion: 0, delay: 50e-6, length: 0.4, sounds: -1...2),
            grid: grid)
        guard case .matched(let there) = SkewMeter(early, late).window(from: 4_800, count: 9_600),
            case .matched(let back) = SkewMeter(late, early).window(from: 4_800, count: 9_600)
        else {
            Issue.record("the same content was not recognised")
            return
        }
        #expect(abs(there - 50e-6) < Self.tolerance)
        #expect(abs(there + back) < 2 * Self.tolerance)
    }

    @Test func `other content is unmatched, and two silences are no content`() {
        let grid = TimeGrid(start: 0, sampleRate: 48_000, count: 20_000)
        func signal(_ seed: UInt64, sounds: ClosedRange<Double>) -> SkewMeter.Signal {
            SkewMeter.Signal(
                .synthetic(
                    "x", of: Content(seed: seed), partsPerMillion: 0, delay: 0, length: 0.4,
                    sounds: sounds), grid: grid)
        }
        let music = signal(1, sounds: 0...1)
        let other = signal(2, sounds: 0...1)
        let silence = signal(1, sounds: 5...6)
        #expect(SkewMeter(music, other).window(from: 4_800, count: 9_600) == .unmatched)
        #expect(SkewMeter(music, silence).window(from: 4_800, count: 9_600) == .unmatched)
        #expect(SkewMeter(silence, silence).window(from: 4_800, count: 9_600) == .silent)
        #expect(SkewMeter(music, music).window(from: 19_000, count: 9_600) == .unmatched)
    }
}
