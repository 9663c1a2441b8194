import Playout
import Testing
import Timing

@testable import Playback

/// A chain of lines is continuous where it is meant to be and forgets what was pending.
struct ScheduleTests {
    func instant(_ seconds: Double) -> GroupInstant {
        GroupInstant(nanoseconds: Nanoseconds(seconds: seconds).count)
    }

    @Test func `a schedule stands until its first line and follows each from its instant`() {
        var schedule = Schedule(stillAt: 100)
        schedule.append(Line(itemFrame: 100, instant: instant(10), rate: 1))
        schedule.append(Line(itemFrame: 2_100, instant: instant(12), rate: 0))
        #expect(schedule.frame(at: instant(-1e6), sampleRate: 1_000) == 100)
        #expect(schedule.frame(at: instant(10), sampleRate: 1_000) == 100)
        #expect(schedule.frame(at: instant(11.5), sampleRate: 1_000) == 1_600)
        #expect(schedule.frame(at: instant(12), sampleRate: 1_000) == 2_100)
        #expect(schedule.frame(at: instant(99), sampleRate: 1_000) == 2_100)
    }

    @Test func `settling forgets what was to come and keeps what is`() {
        var schedule = Schedule(stillAt: 0)
        schedule.append(Line(itemFrame: 0, instant: instant(1), rate: 2))
        schedule.append(Line(itemFrame: 5, instant: instant(3), rate: 0))
        schedule.settle(at: instant(2))
        #expect(schedule.lines.count == 1)
        #expect(schedule.frame(at: instant(5), sampleRate: 100) == 800)
    }

    @Test func `a line replaces those at its instant and later`() {
        var schedule = Schedule(stillAt: 0)
        schedule.append(Line(itemFrame: 0, instant: instant(5), rate: 1))
        schedule.append(Line(itemFrame: 7, instant: instant(4), rate: 1))
        #expect(schedule.lines.map(\.itemFrame) == [0, 7])
    }
}
