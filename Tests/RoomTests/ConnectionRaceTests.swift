import Dispatch
import Foundation
import Glibc
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing
import TuttiClockSync
import TuttiGroupControl
import TuttiLinuxHost
import TuttiRealTime
import TuttiTiming
import TuttiWire

@testable import TuttiRoom

extension IntegrationTests {
    /// What a room does between having found a leader and being welcomed.
    @Suite struct Connecting {
        private static let quiet = Logger(
            label: "connecting", factory: { _ in SwiftLogNoOpLogHandler() })

        private static func service(epoch: UInt64) throws -> TimeService {
            let clock = SharedClock.own(at: LocalInstant(nanoseconds: 0), epoch: epoch)
            return try TimeService.start(port: 0, priority: 0, clock: { clock })
        }

        private static func welcome(port: Int, epoch: UInt64) -> Welcome {
            Welcome(
                leaderName: "attic", timePort: UInt16(port), mediaPort: 1, term: 1,
                groupClockEpoch: epoch)
        }

        private func roomClock() -> RemoteClock {
            RemoteClock(priority: 0, broadcasts: false, store: nil, logger: Self.quiet)
        }

        @Test(.timeLimit(.minutes(1)))
        func `the clock of a leader is measured before it has welcomed the room`() async throws {
            let service = try Self.service(epoch: 5)
            defer { service.stop() }
            let clock = roomClock()
            defer { clock.stop() }
            clock.approach(HostPort(host: "127.0.0.1", port: service.port))
            #expect(clock.cell.load().quality == .none, "whose clock that is nobody has said")
            // Long enough to have been measured.
            try await until("the service is asked") { service.answered > 40 }
            clock.setHost("127.0.0.1")
            clock.follow(Self.welcome(port: service.port, epoch: 5))
            #expect(clock.cell.load().quality != .none)
            clock.expectStart(.joining)
            try await until("it is known") { clock.cell.load().quality == .locked }
            let cell = clock.cell
            // The same leader again, after the link broke: nothing begins anew.
            clock.approach(HostPort(host: "127.0.0.1", port: service.port))
            clock.follow(Self.welcome(port: service.port, epoch: 5))
            #expect(clock.cell === cell)
        }

        @Test(.timeLimit(.minutes(1)))
        func `where the welcome names another port, that one is asked`() async throws {
            let (first, second) = (try Self.service(epoch: 5), try Self.service(epoch: 6))
            defer {
                first.stop()
                second.stop()
            }
            let clock = roomClock()
            defer { clock.stop() }
            clock.approach(HostPort(host: "127.0.0.1", port: first.port))
            try await until("the first is asked") { first.answered > 0 }
            clock.setHost("127.0.0.1")
            clock.follow(Self.welcome(port: second.port, epoch: 6))
            clock.expectStart(.common)
            try await until("the other one is known") { clock.cell.load().quality == .locked }
            #expect(clock.cell.load().epoch == 6)
        }

        /// Both ends, where the kernel has the options; elsewhere the connection works all the same.
        @Test(.timeLimit(.minutes(1)))
        func `what a connection loses is repeated soon where the kernel can`() async throws {
            let listener = try await listenOnAllInterfaces(port: 0)
            try await listener.executeThenClose { accepted in
                let port = try #require(listener.channel.localAddress?.port)
                let room = try await TuttiRoom.connect(
                    to: HostPort(host: "127.0.0.1", port: port), timeout: .seconds(20),
                    limit: FrameDecoder.roomLimit, .open)
                var connections = accepted.makeAsyncIterator()
                let leader = try #require(try await connections.next())
                let usual = try usualTimeout()
                for channel in [room.channel, leader] {
                    let provider = try #require(channel as? any SocketOptionProvider)
                    // What the kernel makes of it, µs; what is asked for before the path is known.
                    let timeout = CInt(try await provider.getTCPInfo().get().tcpi_rto)
                    guard let usual else { continue }
                    #expect(timeout < usual)
                    let patience = try await channel.getOption(
                        .tcpOption(TCPOption.longestAcknowledgement)
                    ).get()
                    #expect(patience < timeout, "what is not overdue is not repeated")
                }
                try await leader.close()
                try await room.executeThenClose { _, _ in }
            }
        }

        /// What the system gives a connection that asks for nothing, µs; `nil` where it does not say.
        private func usualTimeout() throws -> CInt? {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            try #require(descriptor >= 0)
            defer { Glibc.close(descriptor) }
            var (value, length) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
            let result = unsafe getsockopt(
                descriptor, CInt(IPPROTO_TCP), TCPOption.shortestTimeout.rawValue, &value, &length)
            return result == 0 ? value : nil
        }

        /// A listener whose queue is full lets first packets go unanswered, as a network does that
        /// loses them.
        @Test(.timeLimit(.minutes(1)))
        func `a first packet that is lost is not waited for`() async throws {
            let listener = try FullListener()
            defer { listener.close() }
            let address = HostPort(host: "127.0.0.1", port: listener.port)
            let order = Order()
            let dropsBefore = try FullListener.drops()
            try await withThrowingTaskGroup { group in
                group.addTask {
                    let channel = try await ClientBootstrap(
                        group: MultiThreadedEventLoopGroup.singleton
                    ).connect(host: address.host, port: address.port).get()
                    order.note("one attempt")
                    try await channel.close()
                }
                group.addTask {
                    let channel = try await TuttiRoom.connect(
                        to: address, timeout: .seconds(20), limit: FrameDecoder.roomLimit, .open)
                    order.note("room")
                    try await channel.executeThenClose { _, _ in }
                }
                try await until("both have sent their first packet in vain") {
                    try FullListener.drops() >= dropsBefore + 2
                }
                listener.takeAll()
                try await group.waitForAll()
            }
            #expect(order.notes == ["room", "one attempt"])
        }
    }
}

private final class Order: Sendable {
    private let state = Mutex<[String]>([])
    var notes: [String] { state.withLock(\.self) }
    func note(_ what: String) { state.withLock { $0.append(what) } }
}

/// A listening socket with room for one connection, which is taken.
private final class FullListener: Sendable {
    let port: Int
    private let listener: Int32
    private let own: Int32

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        own = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listener, own) = (listener, own)
        let isUp = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, address, &length) == 0
                    && connect(own, address, length) == 0
            }
        }
        try #require(isUp)
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// First packets that listeners here have let go unanswered.
    static func drops() throws -> Int {
        let lines = try String(contentsOfFile: "/proc/net/netstat", encoding: .utf8)
            .split(separator: "\n").filter { $0.hasPrefix("TcpExt:") }.map {
                $0.split(separator: " ")
            }
        let place = try #require(lines[0].firstIndex(of: "ListenDrops"))
        return try #require(Int(lines[1][place]))
    }

    /// Takes what is queued, and what comes, until closed; the other end closes it.
    func takeAll() {
        let listener = listener
        DispatchQueue.global().async {
            var taken: [Int32] = []
            while true {
                let next = accept(listener, nil, nil)
                guard next >= 0 else { break }
                taken.append(next)
            }
            for descriptor in taken { Glibc.close(descriptor) }
        }
    }

    func close() {
        shutdown(listener, Int32(SHUT_RDWR))
        Glibc.close(listener)
        Glibc.close(own)
    }
}
