import ClockSync
import Glibc
import Synchronization
import Testing
import Timing
import Wire

@testable import LinuxHost

/// Real sockets on the loopback interface; both ends share one clock, so the truth is known.
@Suite(.timeLimit(.minutes(1))) struct TimeServiceTests {
    /// Leader minus local; any value will do.
    static let shift: Int64 = 7_654_321_000_000_123

    static func service(port: Int = 0) throws -> TimeService {
        try TimeService.start(port: port, priority: 0) {
            SharedClock(
                map: ClockMap(
                    from: LocalInstant(nanoseconds: 0), to: GroupInstant(nanoseconds: shift)),
                uncertainty: .zero, estimatedAt: HostClock.now(), epoch: 77, quality: .locked)
        }
    }

    final class Latest: Sendable {
        let clock = Mutex<SharedClock?>(nil)
        var value: SharedClock? { clock.withLock(\.self) }
    }

    static func client(_ host: String, _ port: Int, into latest: Latest) throws -> ClockClient {
        try ClockClient.start(host: host, port: port, priority: 0, seed: 1) { clock, _ in
            latest.clock.withLock { $0 = clock }
        }
    }

    /// Polls a condition of another thread. Gives up after minutes, so that what never happens is a
    /// failure and not a hang.
    static func wait(until condition: () -> Bool) {
        let end = HostClock.now() + .seconds(120)
        while !condition() {
            guard HostClock.now() < end else {
                Issue.record("waited for two minutes in vain")
                return
            }
            HostClock.sleep(until: HostClock.now() + .milliseconds(5))
        }
    }

    @Test(arguments: ["127.0.0.1", "localhost", "::1"])
    func `a client locks to a service, and the bound holds`(host: String) throws {
        let service = try Self.service()
        defer { service.stop() }
        let latest = Latest()
        let client = try Self.client(host, service.port, into: latest)
        defer { client.stop() }
        Self.wait { latest.value?.quality == .locked }
        let now = HostClock.now()
        let clock = try #require(latest.value)
        let error = Nanoseconds(clock.map(now).nanoseconds - now.nanoseconds - Self.shift)
        // Both directions are the same path: the truth lies in the reported interval.
        #expect(error.magnitude <= clock.uncertainty + Nanoseconds(1))
        let statistics = client.statistics
        #expect(statistics.answered >= 8)
        #expect(statistics.ignored == 0)
        #expect(statistics.leaderEpoch == 77)
        #expect(client.problem == nil)
        #expect(service.answered >= statistics.answered)
    }

    @Test func `the loopback interface gives kernel stamps in both directions`() throws {
        let service = try Self.service()
        defer { service.stop() }
        let latest = Latest()
        let client = try Self.client("127.0.0.1", service.port, into: latest)
        defer { client.stop() }
        Self.wait { client.statistics.stamps == .kernel }
        #expect(client.statistics.roundTripFloor > .zero)
    }

    @Test func `a burst asks sixteen times at once`() throws {
        let service = try Self.service()
        defer { service.stop() }
        let latest = Latest()
        let client = try Self.client("127.0.0.1", service.port, into: latest)
        defer { client.stop() }
        Self.wait { client.statistics.quality == .locked }
        let before = service.answered
        let begin = HostClock.now()
        client.burst()
        Self.wait { service.answered >= before + 16 }
        // Without the burst the twenty a second of joining would take 0.8 s.
        #expect(HostClock.now() - begin < .milliseconds(700))
    }

    @Test func `time packets leave as Expedited Forwarding`() throws {
        let socket = try TimeSocket(
            connectedTo: SocketAddress.resolve(host: "127.0.0.1", port: 9)[0])
        var (mark, length) = (Int32(), socklen_t(MemoryLayout<Int32>.size))
        #expect(getsockopt(socket.descriptor, Int32(IPPROTO_IP), IP_TOS, &mark, &length) == 0)
        // DSCP 46 (RFC 3246) in the upper six bits.
        #expect(mark >> 2 == 46)
    }

    /// Nobody hurries: the second of two requests lies in the socket until the first is answered,
    /// and a third comes while nothing is due.
    @Test func `requests on the air are answered, in order and after their hold`() throws {
        let service = try Self.service()
        defer { service.stop() }
        let leader = try SocketAddress.resolve(host: "127.0.0.1", port: service.port)[0]
        let socket = try TimeSocket(connectedTo: leader)
        // The service takes a new room for one on wires at first.
        HostClock.sleep(until: HostClock.now() + .milliseconds(2_100))
        func ask(_ sequence: UInt32) throws {
            try socket.send(
                .request(
                    TimeRequest(
                        sequence: sequence, t1: HostClock.now(), stamps: .kernel,
                        pause: .milliseconds(20))))
        }
        var replies: [TimeReply] = []
        func listen(for count: Int) {
            Self.wait {
                while let arrival = try? socket.receive() {
                    if case .reply(let reply)? = arrival.packet { replies.append(reply) }
                }
                return replies.count >= count
            }
        }
        try ask(1)
        HostClock.sleep(until: HostClock.now() + .milliseconds(2))
        try ask(2)
        listen(for: 2)
        try ask(3)
        listen(for: 3)
        #expect(replies.map(\.sequence) == [1, 2, 3])
        for reply in replies { #expect(reply.t3 - reply.t2 >= .milliseconds(10)) }
    }

    @Test func `a port in use is a clear error`() throws {
        let service = try Self.service()
        defer { service.stop() }
        let error = #expect(throws: HostError.self) { try Self.service(port: service.port) }
        #expect(error?.kind == .portTaken)
        #expect(error?.description.contains("\(service.port)") == true)
    }

    @Test func `a stopped service frees its port`() throws {
        let service = try Self.service()
        service.stop()
        service.stop()
        let next = try Self.service(port: service.port)
        #expect(next.port == service.port)
        next.stop()
    }

    @Test func `a name without an address is reported and tried again, and stop does not wait`()
        throws
    {
        let latest = Latest()
        let client = try Self.client("no-such-room.invalid", 7430, into: latest)
        Self.wait { client.problem != nil }
        #expect(client.problem?.kind == .unresolved)
        #expect(client.problem?.description.contains("no-such-room.invalid") == true)
        client.stop()
        #expect(latest.value == nil)
    }

    @Test func `a leader that starts later is found`() throws {
        let first = try Self.service()
        let port = first.port
        first.stop()
        let latest = Latest()
        let client = try Self.client("127.0.0.1", port, into: latest)
        defer { client.stop() }
        Self.wait { client.problem?.kind == .unreachable }
        let service = try Self.service(port: port)
        defer { service.stop() }
        Self.wait { latest.value?.quality == .locked }
        #expect(client.problem == nil)
    }
}
