import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming
import TuttiTrust
import TuttiWire

@testable import TuttiRoom

extension IntegrationTests {
    /// Datagrams between a leader and a room on loopback, which loses none.
    @Suite struct Notices {
        static let notice = CommitDatagram(
            instance: 77, term: 7,
            commit: Commit(
                id: 3, index: 1, hash: ContentHash(words: (1, 2, 3, 4)),
                change: RateChange(
                    itemFrame: 5, instant: GroupInstant(nanoseconds: 6), rate: 1),
                following: false))

        /// A leader's control service, of which only the family counts.
        func control(_ host: String) async throws -> any Channel {
            try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .bind(to: SocketAddress(ipAddress: host, port: 0)).get()
        }

        @Test(.timeLimit(.minutes(1)), arguments: ["::", "0.0.0.0"])
        func `a notice arrives twice, and bytes that are none do not end the listener`(
            wildcard: String
        ) async throws {
            let logger = Logger(label: "notices", factory: { _ in SwiftLogNoOpLogHandler() })
            let service: any Channel
            do {
                service = try await control(wildcard)
            } catch is IOError where wildcard == "::" {
                return  // a machine without IPv6: its leader listens on IPv4
            }
            let listener = try #require(await CommitDatagramListener.open(logger: logger))
            let sender = try #require(
                await CommitDatagramSender.open(beside: service, logger: logger))
            // As a TCP connection to this service would show the room's address.
            let room = try SocketAddress(
                ipAddress: wildcard == "::" ? "::ffff:127.0.0.1" : "127.0.0.1", port: 1)
            let stranger = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .bind(to: SocketAddress(ipAddress: "127.0.0.1", port: 0)).get()
            let nonsense = stranger.allocator.buffer(bytes: [UInt8](repeating: 0xFF, count: 99))
            try await stranger.writeAndFlush(
                AddressedEnvelope(
                    remoteAddress: SocketAddress(
                        ipAddress: "127.0.0.1", port: Int(listener.port)), data: nonsense))

            sender.send(Self.notice, to: room, port: listener.port)
            var arrived: [CommitDatagram] = []
            for await notice in listener.notices {
                arrived.append(notice)
                if arrived.count == 2 { break }
            }
            #expect(arrived == [Self.notice, Self.notice])
            // With tags each copy is let in once, and nothing else is.
            var leader = LeaderTags(try GroupKey(term: 3, secret: DatagramKey.drawSecret()))
            let grant = leader.grant(to: 1)
            let tags = SharedRoomTags(try RoomTags(try #require(grant)))
            let captured = Mutex<[[UInt8]]>([])
            let sealing = SharedLeaderTags(leader)
            listener.take(tags)
            sender.send(Self.notice, to: room, port: listener.port)
            sender.send(Self.notice, to: room, port: listener.port) { bytes in
                let sealed = sealing { $0.seal(commit: bytes, to: 1, at: HostClock.now()) }
                if let sealed { captured.withLock { $0.append(sealed) } }
                return sealed
            }
            arrived = []
            for await notice in listener.notices {
                arrived.append(notice)
                if arrived.count == 2 { break }
            }
            #expect(arrived == [Self.notice, Self.notice])
            for bytes in captured.withLock({ $0 }) {
                sender.send(Self.notice, to: room, port: listener.port) { _ in bytes }
            }
            try await until("all are counted") {
                tags { $0.dropped } == [.replay: 4, .header: 2]
            }
            listener.close()
            sender.close()
            try await stranger.close()
            try await service.close()
        }
    }
}
