import NIOCore

/// The one TCP port of a leader: links of rooms and control clients, and the assets over HTTP, so
/// that a firewall has to be open for one number.
///
/// The first byte tells them apart. HTTP begins with a method in capital letters; a link begins with
/// the length of a message, four bytes of which the first would be 0 up to 16 MB.
final class NodeServer: Sendable {
    /// Connections at once, of all kinds; beyond, who does nothing makes room.
    static let connectionsMax = ConnectionPlaces.Limits().total
    /// Who connects has to say what it is within this time.
    static let firstWordLimit = Duration.seconds(5)

    private static let methodLetters = UInt8(ascii: "A")...UInt8(ascii: "Z")

    typealias Service = @Sendable (any Channel, Visitor) async -> Void

    private let server: NIOAsyncChannel<any Channel, Never>
    private let door: Doorkeeper

    private init(server: NIOAsyncChannel<any Channel, Never>, _ limits: ConnectionPlaces.Limits) {
        self.server = server
        door = Doorkeeper(limits)
    }

    /// Listens on all interfaces.
    ///
    /// - Parameters:
    ///   - port: 0 takes a free one; see ``port``.
    ///   - exhausted: called when there is no file for another connection, as Linux says it.
    static func open(
        _ port: Int, limits: ConnectionPlaces.Limits = .init(),
        exhausted: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> NodeServer {
        NodeServer(
            server: try await listenOnAllInterfaces(port: port, exhausted: exhausted), limits)
    }

    /// Connections of a kind at the moment.
    func count(of kind: ConnectionPlaces.Kind) -> Int { door.count(of: kind) }

    var channel: any Channel { server.channel }

    var port: Int { channel.localAddress?.port ?? 0 }

    /// Gives the port back; ``run(links:media:)`` does so itself when it ends.
    func close() { channel.close(promise: nil) }

    /// Hands each connection to whom it is for, until the task is cancelled.
    func run(links: @escaping Service, media: @escaping Service) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            try await server.executeThenClose { clients in
                for try await client in clients {
                    group.addTask { await self.serve(client, links, media) }
                }
            }
        }
    }

    private func serve(_ channel: any Channel, _ links: Service, _ media: Service) async {
        let visitor = door.enter(channel)
        defer { visitor.leave() }
        let deadline = channel.eventLoop.scheduleTask(
            in: .nanoseconds(Self.firstWordLimit.wholeNanoseconds)
        ) { channel.close(promise: nil) }
        guard let first = try? await FirstByte.read(channel) else {
            deadline.cancel()
            try? await channel.close()
            return
        }
        deadline.cancel()
        if !Self.methodLetters.contains(first) {
            // Room or client: its first message says which.
            await links(channel, visitor)
        } else if visitor.becomes(.media) {
            await media(channel, visitor)
        } else {
            // Closed without a word, it would look like a leader that fails.
            try? await channel.writeAndFlush(ByteBuffer(string: MediaService.noPlace))
        }
        // Whoever served it has closed it, if it came to be served.
        try? await channel.close()
    }
}

/// Holds back what comes until it is known who will read it.
final class FirstByte: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var held: [ByteBuffer] = []
    private var found: EventLoopPromise<UInt8>?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        held.append(buffer)
        guard let first = buffer.readableBytesView.first else { return }
        found?.succeed(first)
        found = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        found?.fail(ChannelError.eof)
        found = nil
        context.fireChannelInactive()
    }

    /// Reads until there is one; closes the channel when the task is cancelled before.
    static func read(_ channel: any Channel) async throws -> UInt8 {
        let found = channel.eventLoop.makePromise(of: UInt8.self)
        channel.eventLoop.execute {
            guard channel.isActive,
                let handler = try? channel.pipeline.syncOperations.handler(type: FirstByte.self)
            else { return found.fail(ChannelError.ioOnClosedChannel) }
            handler.found = found
            channel.read()
        }
        return try await withTaskCancellationHandler {
            try await found.futureResult.get()
        } onCancel: {
            channel.close(promise: nil)
        }
    }

    /// Passes on what was held to the handlers behind, and leaves the channel, if there is one; on
    /// the channel's event loop.
    static func release(_ channel: any Channel) {
        let context = try? channel.pipeline.syncOperations.context(handlerType: FirstByte.self)
        guard let context, let handler = context.handler as? FirstByte else { return }
        for buffer in handler.held { context.fireChannelRead(handler.wrapInboundOut(buffer)) }
        context.fireChannelReadComplete()
        channel.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }
}
