import ClockSync
import Testing
import Timing

@Suite struct ReplyHoldTests {
    private let start = LocalInstant(nanoseconds: 1_000_000_000)

    private static func request(pause: Nanoseconds, isPrompt: Bool = false) -> TimeRequest {
        TimeRequest(
            sequence: 1, t1: LocalInstant(nanoseconds: 0), stamps: .kernel, pause: pause,
            isPrompt: isPrompt)
    }

    @Test func `an answer leaves halfway to the next request, within limits`() {
        func wait(_ pause: Nanoseconds) -> Nanoseconds {
            Self.request(pause: pause).hold
        }
        #expect(wait(.milliseconds(125)) == .microseconds(62_500))
        #expect(wait(.milliseconds(10)) == .milliseconds(5))
        #expect(wait(.zero) == .milliseconds(10), "who says nothing waits a little")
        // Whatever a packet claims, it is held neither for ever nor not at all.
        #expect(wait(Nanoseconds(1)) == .microseconds(200))
        #expect(wait(.seconds(4_000)) == .milliseconds(100))
        #expect(Self.request(pause: .milliseconds(10), isPrompt: true).hold == .zero)
    }

    @Test func `what is held comes back in order of time`() {
        var hold = ReplyHold<Int>()
        let delays: [Int64] = [5, 1, 3, 3, 2, 9, 4]
        for delay in delays {
            let isHeld = hold.insert(Int(delay), until: start + .milliseconds(delay))
            #expect(isHeld)
        }
        var order: [Int] = []
        while let deadline = hold.nextDeadline {
            let early = hold.next(dueAt: deadline - Nanoseconds(1))
            #expect(early == nil)
            guard let next = hold.next(dueAt: deadline) else { break }
            order.append(next)
        }
        #expect(order == [1, 2, 3, 3, 4, 5, 9])
    }

    @Test func `a flood is held up to the limit and no further`() {
        var hold = ReplyHold<Int>()
        for number in 0..<ReplyHold<Int>.limit {
            let isHeld = hold.insert(number, until: start)
            #expect(isHeld)
        }
        let isHeld = hold.insert(-1, until: start)
        #expect(!isHeld)
        while let deadline = hold.nextDeadline {
            let next = hold.next(dueAt: deadline)
            #expect(next != -1)
        }
        let isHeldAgain = hold.insert(-1, until: start)
        #expect(isHeldAgain)
    }
}
