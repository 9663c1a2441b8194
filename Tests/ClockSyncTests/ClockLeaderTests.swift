import Testing
import TuttiChance
import TuttiClockSync
import TuttiTiming

/// The leader's half of time exchange as its shell sees it: packets in, answers out, one deadline.
@Suite struct ClockLeaderTests {
    private typealias Leader = ClockLeader<Int, String>

    private let start = LocalInstant(nanoseconds: 1_000_000_000)

    private func clock(at now: LocalInstant, quality: SharedClock.Quality = .locked) -> SharedClock
    {
        var clock = SharedClock.own(at: now, epoch: 5)
        clock.quality = quality
        return clock
    }

    private func arrival(_ peer: Int, at instant: LocalInstant) -> Leader.Arrival {
        .init(peer: peer, route: "to \(peer)", instant: instant, isKernelStamp: true)
    }

    private func request(
        _ sequence: UInt32, pause: Nanoseconds = .milliseconds(10), isPrompt: Bool = false,
        reference: ReferenceReport? = nil
    ) -> TimeRequest {
        TimeRequest(
            sequence: sequence, t1: LocalInstant(nanoseconds: 7), stamps: .kernel, pause: pause,
            isPrompt: isPrompt, reference: reference)
    }

    @Test func `an answer leaves at its deadline, not before, and says when it left`() throws {
        var leader = Leader(start: start, broadcasts: true)
        #expect(leader.nextDeadline == nil)
        let receipt = leader.receive(request(1), arrival(3, at: start), epoch: 5, at: start)
        let due = try #require(leader.nextDeadline)
        #expect(receipt.due == due)
        #expect(due == start + .milliseconds(5), "halfway to the next request")
        #expect(receipt.beacon == nil, "nobody asked for broadcasts")
        let early = leader.advance(
            to: due - Nanoseconds(1), packet: 0, clock: clock(at: due))
        #expect(early == nil)
        let late = due + .microseconds(30)
        let sent = leader.advance(to: late, packet: 0, clock: clock(at: due))
        let answer = try #require(sent)
        #expect(answer.peer == 3 && answer.route == "to 3" && answer.reply.sequence == 1)
        #expect(answer.reply.t2.nanoseconds == start.nanoseconds)
        #expect(answer.reply.t3.nanoseconds == late.nanoseconds)
        let again = leader.advance(to: late, packet: 1, clock: clock(at: due))
        #expect(again == nil)
        #expect(leader.nextDeadline == nil && leader.answered == 1)
    }

    /// What the kernel said of an answer's departure travels with the next one.
    @Test func `the stamp of an answer comes with the next to the same room`() throws {
        var leader = Leader(start: start, broadcasts: false)
        var replies: [TimeReply] = []
        for number in 1...12 {
            let now = start + .milliseconds(20) * Int64(number)
            _ = leader.receive(
                request(UInt32(number), isPrompt: true), arrival(1, at: now), epoch: 5, at: now)
            let answer = leader.advance(
                to: now, packet: UInt32(number), clock: clock(at: now))
            replies.append(try #require(answer).reply)
            leader.transmitted(packet: UInt32(number), at: now + .microseconds(9))
        }
        for (before, after) in zip(replies, replies.dropFirst()) {
            let previous = try #require(after.previous)
            #expect(previous.sequence == before.sequence)
            #expect(previous.t3 - before.t3 == .microseconds(9))
        }
    }

    @Test func `answers come one at a time, in the order in which they are due`() throws {
        var leader = Leader(start: start, broadcasts: false)
        let pauses: [Int64] = [40, 10, 20, 30]
        for (peer, pause) in pauses.enumerated() {
            _ = leader.receive(
                request(1, pause: .milliseconds(pause)), arrival(peer, at: start), epoch: 5,
                at: start)
        }
        var order: [Int] = []
        var packet: UInt32 = 0
        while let due = leader.nextDeadline {
            guard let answer = leader.advance(to: due, packet: packet, clock: clock(at: due))
            else { break }
            order.append(answer.peer)
            packet += 1
        }
        #expect(order == [1, 2, 3, 0])
    }

    @Test func `a copy and a clock that nobody knows get no answer, and hold up nobody`() throws {
        var leader = Leader(start: start, broadcasts: false)
        _ = leader.receive(request(1), arrival(1, at: start), epoch: 5, at: start)
        let copy = leader.receive(request(1), arrival(1, at: start), epoch: 5, at: start)
        #expect(copy.due == nil)
        let due = try #require(leader.nextDeadline)
        let unknown = clock(at: due, quality: .none)
        let unanswered = leader.advance(to: due, packet: 0, clock: unknown)
        #expect(unanswered == nil)
        #expect(leader.nextDeadline == nil, "it asks again")
        _ = leader.receive(request(2), arrival(1, at: due), epoch: 5, at: due)
        let next = try #require(leader.nextDeadline)
        let answer = leader.advance(to: next, packet: 0, clock: clock(at: next))
        #expect(answer != nil)
    }

    @Test func `who reports of broadcasts is told, also where there are none`() throws {
        for broadcasts in [true, false] {
            var leader = Leader(start: start, broadcasts: broadcasts)
            var beacons = 0
            var states: Set<ReferenceState> = []
            for number in 1...40 {
                let now = start + .milliseconds(60) * Int64(number)
                let report = ReferenceReport(
                    epoch: 5, reading: GroupInstant(nanoseconds: now.nanoseconds),
                    skewTrillionths: 0, expectedError: .microseconds(50), newest: 0,
                    ages: .zero)
                // Nothing is broadcast for one alone.
                for peer in 1...2 {
                    let receipt = leader.receive(
                        request(UInt32(number), isPrompt: true, reference: report),
                        arrival(peer, at: now), epoch: 5, at: now)
                    if receipt.beacon != nil { beacons += 1 }
                    let answer = leader.advance(
                        to: now, packet: UInt32(2 * number + peer), clock: clock(at: now))
                    states.insert(try #require(answer?.reply.reference).state)
                }
            }
            #expect(broadcasts ? beacons > 0 : beacons == 0)
            #expect(broadcasts ? !states.contains(.off) : states == [.off])
        }
    }

    /// Whatever arrives, and whenever the thread wakes: no more is held than fits, none is answered
    /// twice or before it is due, and who asks alone is answered within what a request may be held.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `any order of packets and wake-ups`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var leader = Leader(start: start, broadcasts: true)
        var now = start
        var (asked, answered): ([Int: Set<UInt32>], [Int: Set<UInt32>]) = ([:], [:])
        var dues: [[UInt32]: LocalInstant] = [:]
        var packet: UInt32 = 0
        for _ in 0..<3_000 {
            now += .microseconds(Int64(random.uniform(0, 3_000)))
            let peer = Int(random.next() % 5)
            let sequence = UInt32(asked[peer, default: []].count) &+ 1
            let isCopy = random.chance(0.1) && sequence > 1
            let number = isCopy ? sequence - 1 : sequence
            let receipt = leader.receive(
                request(
                    number, pause: .microseconds(Int64(random.uniform(0, 200_000))),
                    isPrompt: random.chance(0.3)),
                arrival(peer, at: now), epoch: 5, at: now)
            #expect((receipt.due == nil) == isCopy)
            if let due = receipt.due {
                asked[peer, default: []].insert(number)
                dues[[UInt32(peer), number]] = due
                #expect(due - now <= .milliseconds(215))
            }
            guard random.chance(0.5) else { continue }
            while let answer = leader.advance(to: now, packet: packet, clock: clock(at: now)) {
                let key = [UInt32(answer.peer), answer.reply.sequence]
                let isFirst = answered[answer.peer, default: []].insert(answer.reply.sequence)
                    .inserted
                #expect(isFirst)
                #expect(dues[key].map { $0 <= now } == true)
                packet &+= 1
            }
            #expect(leader.nextDeadline.map { $0 > now } ?? true)
        }
        now += .seconds(1)
        while let answer = leader.advance(to: now, packet: packet, clock: clock(at: now)) {
            answered[answer.peer, default: []].insert(answer.reply.sequence)
            packet &+= 1
        }
        #expect(answered == asked)
    }
}
