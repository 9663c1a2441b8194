import Testing

@testable import LinuxHost

@Suite struct TrimScheduleTests {
    /// What is held at each look, MB; where it is trimmed, to `base`.
    private func trims(_ held: [Int], base: Int = 20) -> [Int] {
        var schedule = TrimSchedule()
        return held.indices.filter { look in
            guard schedule.isTrimDue(holding: held[look] * 1_000_000) else { return false }
            schedule.trimmed(holding: base * 1_000_000)
            return true
        }
    }

    @Test func `the start is trimmed at once, and again four seconds later, and that is all`() {
        let looks = [60] + [Int](repeating: 24, count: 100)
        #expect(trims(looks) == [0, TrimSchedule.eagerLooks])
    }

    @Test func `what grows by the limit is let go of, and by less is kept`() {
        let calm = [60] + [Int](repeating: 20, count: 50)
        #expect(trims(calm + [25, 25, 25]) == [0, 40])
        #expect(trims(calm + [25, 26]) == [0, 40, 52])
    }

    @Test func `each step of an opening is let go of, and the end is looked for once`() {
        let looks = [60, 21, 27, 22, 30] + [Int](repeating: 23, count: 60)
        #expect(trims(looks) == [0, 2, 4, 4 + TrimSchedule.eagerLooks])
    }

    @Test func `looks are frequent while more is expected`() {
        var schedule = TrimSchedule()
        var pauses: [Duration] = []
        for look in 0...TrimSchedule.eagerLooks {
            pauses.append(schedule.pause)
            let held = look == 0 ? 60_000_000 : 20_000_000
            if schedule.isTrimDue(holding: held) { schedule.trimmed(holding: 20_000_000) }
        }
        #expect(pauses[0] == TrimSchedule.calmPause)
        #expect(pauses[1...].allSatisfy { $0 == TrimSchedule.eagerPause })
        #expect(schedule.pause == TrimSchedule.calmPause)
    }
}
