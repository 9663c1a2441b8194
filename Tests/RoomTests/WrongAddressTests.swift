import Logging
import NIOCore
import NIOPosix
import Testing
import TuttiSecureLinks

@testable import TuttiRoom

/// What a person is told who names the wrong machine or the wrong port.
@Suite(.timeLimit(.minutes(1))) struct WrongAddressTests {
    /// Says `greeting` to whoever says something, and hangs up where `closes` is set.
    private final class Greeter: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let greeting: String
        private let closes: Bool
        private let speaksFirst: Bool

        init(_ greeting: String, closes: Bool, speaksFirst: Bool) {
            self.greeting = greeting
            self.closes = closes
            self.speaksFirst = speaksFirst
        }

        func channelActive(context: ChannelHandlerContext) {
            guard speaksFirst else { return }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !greeting.isEmpty || closes, !speaksFirst else { return }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
            if closes { context.close(promise: nil) }
        }
    }

    private func credentials(_ isHousehold: Bool) throws -> Credentials {
        guard isHousehold else { return .open }
        let keeper = try HouseholdKeeper(nil, name: "desk", logger: Logger(label: "desk"))
        try keeper.foundIfNone()
        return Credentials(kind: .household(keeper))
    }

    private func complaint(
        whenServed greeting: String, closes: Bool = false, speaksFirst: Bool = false,
        _ credentials: Credentials = .open
    ) async throws -> String {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.pipeline.addHandler(
                    Greeter(greeting, closes: closes, speaksFirst: speaksFirst))
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let text = await complaint(HostPort(host: "127.0.0.1", port: port), credentials)
        try await server.close()
        return text
    }

    private func complaint(
        _ address: HostPort, _ credentials: Credentials = .open
    ) async -> String {
        do {
            _ = try await GroupClient.connect(
                to: address, timeout: .milliseconds(800), credentials: credentials)
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test(arguments: [false, true])
    func `a web server on the port is called no leader`(isHousehold: Bool) async throws {
        let text = try await complaint(
            whenServed: "HTTP/1.1 400 Bad Request\r\nContent-Length: 11\r\n\r\nBad Request",
            try credentials(isHousehold))
        #expect(text.contains(isHousehold ? "is a web server" : "no Tutti leader"), "\(text)")
        for word in ["frame", "tooLong", "rror", "SSL", "swift"] {
            #expect(!text.contains(word), "\(text)")
        }
    }

    @Test(arguments: [("SSH-2.0-OpenSSH_9.2\r\n", "an SSH server"), ("220 mail\r\n", "no Tutti")])
    func `another service is no link of a household`(
        greeting: String, words: String
    ) async throws {
        for speaksFirst in [false, true] {
            let text = try await complaint(
                whenServed: greeting, speaksFirst: speaksFirst, try credentials(true))
            #expect(text.contains(words), "\(text)")
        }
    }

    @Test(arguments: [false, true])
    func `a server that is silent is said to have taken the connection`(
        isHousehold: Bool
    ) async throws {
        let text = try await complaint(whenServed: "", try credentials(isHousehold))
        #expect(text.contains("took the connection"), "\(text)")
    }

    /// A room that is to follow it hears the same.
    @Test func `a server that is silent is called so by a room, too`() async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let address = HostPort(
            host: "127.0.0.1", port: try #require(server.localAddress?.port))
        let error = await #expect(throws: RoomError.self) {
            _ = try await connect(
                to: address, timeout: .seconds(3), patience: .milliseconds(200), limit: 1_000,
                try credentials(true))
        }
        #expect(error == RoomError.silence(of: address, isTaken: true, .unreachable))
        try await server.close()
    }

    @Test func `who does not wait any more is not told that the other side hung up`() async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let address = HostPort(
            host: "127.0.0.1", port: try #require(server.localAddress?.port))
        let (taken, take) = AsyncStream.makeStream(of: Void.self)
        let credentials = try credentials(true)
        let waiting = Task {
            try await connect(
                to: address, timeout: .seconds(3), limit: 1_000, credentials,
                whenTaken: { take.yield() })
        }
        for await _ in taken { break }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { _ = try await waiting.value }
        try await server.close()
    }

    @Test func `a handshake that comes to no end is the other side's silence`() async throws {
        let address = HostPort(host: "192.0.2.1", port: 7_430)
        let race = ConnectionRace(address, .seconds(1)) { $0.eventLoop.makeSucceededVoidFuture() }
        let error = await #expect(throws: RoomError.self) {
            _ = try await race.made(address) {
                MultiThreadedEventLoopGroup.singleton.next().makeFailedFuture(HandshakeError.late)
            }
        }
        #expect(error == RoomError.silence(of: address, isTaken: true, .unreachable))
    }

    @Test func `a server that hangs up is said to have hung up`() async throws {
        let text = try await complaint(whenServed: "", closes: true)
        #expect(text.contains("closed the connection") || text.contains("broke off"), "\(text)")
    }

    @Test func `a host that there is not is named`() async throws {
        let text = await complaint(HostPort(host: "no-such-host.invalid", port: 7_430))
        // Where names are asked for on a network that does not answer, the time runs out first.
        #expect(text.contains("no-such-host.invalid"), "\(text)")
        #expect(!text.contains("took the connection"), "\(text)")
    }
}
