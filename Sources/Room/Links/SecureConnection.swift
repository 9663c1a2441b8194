import NIOCore
import NIOPosix
import TuttiSecureLinks
import TuttiTrust
import TuttiWire

/// A connection to another node, and who is there; nobody is known in an open group.
struct MadeConnection: Sendable {
    var channel: any Channel
    var peer: LinkPeer?
}

extension MadeConnection {
    /// What the connection carries, to be read and written.
    ///
    /// - Throws: `RoomError`, code `unreachable`, where the other side has closed it meanwhile.
    func asyncChannel<In: Sendable, Out: Sendable>(
        of type: NIOAsyncChannel<In, Out>.Type, at address: HostPort
    ) async throws -> NIOAsyncChannel<In, Out> {
        do {
            return try await channel.asyncChannel(of: type)
        } catch let error as ChannelError {
            throw RoomError(
                .unreachable, "\(address) closed the link without a word (\(reason(of: error)))")
        }
    }
}

/// The other end has shown a key, and it is none of a member of this node's household.
struct StrangerError: Error {
    var peer: LinkPeer
}

extension ConnectionRace {
    /// The winner, made a link where there is a household.
    ///
    /// - Parameter fromAnybody: whether the other side may be of another household. If not, and it
    ///   is, fails with ``StrangerError`` before anything is said to it.
    func link(
        _ credentials: Credentials, _ spoken: LinkProtocol, fromAnybody: Bool = false
    ) -> EventLoopFuture<MadeConnection> {
        winner().flatMap { channel in
            guard case .household(let keeper) = credentials.kind else {
                return channel.eventLoop.makeSucceededFuture(MadeConnection(channel: channel))
            }
            let secured = channel.eventLoop.flatSubmit { () -> EventLoopFuture<LinkPeer> in
                // Who is called waits for the first word.
                if let early = FirstByte.early(channel) {
                    return channel.eventLoop.makeFailedFuture(HandshakeError.speaking(early))
                }
                do {
                    return try channel.secureAsClient(keeper.identity, spoken)
                } catch {
                    return channel.eventLoop.makeFailedFuture(error)
                }
            }
            secured.whenFailure { _ in channel.close(promise: nil) }
            return secured.flatMapThrowing { peer in
                guard fromAnybody || keeper.isMember(peer.key) else {
                    channel.close(promise: nil)
                    throw StrangerError(peer: peer)
                }
                if !fromAnybody { keeper.bind(channel, to: peer.key) }
                return MadeConnection(channel: channel, peer: peer)
            }
        }
    }
}

/// A link that carries messages of bytes, each after its length: what is said about households.
typealias MessageChannel = NIOAsyncChannel<[UInt8], [UInt8]>

/// Bytes to messages and back; a peer that sends a longer one is disconnected.
final class MessageCodecHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = [UInt8]
    typealias OutboundIn = [UInt8]
    typealias OutboundOut = ByteBuffer

    /// Triggered when the other side is known for a member: it may say more from now on.
    struct PeerIsMember: Sendable {}

    private var frames: FrameDecoder
    /// Bytes that may still come of a stranger; `nil` for a member.
    private var bytesOfStranger: Int?

    /// - Parameters:
    ///   - limit: longest message accepted, bytes.
    ///   - mostOfStranger: all that may come before ``PeerIsMember``, bytes; `nil`: no matter who.
    init(limit: Int, mostOfStranger: Int? = nil) {
        frames = FrameDecoder(limit: limit)
        bytesOfStranger = mostOfStranger
    }

    func triggerUserOutboundEvent(
        context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
    ) {
        guard event is PeerIsMember else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        bytesOfStranger = nil
        promise?.succeed(())
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            let bytes = unwrapInboundIn(data).readableBytesView
            if let left = bytesOfStranger {
                guard bytes.count <= left else { return context.close(promise: nil) }
                bytesOfStranger = left - bytes.count
            }
            for message in try frames.feed(bytes) {
                context.fireChannelRead(wrapInboundOut(message))
            }
        } catch {
            context.fireErrorCaught(error)
            context.close(promise: nil)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bytes = FrameEncoder.frame(unwrapOutboundIn(data))
        context.write(
            wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: promise)
    }
}

extension MessageChannel {
    /// The other side has to say something before this; to be cancelled when it has.
    func answerDeadline() -> Scheduled<Void> {
        let channel = channel
        return channel.eventLoop.scheduleTask(in: HouseholdLink.patience) {
            channel.close(promise: nil)
        }
    }

    /// Returns when the other side has closed, after it has read the last word of this one, or after
    /// a while. Who closes with something unread takes its last word back (RFC 1122, 4.2.2.13).
    func untilClosed() async {
        let deadline = answerDeadline()
        defer { deadline.cancel() }
        try? await channel.closeFuture.get()
    }

    /// Connects to what a node has to say about its household.
    ///
    /// - Parameter limit: longest message accepted, bytes.
    /// - Throws: `RoomError`, code `unreachable`, that names the address and the cause.
    static func connect(
        to address: HostPort, _ keeper: HouseholdKeeper, _ spoken: LinkProtocol, limit: Int,
        timeout: TimeAmount = .seconds(3)
    ) async throws -> (MessageChannel, LinkPeer) {
        let race = ConnectionRace(address, timeout) { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandlers(
                    FirstByte(), MessageCodecHandler(limit: limit))
            }
        }
        let credentials = Credentials(kind: .household(keeper))
        let made = try await race.made(address) {
            race.link(credentials, spoken, fromAnybody: true)
        }
        guard let peer = made.peer else { throw HandshakeError.noNode }
        return (try await made.asyncChannel(of: MessageChannel.self, at: address), peer)
    }
}

extension ConnectionRace {
    /// Waits for what `link` makes, and says in a sentence what went wrong.
    ///
    /// - Throws: `RoomError`, code `unreachable`, that names the address and the cause;
    ///   ``StrangerError``; `CancellationError`.
    func made(
        _ address: HostPort, _ link: () -> EventLoopFuture<MadeConnection>
    ) async throws -> MadeConnection {
        do {
            let future = link()
            return try await withTaskCancellationHandler {
                try await future.get()
            } onCancel: {
                cancel()
            }
        } catch let error as StrangerError {
            throw error
        } catch  where isOver {
            throw RoomError.silence(of: address, isTaken: isTaken, .unreachable)
        } catch is CancellationError {
            throw CancellationError()
        } catch  where Task.isCancelled {
            // The connection was closed by this side, which does not wait any more.
            throw CancellationError()
        } catch HandshakeError.late {
            throw RoomError.silence(of: address, isTaken: true, .unreachable)
        } catch HandshakeError.speaks(let what?) {
            throw RoomError(
                .unreachable,
                "what listens at \(address) is \(what), and no Tutti: is the port right? A leader's is \(HostPort.defaultPort) as a rule"
            )
        } catch let error as HandshakeError {
            throw RoomError(
                .unreachable,
                "what listens at \(address) makes no link (\(error)): is it an open group (--open), an older Tutti, or no Tutti at all?",
                call: error.call)
        } catch {
            let cause = reason(of: error)
            if cause == noSuchHost {
                throw RoomError(
                    .unreachable,
                    "there is no host \"\(address.host)\" on this network; check the name, or find leaders with tutti rooms"
                )
            }
            throw RoomError(
                .unreachable,
                "no leader answers at \(address) (\(cause)): is `tutti lead` running there, and is the port open?"
            )
        }
    }
}
