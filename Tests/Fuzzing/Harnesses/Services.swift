import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TuttiTiming

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

/// HTTP between nodes, without sockets.
extension Harness {
    static let services = [ranges, mediaQuestions, mediaAnswers, mediaService]

    private static let ranges = Harness(
        name: "byte-ranges",
        seeds: { ["bytes=0-0", "bytes=5-", "bytes=-7", "bytes=1-2,3-4"].map { Array($0.utf8) } },
        longest: 64,
        check: .plain { bytes in
            let header = String(decoding: bytes, as: UTF8.self)
            for size in [0, 1, 10, .max] {
                guard case .part(let part) = ByteRange.parse(header, size: size) else { continue }
                try expect(
                    !part.isEmpty && part.lowerBound >= 0 && part.upperBound <= size,
                    "\(part) of \(size) bytes")
            }
        })

    private static let mediaQuestions = Harness(
        name: "media-questions",
        seeds: {
            ["http://192.168.1.20:7430/asset/0a0a", "http://[::1]/a"].map { Array($0.utf8) }
        },
        longest: 256,
        check: .plain { bytes in
            let url = String(decoding: bytes, as: UTF8.self)
            guard let question = try? MediaQuestion(5..<50, of: url) else { return }
            let sent = try MediaTalk.request(question)
            try expectEqual(
                sent.split(separator: "\r\n", omittingEmptySubsequences: false).count, 5,
                "a line, two fields and the end, not \(sent.debugDescription)")
        })

    /// The first byte says where the rest is cut in two.
    private static let mediaAnswers = Harness(
        name: "media-answers",
        seeds: {
            [
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-49/100\r\n"
                    + "Content-Length: 45\r\n\r\n" + String(repeating: "x", count: 45),
                "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 302 Found\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n",
            ].map { [40] + Array($0.utf8) }
        },
        heldPerByte: 1_024,
        check: .plain { bytes in
            guard let cut = bytes.first.map(Int.init) else { return }
            let answer = bytes.dropFirst()
            let question = try MediaQuestion(5..<50, of: "http://host:1/asset/0a")
            let whole = try MediaTalk.parts(of: [Array(answer)], to: question)
            let pieces = try MediaTalk.parts(
                of: [Array(answer.prefix(cut)), Array(answer.dropFirst(cut))], to: question)
            try expectEqual(pieces.heads, whole.heads, "heads of an answer that comes in two")
            try expect(
                pieces.body.starts(with: whole.body) || whole.body.starts(with: pieces.body),
                "its bytes")
            for head in whole.heads {
                let pause = question.pause(asked: head)
                try expect(
                    pause.map { $0 >= .zero } ?? true, "a pause of \(String(describing: pause))")
                guard (try? question.check(head)) != nil else { continue }
                try expectEqual(head.status, .partialContent, "what is taken")
            }
        })

    /// Requests to a leader, at once and in two pieces; the first byte says where they are cut.
    private static let mediaService = Harness(
        name: "media-service",
        seeds: { MediaTalk.requests.map { [20] + Array($0.utf8) } },
        check: .waiting { bytes in
            guard let cut = bytes.first.map(Int.init) else { return }
            let requests = bytes.dropFirst()
            let whole = try await MediaTalk.answers(to: [Array(requests)])
            try expect(
                whole.isEmpty || whole.starts(with: Array("HTTP/1.".utf8)), "something else comes")
            let pieces = try await MediaTalk.answers(
                to: [Array(requests.prefix(cut)), Array(requests.dropFirst(cut))])
            // Where nonsense ends the connection, an answer may be under way or not.
            try expect(
                pieces.starts(with: whole) || whole.starts(with: pieces),
                "to requests in two pieces: \(String(decoding: pieces, as: UTF8.self)), to one: "
                    + String(decoding: whole, as: UTF8.self))
        })
}

enum MediaTalk {
    static let contents = Array("twenty bytes of sound".utf8.prefix(20))
    private static let hash = String(repeating: "0a", count: 32)

    static var requests: [String] {
        let asset = "/asset/\(hash)"
        // Of the byte "x".
        let upload = "/upload/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
        return [
            "GET \(asset) HTTP/1.1\r\nHost: a\r\nRange: bytes=2-9\r\n\r\n"
                + "HEAD \(asset) HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET \(asset)/pieces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET /asset/../etc/passwd HTTP/1.0\r\n\r\n",
            "POST \(upload)?a%2f..%2fb HTTP/1.1\r\nHost: a\r\nUpload-Length: 1\r\n\r\n"
                + "PUT \(upload)?a.flac HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
            "PUT \(upload) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        ]
    }

    /// What goes over the wire.
    static func request(_ question: MediaQuestion) throws -> String {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        try channel.pipeline.syncOperations.addHTTPClientHandlers()
        // A head that NIO refuses is not sent.
        guard (try? channel.writeOutbound(HTTPClientRequestPart.head(question.head))) != nil else {
            return "\r\n\r\n\r\n\r\n"
        }
        try channel.writeOutbound(HTTPClientRequestPart.end(nil))
        var sent = ""
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
            sent += String(buffer: bytes)
        }
        return sent
    }

    /// The first answer, as a client's pipeline takes it apart; as much of it as it believes.
    static func parts(
        of pieces: [[UInt8]], to question: MediaQuestion
    ) throws -> (heads: [HTTPResponseHead], body: [UInt8]) {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        try channel.pipeline.syncOperations.addHTTPClientHandlers()
        try channel.writeOutbound(HTTPClientRequestPart.head(question.head))
        try channel.writeOutbound(HTTPClientRequestPart.end(nil))
        var heads: [HTTPResponseHead] = []
        var body: [UInt8] = []
        for piece in pieces {
            let isTaken = (try? channel.writeInbound(ByteBuffer(bytes: piece))) != nil
            while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
                switch part {
                case .head(let head): heads.append(head)
                case .body(let bytes): body += Array(buffer: bytes)
                case .end: return (heads, body)
                }
            }
            if !isTaken { break }
        }
        return (heads, body)
    }

    /// What a leader with one file answers until the other side has said all.
    static func answers(to pieces: [[UInt8]]) async throws -> [UInt8] {
        let name = try Scratch.write(contents, as: "asset")
        let uploads = Uploads(base: Scratch.folder + "/uploads", limit: 100) {
            LocalInstant(nanoseconds: 0)
        }
        defer { uploads.end() }
        let service = MediaService(logger: quiet, uploads: uploads)
        service.share(hash: hash, path: "\(Scratch.folder)/\(name)")
        let channel = NIOAsyncTestingChannel()
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1))
        async let served: Void = service.serve(channel)
        // The handlers have to be there before something comes.
        while (try? await channel.pipeline.handler(type: CloseWhenIdle.self).map { _ in }.get())
            == nil
        { await Task.yield() }
        for piece in pieces {
            _ = try? await channel.writeInbound(ByteBuffer(bytes: piece))
        }
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        await served
        var answers: [UInt8] = []
        while let bytes = try await channel.readOutbound(as: ByteBuffer.self) {
            answers += Array(buffer: bytes)
        }
        _ = try? await channel.finish(acceptAlreadyClosed: true)
        return answers
    }

    private static let quiet = Logger(label: "fuzzing") { _ in SwiftLogNoOpLogHandler() }
}
