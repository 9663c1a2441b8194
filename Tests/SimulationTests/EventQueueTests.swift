import Testing
import TuttiChance
import TuttiTiming
@testable import TuttiSimulation

@Suite struct EventQueueTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `events come by instant, and those of one instant in the order of scheduling`(seed: UInt64)
    {
        var random = SplitMix64(seed: seed)
        var queue = EventQueue<Int>()
        var scheduled: [(instant: Int64, number: Int)] = []
        for number in 0..<500 {
            let instant = Int64(random.next() % 40)
            scheduled.append((instant, number))
            queue.schedule(number, at: TrueInstant(nanoseconds: instant))
        }
        // A stable sort is what the heap has to agree with.
        let expected = scheduled.sorted { ($0.instant, $0.number) < ($1.instant, $1.number) }
        var came: [Int] = []
        while let next = queue.next(until: TrueInstant(nanoseconds: 100)) {
            came.append(next.event)
        }
        #expect(came == expected.map(\.number))
    }

    @Test func `an event behind the limit stays for later`() {
        var queue = EventQueue<Int>()
        queue.schedule(1, at: TrueInstant(nanoseconds: 10))
        #expect(queue.next(until: TrueInstant(nanoseconds: 9)) == nil)
        #expect(queue.next(until: TrueInstant(nanoseconds: 10))?.event == 1)
        #expect(queue.count == 0)
    }
}
