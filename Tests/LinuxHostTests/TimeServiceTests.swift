import Glibc
import Synchronization
import Testing
import TuttiClockSync
import TuttiTiming
import TuttiWire

@testable import TuttiLinuxHost

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
        #expect(client.statistics.stamps == .kernel)
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

    /// As they arrive: an IPv4 packet from a socket of both families carries the other mark.
    @Test(arguments: ["127.0.0.1", "::1"])
    func `time packets and their answers arrive as Expedited Forwarding`(host: String) throws {
        let isIPv6 = host == "::1"
        let (level, asked) =
            isIPv6
            ? (Int32(IPPROTO_IPV6), 66 /* IPV6_RECVTCLASS */) : (Int32(IPPROTO_IP), IP_RECVTOS)
        let (service, peer) = (try Self.service(), try TimeSocket(port: 0))
        defer { service.stop() }
        let leader = try SocketAddress.resolve(host: host, port: service.port)[0]
        let socket = try TimeSocket(connectedTo: leader)
        #expect(TimeSocket.set(socket.descriptor, level, Int32(asked), 1))
        let request = TimePacket.request(
            TimeRequest(sequence: 1, t1: HostClock.now(), stamps: .kernel, pause: .zero))
        try socket.send(request)
        #expect(Self.mark(of: socket.descriptor, level) == 46)
        // And the way there.
        let towards = try TimeSocket(
            connectedTo: SocketAddress.resolve(host: host, port: peer.port)[0])
        #expect(TimeSocket.set(peer.descriptor, level, Int32(asked), 1))
        try towards.send(request)
        #expect(Self.mark(of: peer.descriptor, level) == 46)
    }

    /// DSCP (RFC 3246) of the next packet of a socket: the upper six bits of its traffic class.
    private static func mark(of descriptor: Int32, _ level: Int32) -> UInt8? {
        var mark: UInt8?
        wait {
            var payload = [UInt8](repeating: 0, count: 256)
            var control = [UInt8](repeating: 0, count: 512)
            let count = payload.withUnsafeMutableBytes { payload in
                control.withUnsafeMutableBytes { control in
                    var vector = iovec(iov_base: payload.baseAddress, iov_len: payload.count)
                    return withUnsafeMutablePointer(to: &vector) { vector in
                        var message = msghdr()
                        message.msg_iov = vector
                        message.msg_iovlen = 1
                        message.msg_control = control.baseAddress
                        message.msg_controllen = control.count
                        let count = recvmsg(descriptor, &message, Int32(MSG_DONTWAIT))
                        return count < 0 ? -1 : Int(message.msg_controllen)
                    }
                }
            }
            guard count >= 0 else { return false }
            mark = trafficClass(in: control.prefix(count), level).map { $0 >> 2 }
            return true
        }
        return mark
    }

    /// IP_TOS is a byte of its message, IPV6_TCLASS an Int32.
    private static func trafficClass(in control: ArraySlice<UInt8>, _ level: Int32) -> UInt8? {
        let header = MemoryLayout<cmsghdr>.size
        var rest = control
        while rest.count > header {
            let message = rest.withUnsafeBytes { $0.loadUnaligned(as: cmsghdr.self) }
            let type = level == Int32(IPPROTO_IP) ? IP_TOS : 67 /* IPV6_TCLASS */
            if message.cmsg_level == level, message.cmsg_type == type {
                return rest[rest.startIndex + header]
            }
            rest = rest.dropFirst((Int(message.cmsg_len) + 7) & ~7)
        }
        return nil
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
