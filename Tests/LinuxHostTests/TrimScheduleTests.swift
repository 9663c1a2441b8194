import Testing

@testable import LinuxHost

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
    @Test func `who needs more than the ceiling trims once in half a minute in the end`() {
        let looks = [Int](repeating: Self.much, count: 10_000)
        let found = trims(looks)
        #expect(found.prefix(Self.most) == ArraySlice(0..<Self.most))
        // The eager looks after each trim, the last of which trims too, then as many as a credit
        // takes.
        let late = found.drop { $0 < Self.most + TrimSchedule.eagerLooks }
        let cycle = TrimSchedule.eagerLooks + TrimSchedule.looksPerCredit
        #expect(late.count <= 2 * (10_000 / cycle + 1))
        #expect(late.count >= 10_000 / cycle)
    }

    @Test func `credits come back`() {
        let calm = [Int](
            repeating: Self.little, count: (Self.most + 2) * TrimSchedule.looksPerCredit)
        let burst = [Int](repeating: Self.much, count: Self.most)
        let found = trims(burst + calm + burst)
        #expect(
            found.suffix(Self.most)
                == ArraySlice(burst.count + calm.count..<burst.count * 2 + calm.count))
    }

    @Test func `looks are frequent while more is expected`() {
        var schedule = TrimSchedule()
        var pauses: [Duration] = []
        for look in 0...TrimSchedule.eagerLooks {
            pauses.append(schedule.pause)
            _ = schedule.isTrimDue(holding: look == 0 ? Self.much : Self.little)
        }
        #expect(pauses[0] == TrimSchedule.calmPause)
        #expect(pauses[1...].allSatisfy { $0 == TrimSchedule.eagerPause })
        #expect(schedule.pause == TrimSchedule.calmPause)
    }
}
