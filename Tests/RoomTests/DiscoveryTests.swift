import NIOCore
import Testing
import TuttiGroupControl
import TuttiTiming

@testable import TuttiRoom

struct DiscoveryTests {
    @Test func `a daemon that does not answer is complained about, with what to do`() async {
        let book = LogBook()
        await Discovery.warnOfSilence(
            after: .zero, consequence: "nobody is found", logger: book.logger,
            obstacle: { Discovery.daemonIsSilent })
        let lines = book.all
        #expect(lines.map(\.metadata) == [["until then": "nobody is found"]])
        #expect(lines.first?.message.contains("systemctl start avahi-daemon") == true)
    }

    @Test(.timeLimit(.minutes(1)))
    func `one that answers is not, nor one that nobody waits for any more`() async {
        let book = LogBook()
        await Discovery.warnOfSilence(
            after: .zero, consequence: "", logger: book.logger, obstacle: { nil })
        let waiting = Task {
            await Discovery.warnOfSilence(
                after: .seconds(600), consequence: "", logger: book.logger,
                obstacle: { Discovery.daemonIsSilent })
        }
        waiting.cancel()
        await waiting.value
        #expect(book.all.isEmpty)
    }

    @Test func `addresses are tried in the order in which they are likely to work`() {
        let hosts = ["fe80::1%2", "169.254.1.1", "2001:db8::1", "192.0.2.1", "192.0.2.1"]
        let ordered = DiscoveredRoom.ordered(hosts.map { HostPort(host: $0, port: 1) })
        #expect(ordered.map(\.host) == ["192.0.2.1", "2001:db8::1", "169.254.1.1", "fe80::1%2"])
    }

    /// Every machine has a name of its own for a wire.
    @Test func `where the next leader is, is said as the wire is called here`() throws {
        func host(_ host: String, toldBy teller: String) throws -> String {
            NextLeader(name: try RoomID("a"), host: host, port: 1).host(toldBy: teller)
        }
        #expect(try host("", toldBy: "fe80::1%3") == "fe80::1%3")
        #expect(try host("fe80::2%7", toldBy: "fe80::1%3") == "fe80::2%3")
        #expect(try host("fe80::2", toldBy: "fe80::1%eth0") == "fe80::2%eth0")
        #expect(try host("2001:db8::2", toldBy: "fe80::1%3") == "2001:db8::2")
        #expect(try host("192.0.2.2", toldBy: "192.0.2.1") == "192.0.2.2")
        let peer = try SocketAddress(ipAddress: "fe80::2%1", port: 1)
        #expect(Leading.host(of: peer)?.hasPrefix("fe80::2%") == true)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a room says once that it looks for a leader, and again after it had one`() async {
        let book = LogBook()
        let finder = LeaderFinder(fixed: nil, name: nil, logger: book.logger)
        func look() async {
            let attempt = Task { try await finder.next() }
            // It looks once before it waits, and the wait ends.
            attempt.cancel()
            _ = await attempt.result
        }
        await look()
        await look()
        #expect(book.entries("looking for a leader").count == 1)
        finder.connected(
            to: LeaderFinder.Found(
                address: HostPort(host: "10.0.0.1", port: 1), at: LocalInstant(nanoseconds: 0)))
        await look()
        #expect(book.entries("looking for a leader").count == 2)
    }
}
