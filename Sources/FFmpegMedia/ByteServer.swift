public import TuttiPlayout

/// A node of the house that has whole files, as one sees it that needs their bytes.
public protocol ByteServer: Sendable {
    /// Asks for the bytes at these offsets of what is at `url`; blocks until it says that they come.
    ///
    /// Follows no redirect: who has the file is who was asked. One that serves others first is
    /// waited for.
    ///
    /// - Throws: `.network` when the server does not answer, or answers something else;
    ///   `.notFound` when it has no such file; `.damaged` when the file ends before; `.notReadable`
    ///   when it sends somewhere else; `.unsupported` for an address of another kind; `.cancelled`.
    func answer(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> any ByteAnswer

    /// The bytes at these offsets, all at once; otherwise as ``answer(_:of:_:)``.
    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8]
}

/// What a ``ByteServer`` sends to one question. While nobody takes it, the server stops sending.
public protocol ByteAnswer: AnyObject {
    /// Some of the bytes, in their order; blocks until there are any. Empty behind the last one.
    ///
    /// - Throws: `.network` when they break off; `.cancelled`.
    func next() throws(MediaError) -> [UInt8]
}

extension ByteServer {
    /// One answer, taken as a whole.
    public func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        guard !range.isEmpty else { return [] }
        let answer = try answer(range, of: url, cancellation)
        var bytes = try answer.next()
        while bytes.count < range.count, case let more = try answer.next(), !more.isEmpty {
            bytes += more
        }
        guard bytes.count == range.count else {
            throw .ended(url, after: bytes.count, of: range)
        }
        return bytes
    }

    /// The hashes of the pieces of a file: behind its address, under `/pieces`.
    ///
    /// - Throws: as ``answer(_:of:_:)``; `.damaged` when they are not those that were announced.
    func pieces(
        of fingerprint: MediaFingerprint, root: [UInt8], at url: String,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> PieceHashes {
        let size = Int64(PieceHashes.listSize(fileSize: fingerprint.byteCount))
        let list = try bytes(0..<size, of: url + "/pieces", cancellation)
        guard
            let pieces = PieceHashes(list, fileSize: fingerprint.byteCount, root: root)
        else {
            throw .notAnnounced(url, operation: "pieces")
        }
        return pieces
    }
}

/// The bytes of a file at a ``ByteServer`` in their order, whatever breaks off on the way: the next
/// question is for the byte behind the last one that came.
///
/// One thread at a time.
final class ServedStream {
    private let server: any ByteServer
    private let url: () -> String
    private let end: Int64
    private let cancellation: MediaCancellation
    private var latest: (any ByteAnswer)?
    private var persistence = Persistence()
    /// Offset of the byte that comes next, and those before it that nobody has taken.
    private var next: Int64
    private var untaken: ArraySlice<UInt8> = []

    /// Offset of the byte that is taken next.
    var position: Int64 { next - Int64(untaken.count) }

    /// - Parameter url: where the file is just now; asked for each question.
    init(
        _ range: Range<Int64>, at server: any ByteServer, _ cancellation: MediaCancellation,
        url: @escaping () -> String
    ) {
        self.server = server
        self.url = url
        self.cancellation = cancellation
        next = range.lowerBound
        end = range.upperBound
    }

    /// The next bytes, fewer than `count` at the end; blocks until they are here.
    ///
    /// - Throws: as ``ByteServer/answer(_:of:_:)``; `.network` when some attempts brought hardly
    ///   anything.
    func take(_ count: Int) throws(MediaError) -> [UInt8] {
        while untaken.count < count, next < end {
            do throws(MediaError) {
                let bytes = try receive()
                persistence.succeeded(with: bytes.count)
                next += Int64(bytes.count)
                untaken += bytes
            } catch {
                latest = nil
                try persistence.wait(after: error, cancellation)
            }
        }
        defer { untaken = untaken.dropFirst(count) }
        return Array(untaken.prefix(count))
    }

    private func receive() throws(MediaError) -> [UInt8] {
        let answer: any ByteAnswer
        if let latest {
            answer = latest
        } else {
            answer = try server.answer(next..<end, of: url(), cancellation)
            latest = answer
        }
        let bytes = try answer.next()
        guard !bytes.isEmpty, Int64(bytes.count) <= end - next else {
            throw .ended(url(), after: bytes.count, of: next..<end)
        }
        return bytes
    }
}

/// How often something is tried that a network breaks off.
struct Persistence {
    /// In a row, with hardly a byte between them.
    private static let attemptLimit = 3
    /// So many bytes make good for what failed before. One would do for who says a byte now and then:
    /// that would be tried for ever.
    private static let enough = 16_384
    /// Between two attempts: a node that restarts its media service needs some tenths of a second.
    private static let pause = Duration.milliseconds(200)

    private var failures = 0
    /// Bytes since the last failure.
    private var brought = 0

    mutating func succeeded(with count: Int) {
        brought += count
        if brought >= Self.enough { failures = 0 }
    }

    /// Blocks until the next attempt.
    ///
    /// - Throws: `error` when it was the last one, or says that another one will be no better.
    mutating func wait(
        after error: MediaError, _ cancellation: MediaCancellation
    ) throws(MediaError) {
        failures += 1
        brought = 0
        guard error.code == .network, failures < Self.attemptLimit, !cancellation.isCancelled else {
            throw error
        }
        cancellation.wait(Self.pause)
    }
}

extension MediaError {
    /// A source that gave something else than what was announced.
    static func notAnnounced(_ url: String, operation: String) -> MediaError {
        MediaError(
            .damaged, operation: operation, subject: url,
            reason: "is not the file that was announced; was it changed on the leader?")
    }

    fileprivate static func ended(
        _ url: String, after count: Int, of range: Range<Int64>
    ) -> MediaError {
        MediaError(
            .network, operation: "read", subject: url,
            reason: "gave \(count) of the bytes \(range.lowerBound) to \(range.upperBound - 1)")
    }
}
