public import Playout

/// Parts of a file, from a server that has all of it.
public protocol ByteRanges: Sendable {
    /// The bytes at these offsets of what is at `url`; blocks until they are here.
    ///
    /// - Throws: `.network` when the server does not answer, or answers something else;
    ///   `.unsupported` for an address of another kind; `.cancelled`.
    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8]
}

/// A connection for each part, by libavformat.
struct SeparateRanges: ByteRanges {
    func bytes(
        _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
    ) throws(MediaError) -> [UInt8] {
        let location = try MediaLocation(url)
        let stream = try ByteStream(
            location, from: range.lowerBound, to: range.upperBound, cancellation: cancellation)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        while bytes.count < range.count {
            let next = unsafe try stream.next()
            guard !next.isEmpty else {
                throw MediaError(
                    .network, operation: "read", subject: url,
                    reason: "ended after \(bytes.count) of the bytes \(range)")
            }
            unsafe bytes.append(contentsOf: next.prefix(range.count - bytes.count))
        }
        return bytes
    }
}
