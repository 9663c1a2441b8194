import Logging
import NIOCore
import NIOPosix
import Synchronization
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTrust
import TuttiWire

// Commits by datagram: what a stream loses comes 50 to 200 ms late, when its instant is over.

/// Takes notices, on any free UDP port.
final class CommitDatagramListener: Sendable {
    /// What may wait for the room; the oldest give way. A start is two of them.
    static let waitingMax = 64

    let port: UInt16
    let notices: AsyncStream<CommitDatagram>
    private let channel: any Channel
    private let opening: Opening

    /// With which tags what arrives is opened; `nil`: it carries none.
    fileprivate final class Opening: Sendable {
        let tags = Mutex<SharedRoomTags?>(nil)

        func open(_ bytes: [UInt8]) -> [UInt8]? {
            guard let tags = tags.withLock({ $0 }) else { return bytes }
            return tags { $0.open(commit: bytes, at: HostClock.now()) }.map(Array.init)
        }
    }

    /// From now on these tags count; `nil`: none.
    func take(_ tags: SharedRoomTags?) { opening.tags.withLock { $0 = tags } }

    /// - Returns: `nil` where no datagrams can be taken; the room lives by its stream alone.
    static func open(logger: Logger) async -> CommitDatagramListener? {
        do {
            return try await CommitDatagramListener()
        } catch {
            logger.info("commits come by stream alone", metadata: ["reason": "\(error)"])
            return nil
        }
    }

    private init() async throws {
        let (notices, continuation) = AsyncStream.makeStream(
            of: CommitDatagram.self, bufferingPolicy: .bufferingNewest(Self.waitingMax))
        self.notices = notices
        let opening = Opening()
        self.opening = opening
        channel = try await bindDatagrams(family: nil) { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(
                    NoticeReader(continuation, opening))
            }
        }
        port = UInt16(channel.localAddress?.port ?? 0)
    }

    func close() { channel.close(promise: nil) }
}

/// Sends notices from a leader to its rooms.
final class CommitDatagramSender: Sendable {
    /// A second copy, for when the first is lost: soon enough to be in time, late enough not to
    /// fall to the same burst of noise.
    static let repetition = TimeAmount.milliseconds(15)

    private let channel: any Channel

    /// - Parameter listener: the control service; its family reaches the addresses of its rooms.
    static func open(beside listener: any Channel, logger: Logger) async -> CommitDatagramSender? {
        do {
            return CommitDatagramSender(
                try await bindDatagrams(family: listener.localAddress?.protocol) { channel in
                    channel.eventLoop.makeSucceededVoidFuture()
                })
        } catch {
            logger.info("commits go by stream alone", metadata: ["reason": "\(error)"])
            return nil
        }
    }

    private init(_ channel: any Channel) { self.channel = channel }

    /// Puts a tag around the bytes of a notice; `nil`: not any more.
    typealias Seal = @Sendable ([UInt8]) -> [UInt8]?

    /// Sends a notice, and once more a moment later; what is lost is lost.
    ///
    /// - Parameter seal: each copy is sealed by itself, since each tag is let in once.
    func send(
        _ notice: CommitDatagram, to room: SocketAddress, port: UInt16, seal: Seal? = nil
    ) {
        var address = room
        address.port = Int(port)
        let (channel, place) = (channel, address)
        let bytes = MessageCodec.encode(notice)
        let send = { @Sendable in
            guard let sealed = seal.map({ $0(bytes) }) ?? bytes else { return }
            let datagram = AddressedEnvelope(
                remoteAddress: place, data: channel.allocator.buffer(bytes: sealed))
            channel.writeAndFlush(datagram, promise: nil)
        }
        send()
        channel.eventLoop.scheduleTask(in: Self.repetition) { send() }
    }

    func close() { channel.close(promise: nil) }
}

/// Binds a free UDP port on all addresses: of `family`, or IPv6 and with it IPv4, or IPv4.
private func bindDatagrams(
    family: NIOBSDSocket.ProtocolFamily?,
    initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
) async throws -> any Channel {
    let bootstrap = DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelInitializer(initializer)
    if family != .inet {
        do {
            return try await bootstrap.bind(to: SocketAddress(ipAddress: "::", port: 0)).get()
        } catch let error as IOError {
            if family == .inet6 { throw error }
        }
    }
    return try await bootstrap.bind(to: SocketAddress(ipAddress: "0.0.0.0", port: 0)).get()
}

/// Datagrams to notices; what is none is dropped, since anybody may send one.
private final class NoticeReader: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    private let continuation: AsyncStream<CommitDatagram>.Continuation
    private let opening: CommitDatagramListener.Opening

    init(
        _ continuation: AsyncStream<CommitDatagram>.Continuation,
        _ opening: CommitDatagramListener.Opening
    ) {
        self.continuation = continuation
        self.opening = opening
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Array(unwrapInboundIn(data).data.readableBytesView)
        guard let opened = opening.open(bytes) else { return }
        if let notice = try? MessageCodec.decodeNotice(opened) { continuation.yield(notice) }
    }

    /// An earlier datagram of ours came back; there is nothing to end.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
}
