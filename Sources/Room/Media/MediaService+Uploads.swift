import NIOCore
import NIOHTTP1
import TuttiPlayout

// Files of other machines that are put into the queue.

extension MediaService {
    static let uploadPath = "/upload/"
    /// How many bytes `POST` asks for; they come with `PUT`.
    static let lengthHeader = "Upload-Length"

    typealias Parts = NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator

    /// `POST` asks whether a file is wanted: 204 that it is, 200 that it is here, or why not. `PUT`
    /// sends it. Where that is refused its bytes are not read, so who has not asked before may not
    /// learn why.
    ///
    /// - Parameter progress: called when some of it has come.
    /// - Returns: whether another request may follow on this connection.
    nonisolated(nonsending) func takeUpload(
        _ request: HTTPRequestHead, _ parts: inout Parts, on channel: any Channel,
        progress: () -> Void
    ) async throws -> Bool {
        let target = request.uri.dropFirst(Self.uploadPath.count)
            .split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let id = target.first.map(String.init) ?? ""
        let isQuestion = request.method == .POST
        guard let uploads, isQuestion || request.method == .PUT else {
            let status: HTTPResponseStatus = uploads == nil ? .notFound : .methodNotAllowed
            try await refuse(status, request, on: channel)
            return false
        }
        let header = isQuestion ? Self.lengthHeader : "Content-Length"
        let size = request.headers.first(name: header).flatMap { Int64($0) } ?? 0
        do {
            if uploads.contains(id) {
                try await refuse(.ok, request, on: channel)
                return isQuestion
            }
            if isQuestion {
                try uploads.check(id, size: size)
                try await refuse(.noContent, request, on: channel)
                return true
            }
            let name = target.count > 1 ? Array(target[1].utf8) : []
            let arrival = try uploads.begin(
                id, name: String(fileName: PlaylistPlace.unescaped(name[...])), size: size)
            try await receive(arrival, &parts, uploads, progress: progress)
            try await refuse(.created, request, on: channel)
            return true
        } catch let refusal as Uploads.Refusal {
            try await refuse(
                HTTPResponseStatus(statusCode: refusal.status), request, on: channel,
                reason: refusal.reason)
            return isQuestion
        }
    }

    nonisolated(nonsending) private func receive(
        _ arrival: Uploads.Arrival, _ parts: inout Parts, _ uploads: Uploads, progress: () -> Void
    ) async throws {
        var isWhole = false
        do {
            while !isWhole, let part = try await parts.next(isolation: #isolation) {
                if case .body(let bytes) = part {
                    try uploads.take(bytes, of: arrival)
                    progress()
                }
                if case .end = part { isWhole = true }
            }
            if !isWhole { throw ChannelError.inputClosed }
        } catch {
            uploads.abandon(arrival)
            throw error
        }
        try uploads.finish(arrival)
    }
}
