public import TuttiPlayout

/// Where a file's tags put it in an album; read from its header alone.
public struct MediaTags: Equatable, Sendable {
    /// The album's title; `nil` where the tags do not say.
    public var album: String?
    /// From 1 on, as a rule.
    public var disc: Int?
    /// Number within the disc, from 1 on as a rule.
    public var track: Int?

    /// - Throws: `MediaError` for what is no audio file.
    public init(
        of path: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        let header = try MediaHeader(of: path, cancellation: cancellation)
        album = header.tags["album"]
        disc = header.tags["disc"].flatMap(Self.number)
        track = header.tags["track"].flatMap(Self.number)
    }

    /// Of `3`, `03` or `3/12`.
    static func number(_ text: String) -> Int? {
        Int(text.drop(while: \.isWhitespace).prefix { $0.isASCII && $0.isNumber })
    }
}

/// The bytes of a small file or address.
public enum MediaBytes {
    /// - Throws: also `.tooLarge` where there are more than `most`.
    public static func read(
        _ location: String, atMost most: Int,
        cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> [UInt8] {
        let stream = try ByteStream(MediaLocation(location), cancellation: cancellation)
        var bytes: [UInt8] = []
        while case let next = unsafe try stream.next(), !next.isEmpty {
            unsafe bytes.append(contentsOf: next)
            guard bytes.count <= most else {
                throw MediaError(
                    .tooLarge, operation: "read", subject: location,
                    reason: "is longer than \(most) bytes")
            }
        }
        return bytes
    }
}
