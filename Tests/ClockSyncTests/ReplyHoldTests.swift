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
        #expect(last == ReplyHold<UInt32>.shortest + ReplyHold<UInt32>.range)
    }

    @Test func `waits cover the period of a burst evenly, and replies keep the order of requests`()
    {
        let waits = (UInt32(0)..<640).map { ReplyHold<UInt32>.wait(of: $0) }
        var bins = [Int](repeating: 0, count: 8)
        for wait in waits {
            let above = wait - ReplyHold<UInt32>.shortest
            bins[min(7, Int(above.count * 8 / ReplyHold<UInt32>.range.count))] += 1
        }
        #expect(bins.allSatisfy { (60...100).contains($0) }, "\(bins)")
        // The closest spacing that is used is 1 ms.
        for (a, b) in zip(waits, waits.dropFirst()) { #expect(b - a > -.milliseconds(1)) }
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
