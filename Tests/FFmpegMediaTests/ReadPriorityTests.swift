import Testing

@testable import TuttiFFmpegMedia

/// Time is an argument: nothing here waits.
struct ReadPriorityTests {
    private let start = ContinuousClock.now
    /// A thousand bytes a second played: at least 250 kB a second young, a megabyte later.
    private let pace = FetchPace(byteCount: 60_000, seconds: 60)

    /// When the fetch may go on after `start`, looked at each millisecond; `nil`: not in two seconds.
    private func wait(_ turns: inout ReadPriority, from instant: ContinuousClock.Instant) -> Int? {
        (0...2_000).first { turns.mayFetch(at: instant + .milliseconds($0)) }
    }

    @Test func `bytes that nobody waits for come at the pace, which grows`() {
        var turns = ReadPriority(pace)
        let first = wait(&turns, from: start)
        #expect(first == 0, "the first are not waited for")
        turns.fetched(50_000, isWhole: false, at: start)
        let young = wait(&turns, from: start)
        #expect(young == 200, "50 000 bytes at 250 000 a second")
        let later = start + FetchPace.youngSpan
        turns.fetched(50_000, isWhole: false, at: later)
        let caughtUp = wait(&turns, from: later)
        #expect(caughtUp == 0, "it was held up and may catch up by a quarter of a second")
        for _ in 0..<5 { turns.fetched(50_000, isWhole: false, at: later) }
        let grown = wait(&turns, from: later)
        #expect(grown == 50, "300 000 bytes at a million, less 250 ms")
    }

    @Test func `a reader that waits hurries it, and what it waited for is not owed`() {
        var turns = ReadPriority(pace)
        turns.fetched(500_000, isWhole: false, at: start)
        turns.waiting = 1
        let hurried = wait(&turns, from: start)
        #expect(hurried == 0)
        for _ in 0..<10 { turns.fetched(500_000, isWhole: false, at: start) }
        turns.waiting = 0
        let owed = wait(&turns, from: start)
        #expect(owed == 0)
    }

    @Test func `after the last byte nothing is waited for`() {
        var turns = ReadPriority(pace)
        turns.fetched(5_000_000, isWhole: true, at: start)
        let end = wait(&turns, from: start)
        #expect(end == 0)
    }

    @Test func `a reader that asks has the path, for a second at most`() {
        var turns = ReadPriority(pace)
        turns.asks()
        turns.hasAsked(at: start)
        turns.fetched(250, isWhole: false, at: start)
        let asked = wait(&turns, from: start)
        #expect(asked == 100)
        // However long its answer takes.
        turns.asks()
        turns.fetched(250, isWhole: false, at: start)
        let busy = wait(&turns, from: start)
        #expect(busy == 1_000)
    }
}
