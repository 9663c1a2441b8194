import ClockSync
import Testing
import Timing

@Suite struct ReplyHoldTests {
    private let arrival = LocalInstant(nanoseconds: 1_000_000_000)

    @Test func `requests wait between one and two bursts' spacing, then come in order of time`() {
        var hold = ReplyHold<UInt32>()
        for sequence: UInt32 in 0..<500 {
            let isHeld = hold.insert(sequence, sequence: sequence, arrivedAt: arrival)
            #expect(isHeld)
        }
        let early = hold.next(dueAt: arrival + ReplyHold<UInt32>.shortest - Nanoseconds(1))
        #expect(early == nil)
        var last = Nanoseconds.zero
        var count = 0
        while let deadline = hold.nextDeadline {
            let early = hold.next(dueAt: deadline - Nanoseconds(1))
            #expect(early == nil)
            guard let sequence = hold.next(dueAt: deadline) else { break }
            #expect(deadline - arrival == ReplyHold<UInt32>.wait(of: sequence))
            #expect(deadline - arrival >= last)
            last = deadline - arrival
            count += 1
        }
        #expect(count == 500)
        #expect(last < ReplyHold<UInt32>.shortest + ReplyHold<UInt32>.range)
    }

    @Test func `waits cover the period of a burst evenly`() {
        // Ten bins of a tenth of the period; 4000 draws put 400 ± 5·√400 in each.
        var bins = [Int](repeating: 0, count: 10)
        for sequence: UInt32 in 0..<4_000 {
            let wait = ReplyHold<UInt32>.wait(of: sequence) - ReplyHold<UInt32>.shortest
            bins[Int(wait.count * 10 / ReplyHold<UInt32>.range.count)] += 1
        }
        #expect(bins.allSatisfy { (300...500).contains($0) }, "\(bins)")
    }

    @Test func `a flood is held up to the limit and no further`() {
        var hold = ReplyHold<Int>()
        for number in 0..<ReplyHold<Int>.limit {
            let isHeld = hold.insert(number, sequence: UInt32(number), arrivedAt: arrival)
            #expect(isHeld)
        }
        let isHeld = hold.insert(-1, sequence: 7, arrivedAt: arrival)
        #expect(!isHeld)
        while let deadline = hold.nextDeadline {
            let next = hold.next(dueAt: deadline)
            #expect(next != -1)
        }
        let isHeldAgain = hold.insert(-1, sequence: 7, arrivedAt: arrival)
        #expect(isHeldAgain)
    }
}
