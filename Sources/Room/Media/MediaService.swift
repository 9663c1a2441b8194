import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TuttiFFmpegMedia
import TuttiPlayout

import Glibc

/// Serves assets by content hash over HTTP, with ranges, to the rooms of the group.
///
/// `GET /asset/HASH` with HASH the 64 lower-case hexadecimal digits of the SHA-256, and
/// `GET /asset/HASH/pieces` for the hashes of its pieces. Only what was shared with
/// ``share(hash:path:)`` can be read, whatever the path of the request says.
///
/// Where there are ``Uploads``, `PUT /upload/HASH?NAME` takes a file of another machine, of which HASH
/// is the SHA-256; `POST` to the same address asks whether it would be taken.
final class MediaService: Sendable {
    /// For a node's door: files are read where waiting for a disk holds up nobody.
    var handler: NodeServer.Service {
        { connection, visitor in
            await withTaskExecutorPreference(globalConcurrentExecutor) {
                await self.serve(connection, visitor)
            }
        }
    }

    /// Its answers are written to the channel itself, by ``send(_:on:)``.
    typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, Never>

    /// More connections at once than a group has rooms: a LAN guest cannot use up our files.
    static let connectionsMax = 256
    /// What may be on the way to one room, bytes; Linux allows twice that, for its own bookkeeping.
    /// By itself it would put megabytes into the queue of a slow link, before the packets of the
    /// clock. Enough for 40 Mbit/s over a round trip of 25 ms.
    static let sendBuffer = 131_072
    /// Answers at once with bytes that are still arriving here: some for each room of a large group.
    static let mostRelayed = 64
    /// A connection that asks nothing for this long is closed.
    static let idleLimit = TimeAmount.seconds(60)

    /// To a reader for which there is no place: it comes again.
    static let noPlace =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
        + "Content-Length: 0\r\n\r\n"

    /// What is behind the address of an asset for the hashes of its pieces.
    static let piecesSuffix = "/pieces"

    /// The hashes of what was shared lately.
    let pieces = PieceLists()

    private struct Shared {
        var path: String
        /// When it was hashed; `nil` for files that nobody writes to.
        var identity: FileIdentity?
    }

    private let shared = Mutex<[String: Shared]>([:])
    /// Open files, which are there still when their names are gone.
    private let held = Mutex<[String: SharedFile]>([:])
    private let provider = Mutex<Provider?>(nil)
    private let owner = Mutex<Owner?>(nil)
    /// Answers with bytes that arrive; each may hold a thread that waits.
    private let relaying = Atomic(0)
    private let logger: Logger
    /// `nil`: none are taken.
    let uploads: Uploads?

    init(logger: Logger, uploads: Uploads? = nil) {
        self.logger = logger
        self.uploads = uploads
    }

    /// Makes a local file available under its hash.
    ///
    /// - Parameter identity: of the file when it was hashed: once it is another, or written to,
    ///   nothing of it is sent any more.
    func share(hash: String, path: String, identity: FileIdentity? = nil) {
        shared.withLock { $0[hash] = Shared(path: path, identity: identity) }
    }

    func withdraw(hash: String) { shared.withLock { $0[hash] = nil } }

    /// From now on these alone are kept open: what plays in rooms that have not fetched all of it
    /// must not end because somebody removed the file. Blocks.
    func hold(_ hashes: [String]) {
        let missing = held.withLock { held in
            held = held.filter { hashes.contains($0.key) }
            return hashes.filter { held[$0] == nil }
        }
        for hash in missing {
            guard let file = file(ofHash: hash)?.file else { continue }
            held.withLock { $0[hash] = file }
        }
    }

    /// Asked for what is not shared, with its hash. Returns it while it arrives; `nil` when it is
    /// shared by then, or cannot be had.
    typealias Provider = @Sendable (String) async -> IncomingFile?

    func provide(_ provider: @escaping Provider) { self.provider.withLock { $0 = provider } }

    /// Asked for what is not shared, with its hash: whether it will be in a while, since it is being read.
    typealias Owner = @Sendable (String) -> Bool

    /// - Parameter owner: `nil`: what is not shared is not here.
    func own(_ owner: Owner?) { self.owner.withLock { $0 = owner } }

    func path(ofHash hash: String) -> String? { shared.withLock { $0[hash]?.path } }

    private func file(ofHash hash: String) -> (path: String, file: SharedFile?)? {
        shared.withLock { $0[hash] }.map {
            ($0.path, SharedFile(path: $0.path, identity: $0.identity) ?? heldFile(ofHash: hash))
        }
    }

    private func heldFile(ofHash hash: String) -> SharedFile? {
        held.withLock { $0[hash] }.flatMap { $0.isUnwritten ? $0 : nil }
    }

    /// Answers what is asked on one connection, until its end.
    ///
    /// - Parameter visitor: who keeps the place of a connection that has nothing to say.
    func serve(_ channel: any Channel, _ visitor: Visitor? = nil) async {
        do {
            let client = try await channel.asyncChannel(of: Connection.self) {
                try Self.addHandlers(to: $0)
            }
            try await client.executeThenClose { inbound in
                var parts = inbound.makeAsyncIterator()
                while let part = try await parts.next(isolation: #isolation) {
                    guard case .head(let request) = part else { continue }
                    visitor?.isUseful(andBusy: true)
                    let progress = { visitor?.isUseful(andBusy: true) ?? () }
                    if request.uri.hasPrefix(Self.uploadPath) {
                        guard
                            try await self.takeUpload(
                                request, &parts, on: channel, progress: progress
                            )
                        else { return }
                    } else {
                        try await self.answer(request, on: channel, progress: progress)
                    }
                    visitor?.isUseful()
                    guard request.isKeepAlive else { return }
                }
            }
        } catch {
            // A room that stops reading in the middle of a file is its own business.
            logger.debug("media connection ended", metadata: ["error": "\(error)"])
        }
    }

    private static func addHandlers(to channel: any Channel) throws {
        try channel.syncOptions?.setOption(
            .socketOption(.so_sndbuf), value: SocketOptionValue(sendBuffer))
        let pipeline = channel.pipeline.syncOperations
        // NIO's own answer to what cannot be read would be a second one where the request has its
        // answer and goes on; who speaks so is cut off.
        try pipeline.configureHTTPServerPipeline(withErrorHandling: false)
        try pipeline.addHandlers(IdleStateHandler(allTimeout: idleLimit), CloseWhenIdle())
    }

    /// - Parameter progress: called when some of it has been taken.
    private func answer(
        _ request: HTTPRequestHead, on channel: any Channel, progress: () -> Void
    ) async throws {
        guard request.method == .GET || request.method == .HEAD else {
            return try await refuse(.methodNotAllowed, request, on: channel)
        }
        guard request.uri.hasPrefix("/asset/") else {
            return try await refuse(.notFound, request, on: channel)
        }
        let wanted = request.uri.dropFirst("/asset/".count)
        let isList = wanted.hasSuffix(Self.piecesSuffix)
        let hash = String(isList ? wanted.dropLast(Self.piecesSuffix.count) : wanted)
        let found: any SharedBytes
        do {
            // Who asks whether it is here has others to ask, too.
            found = try await bytes(
                ofHash: hash, isList: isList, mayFetch: request.method != .HEAD)
        } catch {
            return try await refuse(
                error.status, request, on: channel, retryAfter: error.retryAfter)
        }
        try await answer(request, with: found, on: channel, progress: progress)
    }

    /// What is sent for a hash: the file, as far as it has arrived here, or the list of its pieces.
    private func bytes(
        ofHash hash: String, isList: Bool, mayFetch: Bool
    ) async throws(Refusal) -> any SharedBytes {
        if file(ofHash: hash) == nil, let owner = owner.withLock({ $0 }), owner(hash) {
            throw Refusal(MediaQuestion.isBeingRead, retryAfter: 1)
        }
        var incoming: IncomingFile?
        if mayFetch, file(ofHash: hash)?.file == nil, let provider = provider.withLock({ $0 }) {
            incoming = await provider(hash)
        }
        if let incoming {
            return isList
                ? SharedList(try await ArrivingBytes.list(of: incoming))
                : try ArrivingBytes(incoming, among: self)
        }
        guard let (path, opened) = self.file(ofHash: hash) else { throw Refusal(.notFound) }
        if isList, let list = await pieces.list(of: hash, at: path) { return SharedList(list) }
        if !isList, let opened { return opened }
        // Of one that is another file by now, whoever looks after the queue says so.
        logger.log(
            level: access(path.cFileName, R_OK) == 0 ? .debug : .error,
            "shared file cannot be read", metadata: ["path": "\(path)"])
        throw Refusal(.gone)
    }

    /// Why nothing is sent.
    struct Refusal: Error {
        var status: HTTPResponseStatus
        /// Seconds after which it is worth while to ask again.
        var retryAfter: Int?

        init(_ status: HTTPResponseStatus, retryAfter: Int? = nil) {
            self.status = status
            self.retryAfter = retryAfter
        }
    }

    /// A place among the answers with bytes that arrive; to be given back with ``endRelaying()``.
    func beginRelaying() -> Bool {
        let count = relaying.add(1, ordering: .relaxed).newValue
        if count > Self.mostRelayed { endRelaying() }
        return count <= Self.mostRelayed
    }

    func endRelaying() { relaying.subtract(1, ordering: .relaxed) }

    private func answer(
        _ request: HTTPRequestHead, with file: any SharedBytes, on channel: any Channel,
        progress: () -> Void
    ) async throws {
        let size = file.size
        let range: Range<Int>
        var head = HTTPResponseHead(version: .http1_1, status: .ok)
        head.headers.add(name: "Accept-Ranges", value: "bytes")
        head.headers.add(name: "Content-Type", value: "application/octet-stream")
        switch ByteRange.parse(request.headers.first(name: "Range"), size: size) {
        case .whole:
            range = 0..<size
        case .part(let part):
            range = part
            head.status = .partialContent
            head.headers.add(
                name: "Content-Range",
                value: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)")
        case .unsatisfiable:
            return try await refuse(.rangeNotSatisfiable, request, on: channel)
        }
        head.headers.add(name: "Content-Length", value: "\(range.count)")
        // Goes with what follows, in one packet.
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        var chunk = ByteBuffer()
        var position = range.lowerBound
        while request.method == .GET, position < range.upperBound {
            let count = min(SharedFile.chunkBytes, range.upperBound - position)
            position += try await file.read(count, from: position, into: &chunk)
            try await send(.body(.byteBuffer(chunk)), on: channel)
            progress()
        }
        try await send(.end(nil), on: channel)
    }

    /// Returns when the system has taken it to send, so that one chunk is held for each room.
    ///
    /// The writer of an async channel learns from another thread that the connection is full, and
    /// takes dozens of chunks until then.
    private func send(_ part: HTTPServerResponsePart, on channel: any Channel) async throws {
        try await withTaskCancellationHandler {
            try await channel.writeAndFlush(part)
        } onCancel: {
            // Who does not read never lets it go.
            channel.close(promise: nil)
        }
    }

    /// - Parameters:
    ///   - reason: for people; `nil`: the phrase of the status.
    ///   - retryAfter: seconds.
    func refuse(
        _ status: HTTPResponseStatus, _ request: HTTPRequestHead, on channel: any Channel,
        reason: String? = nil, retryAfter: Int? = nil
    ) async throws {
        var text = reason.map { $0 + "\n" } ?? "\(status.code) \(status.reasonPhrase)\n"
        // RFC 9110, section 15.3.5: a 204 has no content, and a client would read it as what follows.
        if status == .noContent { text = "" }
        var head = HTTPResponseHead(version: .http1_1, status: status)
        head.headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
        if let retryAfter { head.headers.add(name: "Retry-After", value: "\(retryAfter)") }
        if status != .noContent {
            head.headers.add(name: "Content-Length", value: "\(text.utf8.count)")
        }
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        if request.method != .HEAD, !text.isEmpty {
            try await send(.body(.byteBuffer(ByteBuffer(string: text))), on: channel)
        }
        try await send(.end(nil), on: channel)
    }
}

/// Closes a connection on which nothing has moved for a while.
final class CloseWhenIdle: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is IdleStateHandler.IdleStateEvent {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}
