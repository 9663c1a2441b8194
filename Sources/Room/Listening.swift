import NIOCore
import NIOPosix

#if canImport(Glibc)
import let Glibc.EACCES
import let Glibc.EADDRINUSE
#endif

/// Listens for TCP on the IPv6 wildcard, which takes IPv4 too, or on IPv4 where there is no IPv6.
/// Who takes a connection into use finds a ``FirstByte`` in it.
///
/// - Parameter port: 0 takes a free one.
/// - Throws: `RoomError` with code `portTaken` that says whose the port is, or what the system
///   said.
func listenOnAllInterfaces(port: Int) async throws -> NIOAsyncChannel<any Channel, Never> {
    do {
        // An address, not a name: the resolver refuses "::" on hosts whose network is IPv4 only.
        return try await bootstrap().bind(
            to: SocketAddress(ipAddress: "::", port: port), childChannelInitializer: holdBack)
    } catch let error as IOError {
        if let error = listeningError(error.errnoCode, port: port) { throw error }
    }
    do {
        return try await bootstrap().bind(
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

private func bootstrap() -> ServerBootstrap {
    ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        // Connections inherit it. Told to them when they are there, it counts only after some ten
        // round trips: what is thought of a path before it is measured follows from it.
        .serverChannelInitializer { $0.repeatSoon() }
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .childChannelOption(.autoRead, value: false)
}
