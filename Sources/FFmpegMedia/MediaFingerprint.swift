import Crypto
public import Playout

/// What makes two copies of an asset the same: SHA-256 of its bytes, and how many there are.
public struct MediaFingerprint: Equatable, Sendable {
    /// 32 bytes.
    public let hash: [UInt8]
    public let byteCount: Int64

    /// Hash as 64 lower-case hexadecimal digits.
    public var text: String {
        let digits = Array("0123456789abcdef")
        return String(hash.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    /// Reads the whole file or address; some 1.2 GB a second from memory where the processor has
    /// instructions for SHA-256.
    ///
    /// - Throws: also `.unsupported` for a live stream, which has no end to read to.
    public init(
        of location: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        let stream = try ByteStream(MediaLocation(location), cancellation: cancellation)
        try stream.checkEnds()
        var hasher = SHA256()
        var count: Int64 = 0
        while case let bytes = unsafe try stream.next(), !bytes.isEmpty {
            unsafe hasher.update(bufferPointer: UnsafeRawBufferPointer(bytes))
            count += Int64(bytes.count)
        }
        hash = Array(hasher.finalize())
        byteCount = count
    }

    /// - Parameter hash: 32 bytes.
    public init(hash: [UInt8], byteCount: Int64) {
        precondition(hash.count == 32, "a SHA-256 hash has 32 bytes, not \(hash.count)")
        self.hash = hash
        self.byteCount = byteCount
    }
}

extension ByteStream {
    /// Refuses what would never end.
    func checkEnds() throws(MediaError) {
        guard byteCount == nil else { return }
        throw MediaError(
            .unsupported, operation: "avio_size", subject: location.subject,
            reason: "is a live stream without a length; only whole files can be shared with rooms")
    }
}
