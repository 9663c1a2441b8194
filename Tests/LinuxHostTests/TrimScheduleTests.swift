import Testing
import TuttiTiming

@testable import TuttiLinuxHost

@Suite struct TrimScheduleTests {
    private static let most = TrimSchedule.mostCredits
    private static let little = TrimSchedule.ceiling
    private static let much = TrimSchedule.ceiling + 1

    /// The looks at which memory is let go of, by what is held at each.
    private func trims(_ held: [Int]) -> [Int] {
        var schedule = TrimSchedule()
        return held.indices.filter { schedule.isTrimDue(holding: held[$0]) }
    }

    @Test func `the start is trimmed at once, and again four seconds later, and that is all`() {
        let looks = [Self.much] + [Int](repeating: Self.little, count: 10_000)
        #expect(trims(looks) == [0, TrimSchedule.eagerLooks])
    }

    @Test func `each step of an opening is let go of, and the end is looked for once`() {
        let steps = [Self.much, Self.little, Self.much, Self.little, Self.much]
        let looks = steps + [Int](repeating: Self.little, count: 10_000)
        #expect(trims(looks) == [0, 2, 4, 4 + TrimSchedule.eagerLooks])
    }

    /// A trim costs 3 ms, and what is needed comes back by page faults.
    @Test func `who needs more than the ceiling trims as seldom as credits come back in the end`() {
        let found = trims([Int](repeating: Self.much, count: 10_000))
        #expect(found.prefix(Self.most) == ArraySlice(0..<Self.most))
        // The eager looks after each trim, then as many as a credit takes.
        let distances = zip(found.dropFirst(Self.most), found.dropFirst(Self.most - 1)).map(-)
        #expect(distances.count > 10)
        #expect(
            distances.allSatisfy { $0 == TrimSchedule.eagerLooks + TrimSchedule.looksPerCredit })
    }

    @Test(arguments: [0, 3, 8])
    func `a credit comes back with so many calm looks`(credits: Int) {
        let burst = [Int](repeating: Self.much, count: Self.most)
        let calm = [Int](
            repeating: Self.little,
            count: TrimSchedule.eagerLooks + credits * TrimSchedule.looksPerCredit)
        let found = trims(burst + calm + burst)
        let begin = burst.count + calm.count
        #expect(found == Array(burst.indices) + Array(begin..<begin + credits))
    }

    /// A start that is slow, or holds little, is not over before.
    @Test func `the end of a start is looked for even where nothing was above the ceiling`() {
        let looks = [Int](repeating: Self.little, count: 10_000)
        #expect(trims(looks) == [TrimSchedule.eagerLooks - 1])
    }

    @Test func `looks are frequent while more is expected`() {
        var schedule = TrimSchedule()
        var pauses: [Nanoseconds] = []
        for look in 0...TrimSchedule.eagerLooks {
            pauses.append(schedule.pause)
            _ = schedule.isTrimDue(holding: look == 0 ? Self.much : Self.little)
        }
        #expect(pauses.allSatisfy { $0 == TrimSchedule.eagerPause })
        #expect(schedule.pause == TrimSchedule.calmPause)
    }
}
