import Foundation
import NIOCore
import NIOPosix
import Synchronization
import TuttiSecureLinks
import TuttiTrust
import TuttiWire

@testable import tutti

/// A link of the test itself, with whatever key. It does what it is told, keeps what comes, and
/// does not close by its own will. Its calls block.
final class HeldLink: Sendable {
    /// Who is at the other end.
    let peer: LinkPeer
    private let channel: any NIOCore.Channel
    private let received: Received

    private final class Received: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let bytes = Mutex<[UInt8]>([])

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let more = unwrapInboundIn(data).readableBytesView
            bytes.withLock { $0 += more }
        }

        /// The end of the channel says all.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }

    /// - Parameter connected: a connection to a node, as a descriptor, which this one closes.
    convenience init(connected: Int32, as identity: LinkIdentity, _ spoken: LinkProtocol) throws {
        try self.init(connected) { try $0.secureAsClient(identity, spoken) }
    }

    /// - Parameter accepted: a connection of somebody, as a descriptor, which this one closes.
    convenience init(accepted: Int32, as identity: LinkIdentity) throws {
        try self.init(accepted) { try $0.secureAsServer(identity) }
    }

    private init(
        _ descriptor: Int32,
        _ secure: @escaping @Sendable (any NIOCore.Channel) throws -> EventLoopFuture<LinkPeer>
    ) throws {
        let received = Received()
        // Nothing is read before there is somebody who understands it.
        let channel = try ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: false)
            .withConnectedSocket(descriptor).wait()
        peer = try channel.eventLoop.flatSubmit {
            do {
                let peer = try secure(channel)
                try channel.pipeline.syncOperations.addHandler(received)
                return peer
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
        }.wait()
        try channel.setOption(.autoRead, value: true).wait()
        self.channel = channel
        self.received = received
    }

    deinit { channel.close(promise: nil) }

    /// Whether the other side has not closed it.
    var isOpen: Bool { channel.isActive }

    /// Sends bytes; nothing comes of it where the other side has closed.
    func send(_ bytes: [UInt8]) {
        try? channel.writeAndFlush(ByteBuffer(bytes: bytes)).wait()
    }

    /// Sends a message, with its length before it.
    func say(_ message: [UInt8]) { send(FrameEncoder.frame(message)) }

    /// What has come since it was asked last; waits for the first byte of it.
    func bytes(within seconds: Double = 10) throws -> [UInt8] {
        try until("an answer on a link", seconds: seconds) { hasBytes || !isOpen }
        return received.bytes.withLock { bytes in
            defer { bytes = [] }
            return bytes
        }
    }

    /// Whether anything has come since it was asked last.
    var hasBytes: Bool { received.bytes.withLock { !$0.isEmpty } }

    /// The next message, without its length; what comes behind it is kept.
    func message(within seconds: Double = 10) throws -> [UInt8] {
        var message: [UInt8]?
        try until("a message on a link", seconds: seconds) {
            message = try received.bytes.withLock { bytes in
                var frames = FrameDecoder(limit: FrameDecoder.roomLimit)
                guard let first = try frames.feed(bytes, most: 1).first else { return nil }
                bytes.removeFirst(4 + first.count)
                return first
            }
            return message != nil || !isOpen
        }
        guard let message else { throw CommandError("a link was closed without a message") }
        return message
    }
}
