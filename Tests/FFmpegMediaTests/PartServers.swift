import Dispatch
import Foundation
import Synchronization
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A server of which parts are all that it has: what is asked for as a stream comes in parts.
protocol PartServer: ByteServer {}

extension PartServer {
    func answer(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> any ByteAnswer {
        PartAnswer(range) { part throws(MediaError) in try bytes(part, of: url, cancellation) }
    }
}

private final class PartAnswer: ByteAnswer {
    private static let size: Int64 = 131_072
    private var rest: Range<Int64>
    private let part: (Range<Int64>) throws(MediaError) -> [UInt8]

    init(
        _ range: Range<Int64>, _ part: @escaping (Range<Int64>) throws(MediaError) -> [UInt8]
    ) {
        rest = range
        self.part = part
    }

    func next() throws(MediaError) -> [UInt8] {
        guard !rest.isEmpty else { return [] }
        let end = min(rest.upperBound, rest.lowerBound + Self.size)
        let bytes = try part(rest.lowerBound..<end)
        rest = end..<rest.upperBound
        return bytes
    }
}

/// Parts by libavformat, a connection for each: for servers that are no leader of ours.
struct StreamedRanges: PartServer {
    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        let location = try MediaLocation(url)
        let stream = try ByteStream(
            location, from: range.lowerBound, to: range.upperBound, cancellation: cancellation)
        var bytes: [UInt8] = []
        while bytes.count < range.count {
            let next = try stream.next()
            guard !next.isEmpty else {
                throw MediaError(
                    .network, operation: "read", subject: url,
                    reason: "ended after \(bytes.count) of the bytes \(range)")
            }
            bytes.append(contentsOf: next.prefix(range.count - bytes.count))
        }
        return bytes
    }
}

/// Keeps back what comes of a stream, from an offset on, until it is released.
final class HeldRanges: ByteServer {
    private let begin: Int64
    private let holdsEach: Bool
    private let isReleased = Atomic<Bool>(false)

    /// - Parameter holdsEach: what is asked for in parts as well.
    init(from begin: Int64, holdsEach: Bool) {
        self.begin = begin
        self.holdsEach = holdsEach
    }

    func release() { isReleased.store(true, ordering: .relaxed) }

    func answer(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> any ByteAnswer {
        PartAnswer(range) { [self] part throws(MediaError) in
            try hold(part, of: url, cancellation)
            return try StreamedRanges().bytes(part, of: url, cancellation)
        }
    }

    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        if holdsEach { try hold(range, of: url, cancellation) }
        return try StreamedRanges().bytes(range, of: url, cancellation)
    }

    private func hold(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) {
        while !url.hasSuffix("/pieces"), range.lowerBound >= begin,
            !isReleased.load(ordering: .relaxed)
        {
            if cancellation.isCancelled {
                throw MediaError(
                    .cancelled, operation: "read", subject: url, reason: "was cancelled")
            }
            usleep(1_000)
        }
    }
}

/// A server in this process that is asked for parts, and remembers which.
final class Parts: PartServer {
    private let body: Data
    /// Of what it announces, which may be something else than what it gives.
    private let pieces: [UInt8]
    private let asked = Mutex<[Range<Int64>]>([])
    /// Of the body.
    var requests: [Range<Int64>] { asked.withLock { $0 } }
    var byteCount: Int { requests.reduce(0) { $0 + $1.count } }

    init(_ body: Data, announcing other: Data? = nil) {
        self.body = body
        pieces = PieceHashes(of: other ?? body).bytes
    }

    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        let bounds = Int(range.lowerBound)..<Int(range.upperBound)
        if url.hasSuffix("/pieces") { return Array(pieces[bounds]) }
        asked.withLock { $0.append(range) }
        return [UInt8](body[bounds])
    }
}

extension PieceHashes {
    init(of body: Data) {
        var hasher = PieceHasher(fileSize: Int64(body.count))
        body.withUnsafeBytes { hasher.update($0) }
        self = hasher.finish().pieces
    }
}

extension MediaFingerprint {
    init(of body: Data) {
        var hasher = PieceHasher(fileSize: Int64(body.count))
        body.withUnsafeBytes { hasher.update($0) }
        let (hash, pieces) = hasher.finish()
        self.init(hash: hash, byteCount: Int64(body.count), piecesRoot: pieces.root)
    }

    /// The same where nobody computed hashes of pieces.
    var withoutPieces: MediaFingerprint { MediaFingerprint(hash: hash, byteCount: byteCount) }
}

extension IncomingFile {
    convenience init(
        url: String, _ fingerprint: MediaFingerprint, pace: FetchPace = .unlimited
    ) throws(MediaError) {
        try self.init(url: url, fingerprint, pace: pace, server: StreamedRanges())
    }
}

extension MediaCache {
    func fetch(
        url: String, _ fingerprint: MediaFingerprint, fileExtension: String = "media",
        server: any ByteServer = StreamedRanges(),
        cancellation: MediaCancellation = MediaCancellation(),
        progress: (Int64) -> Void = { _ in }
    ) throws(MediaError) -> CachedFile {
        try fetch(
            IncomingFile(url: url, fingerprint, server: server), fileExtension: fileExtension,
            cancellation: cancellation, progress: progress)
    }
}
