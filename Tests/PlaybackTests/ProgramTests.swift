import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// A chain of lines is continuous where it is meant to be and forgets what was pending.
struct ProgramTests {
    private func instant(_ seconds: Double) -> GroupInstant {
        GroupInstant(nanoseconds: Nanoseconds(seconds: seconds).count)
    }

    private func entry(
        _ frame: Double, at seconds: Double, rate: Double = 1, feed: Int? = nil
    ) -> Program.Entry {
        Program.Entry(
            item: ItemID(number: 1),
            line: Line(itemFrame: frame, instant: instant(seconds), rate: rate),
            feed: feed.map { FeedID(number: $0) })
    }

    @Test func `a program stands until its first line and follows each from its instant`() {
        var program = Program(stillAt: 100)
        program.append(entry(100, at: 10))
        program.append(entry(2_100, at: 12, rate: 0))
        #expect(program.frame(at: instant(-1e6), sampleRate: 1_000) == 100)
        #expect(program.frame(at: instant(10), sampleRate: 1_000) == 100)
        #expect(program.frame(at: instant(11.5), sampleRate: 1_000) == 1_600)
        #expect(program.frame(at: instant(12), sampleRate: 1_000) == 2_100)
        #expect(program.frame(at: instant(99), sampleRate: 1_000) == 2_100)
    }

    @Test func `settling forgets what was to come, tells it, and keeps what is`() {
        var program = Program(stillAt: 0)
        program.append(entry(0, at: 1, rate: 2, feed: 1))
        program.append(entry(5, at: 3, rate: 0, feed: 1))
        program.append(entry(9, at: 4, feed: 2))
        let dropped = program.settle(at: instant(2))
        #expect(dropped.map(\.feed?.number) == [1, 2])
        #expect(program.entries.count == 1)
        #expect(program.frame(at: instant(5), sampleRate: 100) == 800)
        #expect(program.settle(at: instant(2)) == [])
    }

    @Test func `the first entry is in force before its instant and never pending`() {
        let program = Program(continuing: entry(50, at: 10))
        #expect(program.pending(after: instant(0)) == [])
        #expect(program.frame(at: instant(9), sampleRate: 10) == 40)
    }

    @Test func `an entry replaces those at its instant and later`() {
        var program = Program(stillAt: 0)
        program.append(entry(0, at: 5))
        program.append(entry(7, at: 4))
        #expect(program.entries.map(\.line.itemFrame) == [0, 7])
    }

    /// Cues and ends are where item time comes by playing.
    @Test func `a place has an instant where item time comes by it`() {
        var program = Program(stillAt: 0)
        program.append(entry(0, at: 10))
        program.append(entry(2_000, at: 12, rate: 2))
        program.append(entry(6_000, at: 14, rate: 0))
        func when(_ frame: Double, after now: Double) -> Double? {
            program.instant(of: frame, after: instant(now), sampleRate: 1_000)
                .map { ($0 - instant(0)).seconds }
        }
        #expect(when(500, after: 0) == 10.5)
        #expect(when(500, after: 10.5) == nil, "it is there already")
        #expect(when(2_000, after: 11) == 12)
        #expect(when(4_000, after: 11) == 13)
        #expect(when(6_000, after: 11) == 14)
        #expect(when(6_001, after: 11) == nil)
        // Over a jump nothing comes by playing.
        program.append(entry(1_000, at: 11, feed: 3))
        #expect(when(1_000, after: 10.5) == 11)
        #expect(when(900, after: 11.5) == nil)
    }
}
