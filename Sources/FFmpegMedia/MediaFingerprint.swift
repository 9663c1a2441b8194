import Crypto
public import TuttiPlayout

/// What makes two copies of an asset the same: SHA-256 of its bytes, and how many there are.
public struct MediaFingerprint: Equatable, Sendable {
    /// 32 bytes.
    public let hash: [UInt8]
    /// Length of the asset in bytes.
    public let byteCount: Int64
    /// Of the asset's ``PieceHashes``, 32 bytes; `nil` where nobody said: then nothing of it can be
    /// believed before all of it is here.
    public let piecesRoot: [UInt8]?

    /// Hash as 64 lower-case hexadecimal digits.
    public var text: String {
        let digits = Array("0123456789abcdef")
        return String(hash.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    /// Reads the whole file or address; some 0.6 GB a second from memory where the processor has
    /// instructions for SHA-256.
    ///
    /// - Throws: also `.unsupported` for a live stream, which has no end to read to.
    public init(
        of location: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        self = try Self.measure(location, cancellation: cancellation).fingerprint
    }

    /// The same with the hashes of its pieces, for whoever hands them out.
    public static func measure(
        _ location: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> (fingerprint: MediaFingerprint, pieces: PieceHashes) {
        let stream = try ByteStream(MediaLocation(location), cancellation: cancellation)
        try stream.checkEnds()
        let size = stream.byteCount ?? 0
        var hasher = PieceHasher(fileSize: size)
        while hasher.byteCount < size {
            let bytes = unsafe try stream.next()
            // A file that grows while it is read ends where it ended at first.
            let rest = unsafe bytes.prefix(Int(min(size - hasher.byteCount, Int64(bytes.count))))
            guard unsafe !rest.isEmpty else {
                throw MediaError(
                    .damaged, operation: "read", subject: location,
                    reason: "became shorter while it was read; try again")
            }
            unsafe hasher.update(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: rest)))
        }
        let (hash, pieces) = hasher.finish()
        return (
            MediaFingerprint(hash: hash, byteCount: size, piecesRoot: pieces.root), pieces
        )
    }

    /// - Parameter hash: 32 bytes.
    public init(hash: [UInt8], byteCount: Int64, piecesRoot: [UInt8]? = nil) {
        precondition(hash.count == 32, "a SHA-256 hash has 32 bytes, not \(hash.count)")
        self.hash = hash
        self.byteCount = byteCount
        self.piecesRoot = byteCount <= PieceHashes.largestFile ? piecesRoot : nil
    }
}

extension ByteStream {
    /// Refuses what would never end. A server that does not say how long a file is (chunked
    /// transfer, RFC 9112, 7.1) is asked whether it is a radio station (the ICY fields).
    func checkEnds() throws(MediaError) {
        guard byteCount == nil, let station = radioStation else { return }
        throw MediaError(
            .unsupported, operation: "avio_size", subject: location.subject,
            reason: "is a radio station\(station.isEmpty ? "" : " (\(station))") and has no end; "
                + "only recordings can be played in several rooms yet")
    }
}
