import NIOCore
import NIOPosix
import Testing

@testable import TuttiRoom

/// What a person is told who names the wrong machine or the wrong port.
@Suite(.timeLimit(.minutes(1))) struct WrongAddressTests {
    /// Says `greeting` to whoever says something, and hangs up where `closes` is set.
    private final class Greeter: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let greeting: String
        private let closes: Bool

        init(_ greeting: String, closes: Bool) {
            self.greeting = greeting
            self.closes = closes
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !greeting.isEmpty || closes else { return }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
            if closes { context.close(promise: nil) }
        }
    }

    private func complaint(
        whenServed greeting: String, closes: Bool = false
    ) async throws -> String {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.pipeline.addHandler(Greeter(greeting, closes: closes))
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let text = await complaint(HostPort(host: "127.0.0.1", port: port))
        try await server.close()
        return text
    }

    private func complaint(_ address: HostPort) async -> String {
        do {
            _ = try await GroupClient.connect(to: address, timeout: .milliseconds(800))
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test func `a web server on the port is called no leader`() async throws {
        let text = try await complaint(
            whenServed: "HTTP/1.1 400 Bad Request\r\nContent-Length: 11\r\n\r\nBad Request")
        #expect(text.contains("no Tutti leader"), "\(text)")
        #expect(!text.contains("frame") && !text.contains("tooLong"), "\(text)")
    }

    @Test func `a server that is silent is said to have taken the connection`() async throws {
        let text = try await complaint(whenServed: "")
        #expect(text.contains("took the connection"), "\(text)")
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
