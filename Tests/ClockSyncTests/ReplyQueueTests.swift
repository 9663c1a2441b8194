import Testing
import TuttiClockSync
import TuttiTiming

@Suite struct ReplyQueueTests {
    private let start = LocalInstant(nanoseconds: 1_000_000_000)

    private static func request(pause: Nanoseconds, isPrompt: Bool = false) -> TimeRequest {
        TimeRequest(
            sequence: 1, t1: LocalInstant(nanoseconds: 0), stamps: .kernel, pause: pause,
            isPrompt: isPrompt)
    }

    @Test func `an answer leaves halfway to the next request, within limits`() {
        func wait(_ pause: Nanoseconds) -> Nanoseconds {
            Self.request(pause: pause).hold.usual
        }
        #expect(wait(.milliseconds(125)) == .microseconds(62_500))
        #expect(wait(.milliseconds(10)) == .milliseconds(5))
        #expect(wait(.zero) == .milliseconds(10), "who says nothing waits a little")
        // Whatever a packet claims, it is held neither for ever nor not at all.
        #expect(wait(Nanoseconds(1)) == .microseconds(200))
        #expect(wait(.seconds(4_000)) == .milliseconds(100))
        #expect(Self.request(pause: .milliseconds(10), isPrompt: true).hold.longest == .zero)
    }

    /// Admits requests of one room, numbered from 1.
    private struct Desk {
        var server = ClockServer<Int>()
        var count: UInt32 = 0

        mutating func due(
            _ pause: Nanoseconds, isPrompt: Bool = false, at arrival: LocalInstant,
            readAt now: LocalInstant = LocalInstant(nanoseconds: 0)
        ) throws -> LocalInstant {
            count += 1
            var request = ReplyQueueTests.request(pause: pause, isPrompt: isPrompt)
            request.sequence = count
            let due = server.admit(request, from: 1, arrival: arrival, at: max(arrival, now))
            return try #require(due)
        }
    }

    @Test func `answers to requests that were held up together leave apart, and catch up`() throws {
        let pause = Nanoseconds.milliseconds(2)
        var desk = Desk()
        // Ten requests 2 ms apart, of which the path holds up the first nine until the tenth comes.
        let dues = try (0..<10).map { _ in try desk.due(pause, at: start) }
        #expect(dues.first == start + .milliseconds(1), "halfway to the next, as ever")
        let gaps = zip(dues, dues.dropFirst()).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 == Nanoseconds(1_875_000) })
        // Those that come in time afterwards are answered later and later no more.
        let waits = try (1...400).map { number in
            let arrival = start + pause * Int64(number)
            return try desk.due(pause, at: arrival) - arrival
        }
        #expect(waits[0] <= dues[9] - start)
        #expect(zip(waits, waits.dropFirst()).allSatisfy { $1 <= $0 })
        #expect(waits[399] == .milliseconds(1))
    }

    @Test func `one room's answers do not wait for another's`() {
        var server = ClockServer<Int>()
        for peer in 0..<50 {
            let due = server.admit(
                Self.request(pause: .milliseconds(2)), from: peer, arrival: start, at: start)
            #expect(due == start + .milliseconds(1))
        }
    }

    @Test func `a copy takes nobody's place`() throws {
        let request = Self.request(pause: .milliseconds(2))
        var (server, other) = (ClockServer<Int>(), ClockServer<Int>())
        _ = server.admit(request, from: 1, arrival: start, at: start)
        _ = other.admit(request, from: 1, arrival: start, at: start)
        let copy = server.admit(request, from: 1, arrival: start, at: start)
        #expect(copy == nil)
        var next = request
        next.sequence += 1
        let due = server.admit(next, from: 1, arrival: start, at: start)
        let expected = other.admit(next, from: 1, arrival: start, at: start)
        #expect(due == expected)
    }

    @Test(arguments: [1, 2, 9, 25, 30, 31, 600] as [Int64])
    func `however many come at once, each is answered in its time`(
        pauseMilliseconds: Int64
    ) throws {
        let pause = Nanoseconds.milliseconds(pauseMilliseconds)
        let hold = Self.request(pause: pause).hold
        var desk = Desk()
        for _ in 0..<1_000 {
            let due = try desk.due(pause, at: start)
            #expect(due >= start + hold.usual)
            #expect(due <= start + hold.longest)
        }
        #expect(hold.longest - hold.usual <= .milliseconds(100))
        // A room whose requests are far apart is answered as if it had not asked before.
        let next = try desk.due(.milliseconds(600), at: start)
        #expect(next == start + .milliseconds(100))
    }

    @Test(arguments: [600, 25, 10] as [Int64])
    func `after a longer pause a burst is answered at once`(pauseMilliseconds: Int64) throws {
        var desk = Desk()
        let pause = Nanoseconds.milliseconds(pauseMilliseconds)
        _ = try desk.due(pause, at: start)
        // The next requests are closer, and in time.
        let burst = start + min(pause / 2, .milliseconds(20)) + .milliseconds(1)
        for number in 0..<10 as Range<Int64> {
            let arrival = burst + .milliseconds(2 * number)
            let due = try desk.due(.milliseconds(2), at: arrival)
            #expect(due - arrival == .milliseconds(1))
        }
    }

    @Test func `answers that a stall made late leave apart too`() throws {
        var desk = Desk()
        let pause = Nanoseconds.milliseconds(2)
        let late = start + .milliseconds(12)
        let dues = try (0..<6).map {
            try desk.due(pause, at: start + pause * Int64($0), readAt: late)
        }
        #expect(dues[0] == late)
        let gaps = zip(dues, dues.dropFirst()).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 == Nanoseconds(1_875_000) })
    }

    @Test func `prompt answers never wait`() throws {
        var desk = Desk()
        for _ in 0..<20 {
            let due = try desk.due(.milliseconds(2), isPrompt: true, at: start)
            #expect(due == start)
        }
    }

    @Test func `what is held comes back in order of time`() {
        var hold = ReplyQueue<Int>()
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
        var hold = ReplyQueue<Int>()
        for number in 0..<ReplyQueue<Int>.limit {
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
