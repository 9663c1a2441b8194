import Crypto
import NIOCore
import NIOPosix
import NIOSSL
import Testing
import TuttiTrust
import X509

@testable import TuttiSecureLinks

/// Two nodes on loopback, and what else may come to the port.
@Suite struct LinkHandshakeTests {
    private static func key() throws -> NodeKey {
        try NodeKey(bytes: Array(P256.Signing.PrivateKey().rawRepresentation))
    }

    /// A server that answers one byte with the next one, and says whom it has met.
    private final class Server: Sendable {
        let channel: any Channel
        let met: AsyncStream<Result<LinkPeer, any Error>>

        init(_ identity: LinkIdentity) async throws {
            let (met, meeting) = AsyncStream.makeStream(of: Result<LinkPeer, any Error>.self)
            self.met = met
            channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelOption(.autoRead, value: false)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let done = try channel.secureAsServer(identity)
                        done.whenComplete { meeting.yield($0) }
                        done.whenSuccess { _ in
                            _ = channel.setOption(.autoRead, value: true)
                        }
                        try channel.pipeline.syncOperations.addHandler(Successor())
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
        }

        var port: Int { channel.localAddress?.port ?? 0 }

        func next() async -> Result<LinkPeer, any Error>? {
            for await one in met { return one }
            return nil
        }
    }

    private final class Successor: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data).readableBytesView.map { $0 &+ 1 }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }

    private static func connect(to port: Int) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get()
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        let got: EventLoopPromise<[UInt8]>
        init(_ got: EventLoopPromise<[UInt8]>) { self.got = got }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            got.succeed(Array(unwrapInboundIn(data).readableBytesView))
        }
        func channelInactive(context: ChannelHandlerContext) { got.fail(ChannelError.eof) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { got.fail(error) }
    }

    @Test(arguments: LinkProtocol.allCases)
    func `both sides know the other's key and what is spoken`(spoken: LinkProtocol) async throws {
        let (one, other) = (try Self.key(), try Self.key())
        let server = try await Server(LinkIdentity(one))
        defer { server.channel.close(promise: nil) }
        let identity = try LinkIdentity(other)
        let channel = try await Self.connect(to: server.port)
        let got = channel.eventLoop.makePromise(of: [UInt8].self)
        let peer = try await channel.eventLoop.flatSubmit {
            do {
                try channel.pipeline.syncOperations.addHandler(Collector(got))
                return try channel.secureAsClient(identity, spoken)
            } catch {
                got.fail(error)
                return channel.eventLoop.makeFailedFuture(error)
            }
        }.get()
        #expect(peer.key == one.publicKey)
        #expect(peer.spoken == spoken)
        let met = try await #require(server.next()).get()
        #expect(met.key == other.publicKey)
        #expect(met.spoken == spoken)
        try await channel.writeAndFlush(ByteBuffer(bytes: [41]))
        #expect(try await got.futureResult.get() == [42])
        try await channel.close()
    }

    @Test func `a certificate shows the key and is good at any time`() throws {
        let key = try Self.key()
        let certificate = try NIOSSLCertificate(
            bytes: NodeCertificate.make(for: key.signingKey), format: .der)
        let information = try certificate.extractPublicKey().toSPKIBytes()
        #expect(try PublicKey(subjectPublicKeyInfo: information) == key.publicKey)
        #expect(certificate.notValidBefore < 1_000_000_000)
        #expect(certificate.notValidAfter > 200_000_000_000)
    }

    /// What comes to a port, and what it is told: nothing, and the connection ends.
    @Test(arguments: [
        [UInt8]("GET / HTTP/1.1\r\n\r\n".utf8), [0, 0, 0, 4, 1, 2, 3, 4],
        [22, 3, 1, 0, 2, 1, 0], [UInt8](repeating: 22, count: 200_000),
        // A record of the longest length that says that a hello of 16 MB begins.
        [22, 3, 1, 64, 0, 1, 255, 255, 255] + [UInt8](repeating: 0, count: 60_000),
    ])
    func `what is no handshake ends the connection`(bytes: [UInt8]) async throws {
        let server = try await Server(LinkIdentity(Self.key()))
        defer { server.channel.close(promise: nil) }
        let channel = try await Self.connect(to: server.port)
        try? await channel.writeAndFlush(ByteBuffer(bytes: bytes))
        let met = try #require(await server.next())
        #expect(throws: HandshakeError.self) { try met.get() }
        try await channel.closeFuture.get()
    }

    @Test func `who sends less than a handshake and closes is gone`() async throws {
        let server = try await Server(LinkIdentity(Self.key()))
        defer { server.channel.close(promise: nil) }
        let channel = try await Self.connect(to: server.port)
        try await channel.writeAndFlush(ByteBuffer(bytes: [22, 3, 1]))
        try await channel.close()
        let met = try #require(await server.next())
        #expect(throws: HandshakeError.closed) { try met.get() }
    }

    private static func handshake(
        _ port: Int, _ change: (inout TLSConfiguration) throws -> Void
    ) async throws -> any Channel {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = [LinkProtocol.control.name]
        try change(&configuration)
        let context = try NIOSSLContext(configuration: configuration)
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLClientHandler(context: context, serverHostname: nil))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
    }

    enum Oddity: CaseIterable { case noCertificate, oldVersion, otherProtocol, otherKind, chain }

    @Test(arguments: Oddity.allCases)
    func `who speaks another TLS is not let in`(oddity: Oddity) async throws {
        let server = try await Server(LinkIdentity(Self.key()))
        defer { server.channel.close(promise: nil) }
        let key = try Self.key()
        let certificate = try NIOSSLCertificate(
            bytes: NodeCertificate.make(for: key.signingKey), format: .der)
        let channel = try await Self.handshake(server.port) { configuration in
            configuration.certificateChain = [.certificate(certificate)]
            configuration.privateKey = .privateKey(
                try NIOSSLPrivateKey(bytes: Array(key.signingKey.derRepresentation), format: .der))
            switch oddity {
            case .noCertificate:
                configuration.certificateChain = []
                configuration.privateKey = nil
            case .oldVersion: configuration.maximumTLSVersion = .tlsv12
            case .otherProtocol: configuration.applicationProtocols = ["h2"]
            case .otherKind:
                let other = P384.Signing.PrivateKey()
                configuration.certificateChain = [
                    .certificate(
                        try NIOSSLCertificate(
                            bytes: NodeCertificate.make(for: .init(other)), format: .der))
                ]
                configuration.privateKey = .privateKey(
                    try NIOSSLPrivateKey(bytes: Array(other.derRepresentation), format: .der))
            case .chain:
                configuration.certificateChain = [
                    .certificate(certificate), .certificate(certificate),
                ]
            }
        }
        let met = try #require(await server.next())
        #expect(throws: HandshakeError.self) { try met.get() }
        try? await channel.close()
    }

    /// The private half is proved: a certificate alone is worth nothing.
    @Test func `another's certificate without its key makes no link`() async throws {
        let server = try await Server(LinkIdentity(Self.key()))
        defer { server.channel.close(promise: nil) }
        let (own, other) = (try Self.key(), try Self.key())
        #expect(throws: (any Error).self) {
            // The library itself does not put the two together.
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.certificateChain = [
                .certificate(
                    try NIOSSLCertificate(
                        bytes: NodeCertificate.make(for: other.signingKey), format: .der))
            ]
            configuration.privateKey = .privateKey(
                try NIOSSLPrivateKey(bytes: Array(own.signingKey.derRepresentation), format: .der))
            _ = try NIOSSLContext(configuration: configuration)
        }
    }
}
