import Testing
import TuttiTiming

@testable import TuttiClockSync

@Suite struct ClockServerTests {
    static func instant(_ nanoseconds: Int64) -> LocalInstant {
        LocalInstant(nanoseconds: nanoseconds)
    }

    static func clock(epoch: UInt64 = 1, _ quality: SharedClock.Quality = .locked) -> SharedClock {
        // Group = local + 1000.
        SharedClock(
            map: ClockMap(from: instant(0), to: GroupInstant(nanoseconds: 1000)),
            uncertainty: .zero, estimatedAt: instant(0), epoch: epoch, quality: quality)
    }

    static func ask(
        _ server: inout ClockServer<Int>, _ sequence: UInt32, from peer: Int = 0,
        packet: UInt32 = 0, clock: SharedClock = clock()
    ) -> TimeReply? {
        let request = TimeRequest(sequence: sequence, t1: instant(7), stamps: .kernel)
        let due = server.admit(request, from: peer, arrival: instant(10), at: instant(10))
        guard due != nil else { return nil }
        return server.reply(
            to: request, from: peer, arrival: instant(10), isKernelStamp: true,
            departure: instant(20), packet: packet, clock: clock)
    }

    @Test func `a reply carries the request's t1 and the group's reading of both stamps`() throws {
        var server = ClockServer<Int>()
        let reply = try #require(Self.ask(&server, 5))
        #expect(reply.t1 == Self.instant(7))
        #expect(reply.t2.nanoseconds == 1010 && reply.t3.nanoseconds == 1020)
        #expect(reply.previous == nil)
    }

    @Test func `the transmit stamp travels in the next reply to the same peer`() throws {
        var server = ClockServer<Int>()
        _ = Self.ask(&server, 5, from: 1, packet: 0)
        _ = Self.ask(&server, 90, from: 2, packet: 1)
        server.transmitted(packet: 0, at: Self.instant(33))
        let second = try #require(Self.ask(&server, 6, from: 1, packet: 2))
        #expect(
            second.previous == .init(sequence: 5, t3: GroupInstant(nanoseconds: 1033)))
        #expect(second.stamps == .kernel)
        let other = try #require(Self.ask(&server, 91, from: 2, packet: 3))
        #expect(other.previous == nil, "its stamp has not come")
    }

    @Test func `whether transmit stamps can be expected is said of each way by itself`() throws {
        var server = ClockServer<Int>()
        var (sequence, packet) = (UInt32(0), UInt32(0))
        func says(to peer: Int, isStamped: Bool) -> StampClass? {
            sequence += 1
            packet += 1
            let reply = Self.ask(&server, sequence, from: peer, packet: packet)
            if isStamped { server.transmitted(packet: packet, at: Self.instant(30)) }
            return reply?.stamps
        }
        let limit = ClockServer<Int>.unstampedLimit
        #expect(says(to: 1, isStamped: true) == .kernelReceive)
        for _ in 0..<3 * limit {
            #expect(says(to: 1, isStamped: true) == .kernel)
            // The same leader, through an interface that stamps nothing.
            #expect(says(to: 2, isStamped: false) == .kernelReceive)
        }
        // One stamp that is late or lost changes nothing, many do.
        let after = (0..<2 * limit).map { _ in says(to: 1, isStamped: false) }
        #expect(after.prefix(limit - 1).allSatisfy { $0 == .kernel }, "\(after)")
        #expect(after.suffix(limit - 1).allSatisfy { $0 == .kernelReceive }, "\(after)")
    }

    @Test func `copies of a request are not answered, a restarted peer is`() {
        var server = ClockServer<Int>()
        #expect(Self.ask(&server, 100) != nil)
        #expect(Self.ask(&server, 100) == nil)
        #expect(Self.ask(&server, 101) != nil)
        // Late, but for the first time; then its copy.
        #expect(Self.ask(&server, 99) != nil)
        #expect(Self.ask(&server, 99) == nil)
        #expect(Self.ask(&server, 101) == nil)
        #expect(Self.ask(&server, 3_000_000) != nil)
        #expect(Self.ask(&server, 5) != nil)
        #expect(server.answered == 5)
    }

    @Test func `sequence numbers wrap`() {
        var server = ClockServer<Int>()
        #expect(Self.ask(&server, .max) != nil)
        #expect(Self.ask(&server, 0) != nil)
        #expect(Self.ask(&server, .max) == nil)
    }

    @Test func `stamps of another epoch and before renumbering are dropped`() throws {
        var server = ClockServer<Int>()
        _ = Self.ask(&server, 1, packet: 0)
        server.transmitted(packet: 0, at: Self.instant(30))
        let next = try #require(Self.ask(&server, 2, packet: 1, clock: Self.clock(epoch: 2)))
        #expect(next.previous == nil && next.epoch == 2)
        server.forgetPending()
        server.transmitted(packet: 1, at: Self.instant(60))
        let last = try #require(Self.ask(&server, 3, packet: 0, clock: Self.clock(epoch: 2)))
        #expect(last.previous == nil)
    }

    @Test func `without a clock nobody is answered`() {
        var server = ClockServer<Int>()
        #expect(Self.ask(&server, 1, clock: Self.clock(.none)) == nil)
        #expect(server.answered == 0)
    }

    @Test func `a flood of peers costs the oldest its stamp and nothing else`() throws {
        var server = ClockServer<Int>()
        for peer in 0...ClockServer<Int>.peerLimit {
            #expect(Self.ask(&server, 1, from: peer, packet: UInt32(peer)) != nil)
            server.transmitted(packet: UInt32(peer), at: Self.instant(40))
        }
        let dropped = try #require(Self.ask(&server, 2, from: 0, packet: 5000))
        #expect(dropped.previous == nil)
        let kept = try #require(Self.ask(&server, 2, from: 500, packet: 5001))
        #expect(kept.previous?.sequence == 1)
    }
}
