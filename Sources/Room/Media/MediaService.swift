import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Playout
import Synchronization

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
    /// Its answers are written to the channel itself, by ``send(_:on:)``.
    typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, Never>

    /// More connections at once than a group has rooms: a LAN guest cannot use up our files.
    static let connectionsMax = 256
    /// What may be on the way to one room, bytes; Linux allows twice that, for its own bookkeeping.
    /// By itself it would put megabytes into the queue of a slow link, before the packets of the
    /// clock. Enough for 40 Mbit/s over a round trip of 25 ms.
    static let sendBuffer = 131_072
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
    private let provider = Mutex<(@Sendable (String) async -> Void)?>(nil)
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

    /// Asked for what is not shared, with its hash; returns when it is, or when it cannot be had.
    func provide(_ provider: @escaping @Sendable (String) async -> Void) {
        self.provider.withLock { $0 = provider }
    }

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
        try pipeline.configureHTTPServerPipeline()
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
        if file(ofHash: hash)?.file == nil, let provider = provider.withLock({ $0 }) {
            await provider(hash)
        }
        guard let (path, opened) = self.file(ofHash: hash) else {
            return try await refuse(.notFound, request, on: channel)
        }
        let file: any SharedBytes
        if isList, let list = await pieces.list(of: hash, at: path) {
            file = SharedList(list)
        } else if !isList, let shared = opened {
            file = shared
        } else {
            // Of one that is another file by now, whoever looks after the queue says so.
            logger.log(
                level: access(path.cFileName, R_OK) == 0 ? .debug : .error,
                "shared file cannot be read", metadata: ["path": "\(path)"])
            return try await refuse(.gone, request, on: channel)
        }
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
            position += try file.read(count, from: position, into: &chunk)
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

    /// - Parameter reason: for people; `nil`: the phrase of the status.
    func refuse(
        _ status: HTTPResponseStatus, _ request: HTTPRequestHead, on channel: any Channel,
        reason: String? = nil
    ) async throws {
        var text = reason.map { $0 + "\n" } ?? "\(status.code) \(status.reasonPhrase)\n"
        // RFC 9110, section 15.3.5: a 204 has no content, and a client would read it as what follows.
        if status == .noContent { text = "" }
        var head = HTTPResponseHead(version: .http1_1, status: status)
        head.headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
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

/// What is served, a chunk at a time.
protocol SharedBytes {
    var size: Int { get }
    /// Puts at most `count` bytes into `chunk`, in place of what it had.
    ///
    /// - Returns: how many there are, at least one.
    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) throws -> Int
}

/// The hashes of a file's pieces.
private struct SharedList: SharedBytes {
    private let bytes: [UInt8]
    var size: Int { bytes.count }

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) throws -> Int {
        chunk.clear()
        return chunk.writeBytes(bytes[position..<min(bytes.count, position + count)])
    }
}

/// A local file being served; closed with the last reference.
final class SharedFile: SharedBytes, Sendable {
    /// What is read at once: enough for a fast disk, little to hold for a slow room.
    static let chunkBytes = 128 * 1024

    let size: Int
    private let descriptor: Int32
    private let identity: FileIdentity?

    /// - Returns: `nil` when there is no such regular file, it may not be read, or it is not the
    ///   one that was shared any more.
    init?(path: String, identity: FileIdentity?) {
        let opened = open(path.cFileName, O_RDONLY | O_CLOEXEC)
        guard opened >= 0 else { return nil }
        guard let now = FileIdentity(of: opened), identity == nil || identity == now else {
            // What was not made has no deinit.
            close(opened)
            return nil
        }
        self.identity = identity
        descriptor = opened
        size = Int(now.byteCount)
    }

    deinit { close(descriptor) }

    /// Whether it is what was shared, under its name or without one.
    var isUnwritten: Bool {
        guard let identity else { return true }
        return FileIdentity(of: descriptor)?.isUnwritten(since: identity) ?? false
    }

    /// - Throws: when the file has become shorter than it was, or was written to.
    func read(_ count: Int, from position: Int, into chunk: inout ByteBuffer) throws -> Int {
        chunk.clear()
        let read = chunk.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { bytes in
            max(0, pread(descriptor, bytes.baseAddress, count, off_t(position)))
        }
        guard read > 0 else { throw ChannelError.eof }
        // Looked at behind the reading: what was written before it shows.
        guard isUnwritten else { throw ChannelError.eof }
        return read
    }
}

/// The `Range` header of RFC 9110, section 14, as far as a media reader uses it: one range.
enum ByteRange: Equatable {
    case whole
    case part(Range<Int>)
    case unsatisfiable

    /// - Returns: `.whole` where there is no header or one that the RFC lets a server ignore.
    static func parse(_ header: String?, size: Int) -> ByteRange {
        guard let header, header.hasPrefix("bytes="), !header.contains(",") else { return .whole }
        let bounds = header.dropFirst("bytes=".count)
            .split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return .whole }
        if bounds[0].isEmpty {
            guard let suffix = Int(bounds[1]), suffix >= 0 else { return .whole }
            return suffix == 0 || size == 0
                ? .unsatisfiable : .part(max(0, size - suffix)..<size)
        }
        guard let first = Int(bounds[0]), first >= 0 else { return .whole }
        var last = size - 1
        if !bounds[1].isEmpty {
            guard let given = Int(bounds[1]), given >= first else { return .whole }
            last = min(given, last)
        }
        return first < size ? .part(first..<(last + 1)) : .unsatisfiable
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
