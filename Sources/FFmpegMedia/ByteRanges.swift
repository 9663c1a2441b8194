public import Playout

/// Parts of a file, from a server that has all of it.
public protocol ByteRanges: Sendable {
    /// The bytes at these offsets of what is at `url`; blocks until they are here.
    ///
    /// Follows no redirect: who has the file is who was asked. One that serves others first is
    /// waited for.
    ///
    /// - Throws: `.network` when the server does not answer, or answers something else;
    ///   `.notFound` when it has no such file; `.damaged` when the file ends before; `.notReadable`
    ///   when it sends somewhere else; `.unsupported` for an address of another kind; `.cancelled`.
    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8]
}

extension ByteRanges {
    /// The hashes of the pieces of a file: behind its address, under `/pieces`.
    ///
    /// - Throws: as ``bytes(_:of:_:)``; `.damaged` when they are not those that were announced.
    func pieces(
        of fingerprint: MediaFingerprint, root: [UInt8], at url: String,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> PieceHashes {
        let size = Int64(PieceHashes.listSize(fileSize: fingerprint.byteCount))
        var list: [UInt8] = []
        while Int64(list.count) < size {
            let begin = Int64(list.count)
            let part = begin..<min(size, begin + longestListPart)
            list += try bytes(part, of: url + "/pieces", cancellation)
        }
        guard
            let pieces = PieceHashes(list, fileSize: fingerprint.byteCount, root: root)
        else {
            throw .notAnnounced(url, operation: "pieces")
        }
        return pieces
    }
}

/// Of a list of hashes, bytes asked for at once; all of it as a rule.
private let longestListPart: Int64 = 262_144

extension MediaError {
    /// A source that gave something else than what was announced.
    static func notAnnounced(_ url: String, operation: String) -> MediaError {
        MediaError(
            .damaged, operation: operation, subject: url,
            reason: "is not the file that was announced; was it changed on the leader?")
    }
}
