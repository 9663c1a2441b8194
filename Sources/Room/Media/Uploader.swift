import NIOCore
import NIOHTTP1
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout
import TuttiSecureLinks

/// Sends files of this machine to a leader that is elsewhere; see ``MediaService`` for what it says.
struct Uploader: Sendable {
    private typealias Connection = NIOAsyncChannel<
        NIOHTTPClientResponseFull, HTTPClientRequestPart
    >

    /// A leader that neither takes nor says anything for so long is gone.
    private static let silence = TimeAmount.seconds(30)
    /// Longest answer, bytes: a sentence.
    private static let longestAnswer = 8_192
    private static let chunkBytes = 131_072
    /// Where the same file is being sent by somebody else, it is waited for.
    private static let retries = 3_600
    private static let retryPause = Duration.seconds(1)
    /// Connections in a row that come to nothing.
    private static let mostRefusals = 5

    let address: HostPort
    let timeout: Duration
    let credentials: Credentials

    /// Sends a file that the leader does not have.
    ///
    /// - Parameter progress: called with the bytes sent so far and those of the whole.
    /// - Returns: what ``UploadReference`` calls its identity.
    /// - Throws: `RoomError` about the file.
    func send(
        _ path: String, progress: @Sendable (_ sent: Int64, _ whole: Int64) -> Void
    ) async throws -> String {
        let print = try await blocking { cancellation throws(MediaError) in
            try MediaFingerprint.measure(path, cancellation: cancellation).0
        }
        let name = AssetName.shown(path)
        for _ in 0..<Self.retries {
            if try await send(path, print, name, progress: progress) {
                return print.text
            }
            try await Task.sleep(for: Self.retryPause)
        }
        throw RoomError(.timedOut, "\(name): the leader at \(address) has no place to take it now")
    }

    /// - Returns: false where the leader wants to be asked again.
    private func send(
        _ path: String, _ print: MediaFingerprint, _ name: String,
        progress: @Sendable (Int64, Int64) -> Void
    ) async throws -> Bool {
        do {
            return try await connect().executeThenClose { inbound, outbound in
                var answers = inbound.makeAsyncIterator()
                var head = request(.POST, path, print)
                head.headers.add(name: MediaService.lengthHeader, value: "\(print.byteCount)")
                head.headers.add(name: "Content-Length", value: "0")
                try await outbound.write(.head(head))
                try await outbound.write(.end(nil))
                let verdict = try await answers.next()
                switch verdict?.head.status {
                case .ok?: return true
                case .conflict?, .serviceUnavailable?: return false
                case .noContent?: break
                default: throw refusal(verdict, name)
                }
                head = request(.PUT, path, print)
                head.headers.add(name: "Content-Length", value: "\(print.byteCount)")
                do {
                    try await outbound.write(.head(head))
                    try await write(path, print, to: outbound, name, progress: progress)
                    try await outbound.write(.end(nil))
                } catch is ChannelError, is IOError {
                    // It may have said why before it closed.
                }
                let answer = try await answers.next()
                switch answer?.head.status {
                case .created?, .ok?: return true
                case .conflict?, .serviceUnavailable?: return false
                default: throw refusal(answer, name)
                }
            }
        } catch let error as RoomError {
            throw error
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw RoomError(
                .unreachable,
                "\(name): the leader at \(address) broke off the connection while it was sent; try again",
                call: "\(error)")
        }
    }

    private func write(
        _ path: String, _ print: MediaFingerprint,
        to outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>, _ name: String,
        progress: @Sendable (Int64, Int64) -> Void
    ) async throws {
        guard let file = SharedFile(path: path, identity: nil),
            Int64(file.size) == print.byteCount
        else { throw RoomError(.badAsset, "\(name): was changed while it was sent") }
        var sent = 0
        while sent < file.size {
            var chunk = ByteBuffer()
            let count = min(Self.chunkBytes, file.size - sent)
            do {
                sent += try file.read(count, from: sent, into: &chunk)
            } catch {
                throw RoomError(.badAsset, "\(name): cannot be read to its end")
            }
            try await outbound.write(.body(.byteBuffer(chunk)))
            progress(Int64(sent), print.byteCount)
        }
    }

    private func refusal(_ answer: NIOHTTPClientResponseFull?, _ name: String) -> RoomError {
        guard let answer else {
            return RoomError(
                .unreachable, "\(name): the leader at \(address) closed the connection; try again")
        }
        let text = answer.body.map { String(decoding: $0.readableBytesView, as: UTF8.self) } ?? ""
        let reason = text.split(separator: "\n").first.map(String.init) ?? "\(answer.head.status)"
        return RoomError(.refused, "\(name) is not taken: \(reason)")
    }

    private func request(
        _ method: HTTPMethod, _ path: String, _ print: MediaFingerprint
    ) -> HTTPRequestHead {
        let name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
        let uri = MediaService.uploadPath + print.text + "?" + AssetName.escaped(name)
        var head = HTTPRequestHead(version: .http1_1, method: method, uri: uri)
        head.headers.add(name: "Host", value: "\(address)")
        return head
    }

    /// A leader takes part in some handshakes a second from each machine: who sends many short files waits.
    private func connect() async throws -> Connection {
        var attempts = 0
        while true {
            do {
                return try await connectOnce()
            } catch let error as RoomError
                where error.code == .unreachable && attempts < Self.mostRefusals
            {
                attempts += 1
                try await Task.sleep(for: Self.retryPause)
            }
        }
    }

    private func connectOnce() async throws -> Connection {
        let race = ConnectionRace(address, .nanoseconds(timeout.wholeNanoseconds)) { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHandlers(
                    IdleStateHandler(allTimeout: Self.silence), CloseWhenIdle())
                try pipeline.addHTTPClientHandlers()
                try pipeline.addHandler(
                    NIOHTTPClientResponseAggregator(maxContentLength: Self.longestAnswer))
            }
        }
        let made = try await race.made(address) { race.link(credentials, .media) }
        return try await made.asyncChannel(of: Connection.self, at: address)
    }
}
