import Logging
import NIOCore
import NIOPosix
import TuttiSecureLinks
import TuttiTrust
import TuttiWire

/// A TCP connection that carries envelopes.
typealias EnvelopeChannel = NIOAsyncChannel<Envelope, Envelope>

/// Bytes to envelopes and back; a peer that sends anything else is disconnected, and one that sends
/// more than anybody needs is read more slowly (``MessagePace``).
final class EnvelopeCodec: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = Envelope
    typealias OutboundIn = Envelope
    typealias OutboundOut = ByteBuffer

    /// Between two looks at what waits, while it is held back.
    private static let look = TimeAmount.milliseconds(100)

    private var decoder: FrameDecoder
    private var pace: MessagePace
    private let crowd: Crowd
    /// Set while messages wait for their time; nothing is read meanwhile.
    private var wakeUp: Scheduled<Void>?
    /// Somebody wanted to read meanwhile.
    private var isReadWanted = false

    /// - Parameters:
    ///   - limit: longest message accepted, bytes.
    ///   - crowd: of the links that share what is read of those that flood.
    init(limit: Int, pace: MessagePace = .fromLeader, crowd: Crowd = Crowd()) {
        decoder = FrameDecoder(limit: limit)
        self.pace = pace
        self.crowd = crowd
    }

    /// On the channel's event loop.
    static func add(
        to channel: any Channel, limit: Int, pace: MessagePace = .fromLeader, crowd: Crowd = Crowd()
    ) throws {
        try channel.pipeline.syncOperations.addHandler(
            EnvelopeCodec(limit: limit, pace: pace, crowd: crowd))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        take(unwrapInboundIn(data).readableBytesView, context)
    }

    private func take(_ bytes: some Collection<UInt8>, _ context: ChannelHandlerContext) {
        do {
            let most = pace.allowed(at: .now(), crowd: crowd.count)
            let messages = try decoder.feed(bytes, most: wakeUp == nil ? most : 0)
            pace.spend(messages.count)
            for message in messages {
                context.fireChannelRead(wrapInboundOut(try MessageCodec.decode(message)))
            }
            if decoder.hasMessage { holdBack(context) }
        } catch {
            context.fireErrorCaught(error)
            context.close(promise: nil)
        }
    }

    private func holdBack(_ context: ChannelHandlerContext) {
        guard wakeUp == nil else { return }
        crowd.grow()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        wakeUp = context.eventLoop.scheduleTask(in: Self.look) {
            let (codec, context) = bound.value
            codec.goOn(context)
        }
    }

    private func goOn(_ context: ChannelHandlerContext) {
        guard wakeUp != nil else { return }
        letGo()
        take([], context)
        context.fireChannelReadComplete()
        guard wakeUp == nil, isReadWanted else { return }
        isReadWanted = false
        context.read()
    }

    private func letGo() {
        guard let wakeUp else { return }
        wakeUp.cancel()
        self.wakeUp = nil
        crowd.shrink()
    }

    func read(context: ChannelHandlerContext) {
        if wakeUp == nil { context.read() } else { isReadWanted = true }
    }

    func channelInactive(context: ChannelHandlerContext) {
        letGo()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { letGo() }

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
        for await message in outbox.messages {
            outbox.taken(message)
            // One message at most is between the box and the system.
            try await channel.hand(envelope(message))
        }
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

extension Channel {
    /// Returns when the system has taken it to send. The writer of an async channel learns from
    /// elsewhere that a connection is full, and takes dozens of messages until then.
    ///
    /// - Parameter limit: an end that does not read is disconnected after this; `nil` waits.
    func hand(_ envelope: Envelope, within limit: TimeAmount? = nil) async throws {
        let deadline = limit.map { limit in
            eventLoop.scheduleTask(in: limit) { self.close(promise: nil) }
        }
        defer { deadline?.cancel() }
        try await withTaskCancellationHandler {
            try await writeAndFlush(envelope)
        } onCancel: {
            // Who does not read never lets it go.
            close(promise: nil)
        }
    }
}

/// What the system said, without the library's wrapping.
func reason(of error: any Error) -> String {
    switch error {
    case let error as NIOConnectionError:
        error.connectionErrors.first.map { reason(of: $0.error) }
            ?? (error.dnsAError ?? error.dnsAAAAError).map { _ in noSuchHost } ?? "no address"
    case is SocketAddressError: noSuchHost
    case let error as IOError: String(cString: strerror(error.errnoCode))
    case ChannelError.connectTimeout: "no answer in time"
    case _ where isBrokenOff(error): "the connection broke off"
    case let error as StrangerError:
        "\(error.peer.fingerprint.short) is no member of this household"
    default: "\(error)"
    }
}
