import Dispatch
import NIOCore
import NIOHTTP1
import TuttiFFmpegMedia
import TuttiPlayout
import TuttiSecureLinks

/// A connection to a media service on which parts of answers are taken one at a time.
///
/// Nothing is read before somebody waits for it. The calls block the thread of the reader, which is
/// none of NIO's. Closed with the last reference.
final class MediaConnection: Sendable {
    let address: HostPort
    private let opened: Opened

    private struct Opened: Sendable {
        let channel: any Channel
        /// Has what came also when the connection has ended.
        let parts: NIOLoopBound<AnswerParts>
    }

    var isActive: Bool { opened.channel.isActive }

    init(
        to question: MediaQuestion, _ limit: TimeAmount, _ credentials: Credentials,
        _ cancellation: MediaCancellation
    ) throws(MediaError) {
        let race = ConnectionRace(question.address, limit) { channel in
            channel.eventLoop.makeCompletedFuture {
                guard let options = channel.syncOptions else {
                    throw ChannelError.inappropriateOperationForState
                }
                try options.setOption(.autoRead, value: false)
                try options.setOption(.maxMessagesPerRead, value: 1)
                try options.setOption(
                    .recvAllocator,
                    value: FixedSizeRecvByteBufferAllocator(capacity: MediaClient.readSize))
                try options.setOption(
                    .socketOption(.so_rcvbuf), value: SocketOptionValue(MediaClient.receiveBuffer))
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHTTPClientHandlers()
                try pipeline.addHandler(AnswerParts())
            }
        }
        address = question.address
        let opened = race.link(credentials, .media).flatMap { made in
            let channel = made.channel
            return channel.eventLoop.submit {
                let parts = try channel.pipeline.syncOperations.handler(type: AnswerParts.self)
                return Opened(
                    channel: channel, parts: NIOLoopBound(parts, eventLoop: channel.eventLoop))
            }
        }
        do throws(MediaError) {
            self.opened = try Self.wait(for: opened, of: question, limit, cancellation)
        } catch {
            race.cancel()
            // It may have been made just now.
            opened.whenSuccess { $0.channel.close(promise: nil) }
            throw error
        }
    }

    deinit { opened.channel.close(promise: nil) }

    /// What comes next says whether it was sent.
    func send(_ head: HTTPRequestHead) {
        opened.channel.write(HTTPClientRequestPart.head(head), promise: nil)
        opened.channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }

    /// - Throws: `.network` when it does not come within `limit`, or not at all.
    func part(
        of question: MediaQuestion, within limit: TimeAmount, _ cancellation: MediaCancellation
    ) throws(MediaError) -> HTTPClientResponsePart {
        let wanted = opened.channel.eventLoop.makePromise(of: HTTPClientResponsePart.self)
        opened.channel.eventLoop.execute { [opened] in
            opened.parts.value.next(of: opened.channel, to: wanted)
        }
        return try Self.wait(for: wanted.futureResult, of: question, limit, cancellation)
    }

    private static func wait<Value: Sendable>(
        for future: EventLoopFuture<Value>, of question: MediaQuestion, _ limit: TimeAmount,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Value {
        let isDone = DispatchSemaphore(value: 0)
        future.whenComplete { _ in isDone.signal() }
        let notice = cancellation.whenCancelled { isDone.signal() }
        let outcome = isDone.wait(timeout: .now() + .nanoseconds(Int(limit.nanoseconds)))
        withExtendedLifetime(notice) {}
        if cancellation.isCancelled { throw question.cancelled }
        guard outcome == .success else {
            throw question.failure(.network, "the leader does not answer")
        }
        do {
            return try future.wait()
        } catch {
            throw question.failure(.network, reason(of: error))
        }
    }
}

/// Reads while a part is wanted, and keeps what came with it.
///
/// That is what one read brings; where the other side has closed, all that the system still had.
private final class AnswerParts: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private enum State {
        case open
        /// Somebody waits, and there is nothing.
        case wanted(EventLoopPromise<HTTPClientResponsePart>)
        case ended(any Error)
    }

    private var state = State.open
    private var parts = CircularBuffer<HTTPClientResponsePart>()

    func next(of channel: any Channel, to promise: EventLoopPromise<HTTPClientResponsePart>) {
        if let part = parts.popFirst() { return promise.succeed(part) }
        switch state {
        case .open:
            state = .wanted(promise)
            channel.read()
        case .wanted: preconditionFailure("two readers of one answer")
        case .ended(let error): promise.fail(error)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard case .wanted(let promise) = state else { return parts.append(part) }
        state = .open
        promise.succeed(part)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // It may have been a part of a head.
        if case .wanted = state { context.read() }
        context.fireChannelReadComplete()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(ChannelError.eof)
        context.fireChannelInactive()
    }

    private func end(_ error: any Error) {
        switch state {
        case .open: state = .ended(error)
        case .wanted(let promise):
            state = .ended(error)
            promise.fail(error)
        case .ended: break
        }
    }
}
