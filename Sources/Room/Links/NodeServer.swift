import Logging
import NIOCore
import Synchronization
import TuttiGroupControl
import TuttiLinuxHost
import TuttiSecureLinks
import TuttiTrust
import TuttiWire

/// The one TCP port of a leader: links of rooms and control clients, the assets over HTTP, and what
/// is to be said about the household, so that a firewall has to be open for one number.
///
/// In a household the handshake of TLS tells them apart (ALPN), and who is no member gets no further.
/// In an open group the first byte does: HTTP begins with a method in capital letters; a link begins
/// with the length of a message, four bytes of which the first would be 0 up to 16 MB.
final class NodeServer: Sendable {
    /// Connections at once, of all kinds; beyond, who does nothing makes room.
    static let connectionsMax = ConnectionPlaces.Limits().total
    /// Who connects has to say what it is within this time.
    static let firstWordLimit = Duration.seconds(5)

    private static let methodLetters = UInt8(ascii: "A")...UInt8(ascii: "Z")
    /// A record of TLS that begins a handshake (RFC 8446, 5.1).
    private static let handshakeByte: UInt8 = 22

    typealias Service = @Sendable (any Channel, Visitor) async -> Void

    /// What comes to the port is for whoever the node is just now.
    struct Handlers: Sendable {
        /// Links of rooms and control clients.
        var links: Service
        var media: Service
        /// Called when somebody was removed, whose links are closed by then.
        var removed: @Sendable () async -> Void = {}
    }

    private let server: NIOAsyncChannel<any Channel, Never>
    private let door: Doorkeeper
    /// `nil`: everybody may come in.
    let desk: HouseholdDesk?
    private let attendance: Attendance
    private let pace = Mutex(HandshakePace(at: HostClock.now()))
    private let handlers = Mutex<Handlers?>(nil)

    private init(
        server: NIOAsyncChannel<any Channel, Never>, _ limits: ConnectionPlaces.Limits,
        _ desk: HouseholdDesk?, _ attendance: Attendance
    ) {
        self.server = server
        self.desk = desk
        self.attendance = attendance
        door = Doorkeeper(limits)
    }

    /// Listens on all interfaces.
    ///
    /// - Parameters:
    ///   - port: 0 takes a free one; see ``port``.
    ///   - credentials: of the node; who comes has to be of its household.
    ///   - exhausted: called when there is no file for another connection, as Linux says it.
    static func open(
        _ port: Int, limits: ConnectionPlaces.Limits = .init(), credentials: Credentials = .open,
        logger: Logger = Logger(label: "tutti"),
        exhausted: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> NodeServer {
        let attendance = Attendance()
        return NodeServer(
            server: try await listenOnAllInterfaces(port: port, exhausted: exhausted), limits,
            credentials.keeper.map { HouseholdDesk($0, attendance, logger: logger) }, attendance)
    }

    /// The same for a node, with as many places as it may have files.
    static func open(_ configuration: NodeConfiguration, port: Int) async throws -> NodeServer {
        let logger = configuration.logger
        let files = OpenFiles.allow(LeaderNode.openFiles) - OpenFiles.ownUse
        return try await open(
            port, limits: ConnectionPlaces.Limits().fitting(files),
            credentials: configuration.credentials, logger: logger
        ) { reason in
            logger.warning(
                "no connection can be accepted for the moment", metadata: ["reason": "\(reason)"])
        }
    }

    /// Connections of a kind at the moment.
    func count(of kind: ConnectionPlaces.Kind) -> Int { door.count(of: kind) }

    var channel: any Channel { server.channel }

    var port: Int { channel.localAddress?.port ?? 0 }

    /// Gives the port back; ``run()`` does so itself when it ends.
    func close() { channel.close(promise: nil) }

    /// From now on connections are for these; who has come before stays where it is.
    func serve(by handlers: Handlers) { self.handlers.withLock { $0 = handlers } }

    /// Hands each connection to whom it is for, until the task is cancelled.
    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            if let keeper = desk?.keeper {
                group.addTask { await self.sendAway(whoLeaves: keeper) }
            }
            try await server.executeThenClose { clients in
                for try await client in clients {
                    group.addTask { await self.serve(client) }
                }
            }
            group.cancelAll()
        }
    }

    /// Who is removed has no link from that moment on.
    private func sendAway(whoLeaves keeper: HouseholdKeeper) async {
        var before: Set<Fingerprint> = []
        for await _ in keeper.changes() {
            guard let household = keeper.household else { continue }
            if case .removed(_, _)? = keeper.ownStanding, !before.isEmpty {
                desk?.tellOfRemoval()
            }
            attendance.close { household.member($0) != nil }
            desk?.householdChanged()
            let members = Set(household.members.map(\.fingerprint))
            if !before.isSubset(of: members) { await handlers.withLock { $0 }?.removed() }
            before = members
        }
    }

    private func serve(_ channel: any Channel) async {
        guard let handlers = handlers.withLock({ $0 }) else {
            try? await channel.close()
            return
        }
        let address = channel.strangersAddress
        let visitor = door.enter(channel, isKnown: pace.withLock { $0.knows(address) })
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
        switch (desk, first) {
        case (nil, Self.methodLetters):
            await serve(media: channel, visitor, handlers.media)
        case (nil, Self.handshakeByte):
            // A member of a household: to it this group is a stranger's.
            break
        case (nil, _):
            // Room or client: its first message says which.
            channel.markAsControl()
            await handlers.links(channel, visitor)
        case (let desk?, Self.handshakeByte):
            guard pace.withLock({ $0.admits(address, at: HostClock.now()) })
            else { break }
            await serve(secured: channel, visitor, desk, handlers)
        case (_?, _):
            try? await channel.writeAndFlush(ByteBuffer(bytes: Self.refusal(first)))
        }
        // Whoever served it has closed it, if it came to be served.
        try? await channel.close()
    }

    private func serve(media channel: any Channel, _ visitor: Visitor, _ media: Service) async {
        if visitor.becomes(.media) {
            await media(channel, visitor)
        } else {
            // Closed without a word, it would look like a leader that fails.
            try? await channel.writeAndFlush(ByteBuffer(string: MediaService.noPlace))
        }
    }

    private func serve(
        secured channel: any Channel, _ visitor: Visitor, _ desk: HouseholdDesk,
        _ handlers: Handlers
    ) async {
        let secured = channel.eventLoop.flatSubmit {
            do {
                let peer = try channel.secureAsServer(desk.keeper.identity)
                // Holds back what comes with the end of the handshake.
                try channel.pipeline.syncOperations.addHandler(FirstByte())
                FirstByte.release(channel)
                return peer
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
        }
        let peer = await withTaskCancellationHandler {
            try? await secured.get()
        } onCancel: {
            channel.close(promise: nil)
        }
        guard let peer else { return }
        switch peer.spoken {
        case .household:
            // Strangers, as long as they have the place of one.
            await desk.serve(channel, peer, visitor)
        case .pairing, .invite:
            guard visitor.becomes(.candidate) else { return }
            await desk.serve(channel, peer, visitor)
        case .control, .media:
            guard desk.keeper.isMember(peer.key) else { return }
            let presence = attendance.enter(peer.fingerprint, channel)
            defer { attendance.leave(presence) }
            // It may have been removed since it was looked up.
            guard desk.keeper.isMember(peer.key) else { return }
            pace.withLock { $0.know(channel.strangersAddress, at: HostClock.now()) }
            if peer.spoken == .media {
                await serve(media: channel, visitor, handlers.media)
            } else {
                channel.markAsControl()
                await handlers.links(channel, visitor)
            }
        }
    }

    /// To who speaks in the clear, in its own words: a browser, or a node of an open group.
    private static func refusal(_ first: UInt8) -> [UInt8] {
        let reason =
            "this group belongs to a household, and only its members are let in; `tutti join` pairs a machine with it"
        if methodLetters.contains(first) {
            return Array(
                "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: \(reason.utf8.count)\r\n\r\n\(reason)"
                    .utf8)
        }
        // Whichever it is, it reads the one that is for it.
        let answers: [Envelope] = [
            .toRoom(.refused(reason: reason)), .reply(.refused(reason: reason)),
        ]
        return answers.flatMap { FrameEncoder.frame(MessageCodec.encode($0)) }
    }
}

extension Channel {
    /// Of the other side; `nil` on this machine.
    fileprivate var strangersAddress: String? { isFromHere ? nil : remoteAddress?.ipAddress ?? "?" }
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

    /// What has come and is held; on the channel's event loop.
    static func early(_ channel: any Channel) -> ByteBufferView? {
        let handler = try? channel.pipeline.syncOperations.handler(type: FirstByte.self)
        return handler?.held.first?.readableBytesView
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
