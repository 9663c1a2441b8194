import Logging
import NIOCore
import NIOPosix
import Wire

/// A TCP connection that carries envelopes.
typealias EnvelopeChannel = NIOAsyncChannel<Envelope, Envelope>

/// Bytes to envelopes and back; a peer that sends anything else is disconnected.
final class EnvelopeCodec: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = Envelope
    typealias OutboundIn = Envelope
    typealias OutboundOut = ByteBuffer

    private var decoder: FrameDecoder

    /// - Parameter limit: longest message accepted, bytes.
    init(limit: Int) { decoder = FrameDecoder(limit: limit) }

    /// On the channel's event loop.
    static func add(to channel: any Channel, limit: Int) throws {
        try channel.pipeline.syncOperations.addHandler(EnvelopeCodec(limit: limit))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        do {
            for message in try decoder.feed(buffer.readableBytesView) {
                context.fireChannelRead(wrapInboundOut(try MessageCodec.decode(message)))
            }
        } catch {
            context.fireErrorCaught(error)
            context.close(promise: nil)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bytes = FrameEncoder.frame(MessageCodec.encode(unwrapOutboundIn(data)))
        context.write(
            wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: promise)
    }
}

extension EnvelopeChannel {
    /// How long what was said last may take to leave before the connection is cut: an end that
    /// does not read would otherwise hold it for ever.
    static var lastWordLimit: TimeAmount { .seconds(1) }

    /// Says what is put into `outbox`; when that is finished, ends the connection, and with it the
    /// reading.
    func say<Message>(
        _ outbox: Outbox<Message>, on outbound: NIOAsyncChannelOutboundWriter<Envelope>,
        as envelope: (Message) -> Envelope
    ) async throws {
        for await message in outbox.messages { try await outbound.write(envelope(message)) }
        // Only our half: bytes that we have not read would make the system throw away ours.
        channel.close(mode: .output, promise: nil)
    }

    /// Cuts the connection soon after `outbox` is finished, whatever the other end does.
    func cut(after outbox: Outbox<some Sendable>) {
        let channel = channel
        outbox.whenFinished {
            channel.eventLoop.scheduleTask(in: Self.lastWordLimit) { channel.close(promise: nil) }
        }
    }
}

/// Of a name that nobody knows.
let noSuchHost = "no such host"

/// What the system said, without the library's wrapping.
func reason(of error: any Error) -> String {
    switch error {
    case let error as NIOConnectionError:
        error.connectionErrors.first.map { reason(of: $0.error) }
            ?? (error.dnsAError ?? error.dnsAAAAError).map { _ in noSuchHost } ?? "no address"
    case is SocketAddressError: noSuchHost
    case let error as IOError: String(cString: strerror(error.errnoCode))
    case ChannelError.connectTimeout: "no answer in time"
    default: "\(error)"
    }
}
