package import NIOCore
import NIOSSL
import NIOTLS
import Synchronization
package import TuttiTrust

/// Who is at the other end of a link, and what is spoken on it.
package struct LinkPeer: Sendable {
    /// Its key: the handshake has shown that it has the private half.
    package var key: PublicKey
    package var spoken: LinkProtocol

    package var fingerprint: Fingerprint { key.fingerprint }
}

/// Why a handshake did not come about.
package enum HandshakeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The other side closed the connection, as what speaks no TLS does.
    case closed
    /// It did not come to an end in time.
    case late
    /// It sent more than any handshake has.
    case tooLong
    /// It speaks something else altogether; what, where that is known.
    case speaks(String?)
    /// It speaks TLS, and nothing that is ours.
    case nothingInCommon
    /// It has no certificate that could be a node's.
    case noNode
    /// The words of the library are for those who look into it.
    case failed(String)

    package var description: String {
        switch self {
        case .closed: "the connection was closed during the handshake"
        case .late: "no answer in time"
        case .tooLong: "the handshake is longer than any of ours"
        case .speaks(let what): what.map { "it is \($0)" } ?? "it does not speak TLS"
        case .nothingInCommon: "it speaks TLS, but no protocol of Tutti"
        case .noNode: "it shows no certificate of a Tutti node"
        case .failed: "the handshake failed"
        }
    }

    /// Of what begins with these bytes, and is no handshake.
    package static func speaking(_ bytes: ByteBufferView) -> HandshakeError {
        if bytes.starts(with: "HTTP/".utf8) { return .speaks("a web server") }
        return .speaks(bytes.starts(with: "SSH-".utf8) ? "an SSH server" : nil)
    }

    /// What the library says; empty where it says nothing.
    package var call: String { if case .failed(let call) = self { call } else { "" } }
}

/// What a handshake may cost who waits for the other side.
package enum HandshakeLimits {
    /// From the first byte to the end. A handshake on a slow wifi takes a tenth.
    package static let time = TimeAmount.seconds(5)
    /// Bytes of the other side before it is known who it is. Ours are below 2 000 each way, also
    /// with a post-quantum key share.
    package static let byteCount = 16_384
}

extension Channel {
    /// Makes a link of an accepted connection, on its event loop. What is in the pipeline already gets
    /// what comes over the wire; what is added afterwards, what the other side says.
    package func secureAsServer(_ identity: LinkIdentity) throws -> EventLoopFuture<LinkPeer> {
        let seen = SeenKey()
        return try secure(
            NIOSSLServerHandler(context: identity.server, customVerificationCallback: seen.take),
            seen, at: .last)
    }

    /// Makes a link of a connection that was just made, on its event loop. What is in the pipeline
    /// already gets what the other side says in plain text.
    ///
    /// - Parameter spoken: what the other side has to speak.
    package func secureAsClient(
        _ identity: LinkIdentity, _ spoken: LinkProtocol
    ) throws -> EventLoopFuture<LinkPeer> {
        guard let context = identity.client(spoken) else { throw HandshakeError.nothingInCommon }
        let seen = SeenKey()
        return try secure(
            // By address and not by name: who it is, its key says.
            NIOSSLClientHandler(
                context: context, serverHostname: nil, customVerificationCallback: seen.take),
            seen, at: .first)
    }

    private func secure(
        _ handler: some ChannelHandler, _ seen: SeenKey,
        at position: ChannelPipeline.SynchronousOperations.Position
    ) throws -> EventLoopFuture<LinkPeer> {
        // All of this fails where the connection is closed already.
        let isReadingAnyway = try syncOptions?.getOption(.autoRead) ?? true
        let done = eventLoop.makePromise(of: LinkPeer.self)
        do {
            try pipeline.syncOperations.addHandlers(
                [
                    HandshakeMeter(), handler,
                    HandshakeEnd(seen, done, readsAfterwards: isReadingAnyway),
                ],
                position: position)
            // A connection that reads only when asked would never come to its end.
            try syncOptions?.setOption(.autoRead, value: true)
        } catch {
            done.fail(error)
        }
        return done.futureResult
    }
}

/// The key that the other side has shown in its certificate.
private final class SeenKey: Sendable {
    private let found = Mutex<PublicKey?>(nil)

    var key: PublicKey? { found.withLock { $0 } }

    /// Instead of all that the library would check. One certificate, with a key that a node can have.
    @Sendable func take(
        _ chain: [NIOSSLCertificate], _ verdict: EventLoopPromise<NIOSSLVerificationResult>
    ) {
        guard chain.count == 1, let information = try? chain[0].extractPublicKey().toSPKIBytes(),
            let key = try? PublicKey(subjectPublicKeyInfo: information)
        else { return verdict.succeed(.failed) }
        found.withLock { $0 = key }
        verdict.succeed(.certificateVerified)
    }
}

/// Counts what comes before the handshake is over, looks what it begins with, and leaves with it.
private final class HandshakeMeter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Change cipher spec, alert, handshake, application data (RFC 8446, 5.1).
    private static let recordTypes: ClosedRange<UInt8> = 20...23

    private var left = HandshakeLimits.byteCount

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data).readableBytesView
        if left == HandshakeLimits.byteCount, let first = bytes.first,
            !Self.recordTypes.contains(first)
        {
            return end(.speaking(bytes), context)
        }
        left -= bytes.count
        guard left >= 0 else { return end(.tooLong, context) }
        context.fireChannelRead(data)
    }

    private func end(_ error: HandshakeError, _ context: ChannelHandlerContext) {
        context.fireErrorCaught(error)
        context.close(promise: nil)
    }
}

/// Waits for the end of the handshake, holds back what comes with it, and leaves.
private final class HandshakeEnd: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let seen: SeenKey
    private let readsAfterwards: Bool
    private var done: EventLoopPromise<LinkPeer>?
    private var deadline: Scheduled<Void>?

    init(_ seen: SeenKey, _ done: EventLoopPromise<LinkPeer>, readsAfterwards: Bool) {
        self.seen = seen
        self.done = done
        self.readsAfterwards = readsAfterwards
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: HandshakeLimits.time) {
            bound.value.fail(.late)
            channel.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        let pipeline = context.pipeline.syncOperations
        if let meter = try? pipeline.context(handlerType: HandshakeMeter.self) {
            pipeline.removeHandler(context: meter, promise: nil)
        }
        guard let key = seen.key else { return end(.noNode, context) }
        guard let spoken = negotiated.flatMap(LinkProtocol.init(rawValue:)) else {
            return end(.nothingInCommon, context)
        }
        // At once, so that nothing is read before somebody takes it.
        try? context.channel.syncOptions?.setOption(.autoRead, value: readsAfterwards)
        succeed(LinkPeer(key: key, spoken: spoken))
        pipeline.removeHandler(context: context, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard done != nil else { return context.fireErrorCaught(error) }
        end(Self.reason(of: error, key: seen.key), context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(.closed)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { fail(.closed) }

    private static func reason(of error: any Error, key: PublicKey?) -> HandshakeError {
        switch error {
        case let error as HandshakeError: error
        case NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake])): .closed
        case NIOSSLError.handshakeFailed(.sslError(let stack)):
            .failed(stack.map { "\($0)" }.joined(separator: ", "))
        case NIOSSLError.uncleanShutdown, is IOError, ChannelError.eof: .closed
        default: .failed("\(error)")
        }
    }

    private func end(_ error: HandshakeError, _ context: ChannelHandlerContext) {
        fail(error)
        context.close(promise: nil)
    }

    private func fail(_ error: HandshakeError) {
        deadline?.cancel()
        done?.fail(error)
        done = nil
    }

    private func succeed(_ peer: LinkPeer) {
        deadline?.cancel()
        done?.succeed(peer)
        done = nil
    }
}

/// Whether a link broke off without the word that it ends, as one does whose other end is killed.
package func isBrokenOff(_ error: any Error) -> Bool {
    if case NIOSSLError.uncleanShutdown = error { true } else { false }
}
