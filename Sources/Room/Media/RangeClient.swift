import Dispatch
import FFmpegMedia
import Glibc
import NIOCore
import NIOHTTP1
import Playout
import Synchronization

/// Asks a leader's ``MediaService`` for parts of assets, on connections that are kept.
///
/// A room that joins an item it does not have looks for its place in several parts, and then fetches
/// all of it, some pieces at a time. A connection for each would cost two round trips a part, and more
/// wherever the first packet of one is lost. It asks whom it was told to ask, and nobody else: an
/// answer that names another address is an error.
final class RangeClient: ByteRanges {
    /// Longest wait for a connection, and for an answer.
    private static let limit = TimeAmount.seconds(10)
    /// … on a connection that was kept: it may be to nobody, which a new one would find out.
    private static let keptLimit = TimeAmount.seconds(3)
    /// Between two looks at whether the reader is still interested.
    private static let lookMilliseconds = 20
    /// Of one answer: two of the largest pieces are what a reader asks for at once.
    private static let longestAnswer = 1 << 21
    /// Connections kept while nobody asks: the fetch has one, a reader or two the others.
    private static let keptMax = 3

    /// Before it is asked again for a place that others have.
    private static let placePauseMilliseconds = 250

    private struct Connection {
        var address: HostPort
        var channel: any Channel
    }

    /// Not used at the moment, the latest last.
    private let kept = Mutex<[Connection]>([])

    deinit { forgetKept() }

    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        let question = try Question(range, of: url)
        while true {
            if let bytes = try bytes(question, cancellation) { return bytes }
            // That others are served first is no failure, of the leader or of the asset: it lasts
            // until one of them has what it wants, or nobody wants this any more.
            try Self.waitForPlace(question, cancellation)
        }
    }

    private static func waitForPlace(
        _ question: Question, _ cancellation: MediaCancellation
    ) throws(MediaError) {
        for _ in 0..<placePauseMilliseconds / lookMilliseconds {
            if cancellation.isCancelled { throw question.failure(.cancelled, "was cancelled") }
            usleep(UInt32(lookMilliseconds) * 1_000)
        }
    }

    /// - Returns: `nil` when the leader has no place for another reader just now.
    private func bytes(
        _ question: Question, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8]? {
        if let connection = takeKept(to: question.address) {
            do throws(MediaError) {
                return try ask(question, connection, Self.keptLimit, cancellation)
            } catch {
                // The other side may have given up a connection that was not used for a while.
                if error.code != .network { throw error }
                forgetKept()
            }
        }
        let race = ConnectionRace(question.address, Self.limit) { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHTTPClientHandlers()
                try pipeline.addHandler(
                    NIOHTTPClientResponseAggregator(maxContentLength: Self.longestAnswer))
                try pipeline.addHandler(OneAtATime())
            }
        }
        let winner = race.winner()
        do throws(MediaError) {
            let channel = try Self.wait(for: winner, question, Self.limit, cancellation)
            return try ask(
                question, Connection(address: question.address, channel: channel), Self.limit,
                cancellation)
        } catch {
            winner.whenSuccess { $0.close(promise: nil) }
            throw error
        }
    }

    /// The others are to the same nobody, as a rule, and would be waited for in turn.
    private func forgetKept() {
        let all = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
        for connection in all { connection.channel.close(promise: nil) }
    }

    private func takeKept(to address: HostPort) -> Connection? {
        while let connection = kept.withLock({ $0.popLast() }) {
            if connection.address == address, connection.channel.isActive { return connection }
            connection.channel.close(promise: nil)
        }
        return nil
    }

    /// Keeps the connection when the answer was a good one.
    private func ask(
        _ question: Question, _ connection: Connection, _ limit: TimeAmount,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8]? {
        let channel = connection.channel
        do throws(MediaError) {
            let promise = channel.eventLoop.makePromise(of: NIOHTTPClientResponseFull.self)
            channel.writeAndFlush(OneAtATime.Exchange(request: question.head, answer: promise))
                .cascadeFailure(to: promise)
            let answer = try Self.wait(for: promise.futureResult, question, limit, cancellation)
            if question.isPostponed(by: answer) {
                channel.close(promise: nil)
                return nil
            }
            let bytes = try question.bytes(of: answer)
            let other = kept.withLock {
                $0.append(connection)
                return $0.count > Self.keptMax ? $0.removeFirst() : nil
            }
            other?.channel.close(promise: nil)
            return bytes
        } catch {
            channel.close(promise: nil)
            throw error
        }
    }

    /// Blocks the reader's thread, which is none of NIO's.
    private static func wait<Value: Sendable>(
        for future: EventLoopFuture<Value>, _ question: Question, _ limit: TimeAmount,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Value {
        let isDone = DispatchSemaphore(value: 0)
        future.whenComplete { _ in isDone.signal() }
        let deadline = ContinuousClock.now + .nanoseconds(limit.nanoseconds)
        while isDone.wait(timeout: .now() + .milliseconds(lookMilliseconds)) == .timedOut {
            if cancellation.isCancelled { throw question.failure(.cancelled, "was cancelled") }
            guard ContinuousClock.now < deadline else {
                throw question.failure(.network, "the leader does not answer")
            }
        }
        do {
            return try future.wait()
        } catch {
            throw question.failure(.network, reason(of: error))
        }
    }
}

/// A part of an asset, as a request.
private struct Question {
    let address: HostPort
    let head: HTTPRequestHead
    private let url: String
    private let range: Range<Int64>

    init(_ range: Range<Int64>, of url: String) throws(MediaError) {
        let scheme = "http://"
        let rest = url.dropFirst(scheme.count)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        do {
            guard url.hasPrefix(scheme), !range.isEmpty else { throw RoomError.badAddress(url) }
            address = try HostPort(parsing: String(rest[..<slash]))
        } catch {
            throw MediaError(
                .unsupported, operation: "open", subject: url,
                reason: "is not an address of a leader's media service")
        }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: String(rest[slash...]))
        head.headers.add(name: "Host", value: address.description)
        head.headers.add(
            name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        self.head = head
        self.url = url
        self.range = range
    }

    /// Whether all places are taken, as ``MediaService/noPlace`` says it.
    func isPostponed(by answer: NIOHTTPClientResponseFull) -> Bool {
        answer.head.status == .serviceUnavailable
            && answer.head.headers.contains(name: "Retry-After")
    }

    /// What was asked for, and nothing else.
    func bytes(of answer: NIOHTTPClientResponseFull) throws(MediaError) -> [UInt8] {
        let place = answer.head.headers.first(name: "Content-Range") ?? "no range"
        let wanted = "bytes \(range.lowerBound)-\(range.upperBound - 1)/"
        if answer.head.status == .partialContent, place.hasPrefix(wanted),
            let body = answer.body, body.readableBytes == range.count
        {
            return Array(body.readableBytesView)
        }
        switch answer.head.status.code {
        case 300..<400:
            throw failure(
                .notReadable, "the leader sends elsewhere, where a room does not follow it")
        case 404, 410: throw failure(.notFound, "the leader does not have it any more")
        case 416:
            throw failure(.damaged, "is shorter than announced; was it changed on the leader?")
        default:
            let count = answer.body?.readableBytes ?? 0
            throw failure(
                .network,
                "asked for \(wanted)… the leader sent \(count) bytes, \(place), with status \(answer.head.status.code)"
            )
        }
    }

    func failure(_ code: MediaError.Code, _ reason: String) -> MediaError {
        MediaError(code, operation: "read", subject: url, reason: reason)
    }
}

/// One request at a time, with a promise of its answer.
private final class OneAtATime: ChannelDuplexHandler {
    struct Exchange {
        var request: HTTPRequestHead
        var answer: EventLoopPromise<NIOHTTPClientResponseFull>
    }
    typealias OutboundIn = Exchange
    typealias OutboundOut = HTTPClientRequestPart
    typealias InboundIn = NIOHTTPClientResponseFull

    private var awaited: EventLoopPromise<NIOHTTPClientResponseFull>?

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let exchange = unwrapOutboundIn(data)
        awaited = exchange.answer
        context.write(wrapOutboundOut(.head(exchange.request)), promise: nil)
        context.write(wrapOutboundOut(.end(nil)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        awaited.take()?.succeed(unwrapInboundIn(data))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        awaited.take()?.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        awaited.take()?.fail(ChannelError.eof)
        context.fireChannelInactive()
    }
}
