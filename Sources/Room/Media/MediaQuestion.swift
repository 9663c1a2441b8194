import NIOCore
import NIOHTTP1
import TuttiFFmpegMedia
import TuttiPlayout

/// A part of an asset as a request to the node that has it, and what may be answered.
struct MediaQuestion: Sendable {
    let address: HostPort
    let head: HTTPRequestHead
    private let url: String
    private let range: Range<Int64>

    var byteCount: Int { range.count }

    /// - Throws: `.unsupported` for an address that is none of a media service.
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

    /// The answer of a node that has it, and reads it just now to see that.
    static let isBeingRead = HTTPResponseStatus.accepted

    /// How long to wait where all places are taken, as ``MediaService/noPlace`` says it, or where it is
    /// being read; `nil` for any other answer.
    func pause(asked head: HTTPResponseHead) -> TimeAmount? {
        guard head.status == .serviceUnavailable || head.status == Self.isBeingRead,
            let text = head.headers.first(name: "Retry-After")
        else { return nil }
        // A date, or anything else: as soon as one may ask again.
        return .seconds(min(max(Int64(text) ?? 0, 0), 86_400))
    }

    /// Accepts an answer with what was asked for, and nothing else.
    func check(_ answer: HTTPResponseHead) throws(MediaError) {
        let place = answer.headers.first(name: "Content-Range") ?? "no range"
        let count = answer.headers.first(name: "Content-Length") ?? "no length"
        let wanted = "bytes \(range.lowerBound)-\(range.upperBound - 1)/"
        if answer.status == .partialContent, place.hasPrefix(wanted), Int(count) == byteCount {
            return
        }
        switch answer.status.code {
        case 300..<400:
            throw failure(
                .notReadable, "the leader sends elsewhere, where a room does not follow it")
        case 404, 410: throw failure(.notFound, "the leader does not have it any more")
        case 416:
            throw failure(.damaged, "is shorter than announced; was it changed on the leader?")
        default:
            throw failure(
                .network,
                "asked for \(wanted)… the leader sends \(count) bytes, \(place), with status \(answer.status.code)"
            )
        }
    }

    var misunderstood: MediaError {
        failure(.network, "the leader sends something else than it announced")
    }

    var cancelled: MediaError { failure(.cancelled, "was cancelled") }

    func failure(_ code: MediaError.Code, _ reason: String) -> MediaError {
        MediaError(code, operation: "read", subject: url, reason: reason)
    }
}
