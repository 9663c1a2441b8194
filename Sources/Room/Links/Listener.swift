import NIOCore
import NIOPosix

#if canImport(Glibc)
import let Glibc.EACCES
import let Glibc.EADDRINUSE
import let Glibc.EMFILE
import let Glibc.ENFILE
import let Glibc.ENOBUFS
import let Glibc.ENOMEM
#endif

/// Listens for TCP on the IPv6 wildcard, which takes IPv4 too, or on IPv4 where there is no IPv6.
/// Who takes a connection into use finds a ``FirstByte`` in it.
///
/// - Parameters:
///   - port: 0 takes a free one.
///   - exhausted: called when there is no file for another connection, as Linux says it.
/// - Throws: `RoomError` with code `portTaken` that says whose the port is, or what the system
///   said.
func listenOnAllInterfaces(
    port: Int, exhausted: @escaping @Sendable (String) -> Void = { _ in }
) async throws -> NIOAsyncChannel<any Channel, Never> {
    do {
        // An address, not a name: the resolver refuses "::" on hosts whose network is IPv4 only.
        return try await bootstrap(exhausted).bind(
            to: SocketAddress(ipAddress: "::", port: port), childChannelInitializer: holdBack)
    } catch let error as IOError {
        if let error = listeningError(error.errnoCode, port: port) { throw error }
    }
    do {
        return try await bootstrap(exhausted).bind(
            to: SocketAddress(ipAddress: "0.0.0.0", port: port), childChannelInitializer: holdBack)
    } catch let error as IOError {
        throw listeningError(error.errnoCode, port: port)
            ?? RoomError(.portTaken, "TCP port \(port) cannot be listened on: \(error)")
    }
}

@Sendable
private func holdBack(_ channel: any Channel) -> EventLoopFuture<any Channel> {
    channel.eventLoop.makeCompletedFuture {
        try channel.pipeline.syncOperations.addHandler(FirstByte())
        return channel
    }
}

/// What the IPv4 wildcard would not do better.
///
/// - Returns: `nil` for what may be the lack of IPv6.
func listeningError(_ code: CInt, port: Int) -> RoomError? {
    switch code {
    case EADDRINUSE:
        RoomError(
            .portTaken,
            "TCP port \(port) is taken, perhaps by another leader on this machine: stop it, or choose another port with --port (0 takes a free one)"
        )
    case EACCES:
        RoomError(
            .portTaken,
            "TCP port \(port) is not for ordinary users: choose one from 1024 on with --port (0 takes a free one)"
        )
    default: nil
    }
}

extension Channel {
    /// Takes a connection into use, and begins to read.
    ///
    /// One that was accepted not before somebody serves it: an async channel that is accepted and
    /// then dropped, since the service is ending, is a programming error to NIO and ends the process.
    ///
    /// - Parameter addHandlers: puts into the pipeline what makes values of bytes, where that is not
    ///   done yet.
    func asyncChannel<In: Sendable, Out: Sendable>(
        of type: NIOAsyncChannel<In, Out>.Type,
        addHandlers: @escaping @Sendable (any Channel) throws -> Void = { _ in }
    ) async throws -> NIOAsyncChannel<In, Out> {
        try await eventLoop.submit {
            guard self.isActive else { throw ChannelError.ioOnClosedChannel }
            try addHandlers(self)
            let channel = try NIOAsyncChannel<In, Out>(wrappingChannelSynchronously: self)
            FirstByte.release(self)
            _ = self.setOption(.autoRead, value: true)
            return channel
        }.get()
    }
}

/// What the system holds of what a connection says, bytes; Linux allows twice that, for its own
/// bookkeeping.
private let receiveBuffer: SocketOptionValue = 65_536

private func bootstrap(_ exhausted: @escaping @Sendable (String) -> Void) -> ServerBootstrap {
    ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        // Connections inherit it. What comes is short; the system would hold megabytes of each that
        // is read more slowly than it sends.
        .serverChannelOption(.socketOption(.so_rcvbuf), value: receiveBuffer)
        // Connections inherit it. Told to them when they are there, it counts only after some ten
        // round trips: what is thought of a path before it is measured follows from it.
        .serverChannelInitializer { channel in
            channel.repeatSoon().flatMapThrowing {
                try channel.pipeline.syncOperations.addHandler(AcceptPause(exhausted))
            }
        }
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        // What is read and cannot be used yet is held for each connection.
        .childChannelOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 2_048, maximum: 16_384)
        )
        .childChannelOption(.maxMessagesPerRead, value: 1)
        .childChannelOption(.autoRead, value: false)
}

/// Waits before the next connection is accepted, when there is no file for one.
///
/// The connection stays in the system's queue, so the socket goes on being readable, and accepting
/// would fail again at once: a core does nothing else (NIO's own back-off leaves the socket
/// registered). Closed connections give files back meanwhile.
final class AcceptPause: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    /// Short for who waits in the queue, long for a processor.
    static let pause = TimeAmount.milliseconds(500)
    private static let codes = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

    /// So long after it was said it is news again.
    private static let silence = TimeAmount.minutes(1)

    private let exhausted: (String) -> Void
    private var saidAt: NIODeadline?
    private var isPaused = false
    private var isReadWanted = false

    init(_ exhausted: @escaping (String) -> Void) { self.exhausted = exhausted }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, Self.codes.contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        guard !isPaused else { return }
        isPaused = true
        if saidAt.map({ NIODeadline.now() - $0 >= Self.silence }) ?? true {
            exhausted(reason(of: error))
            saidAt = .now()
        }
        let channel = context.channel
        // Takes the socket out of what is waited for.
        _ = channel.setOption(.autoRead, value: false)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) {
            bound.value.isPaused = false
            _ = channel.setOption(.autoRead, value: true)
            if bound.value.isReadWanted { channel.read() }
            bound.value.isReadWanted = false
        }
    }

    func read(context: ChannelHandlerContext) {
        if isPaused { isReadWanted = true } else { context.read() }
    }
}
