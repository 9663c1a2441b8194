import CFFmpeg
public import Playout

/// Where a file's tags put it in an album; read from its header alone.
public struct MediaTags: Equatable, Sendable {
    public var album: String?
    /// From 1 on, as a rule.
    public var disc: Int?
    public var track: Int?

    /// - Throws: `MediaError` for what is no audio file.
    public init(
        of path: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        precondition(libraryIsQuiet)
        let location = try MediaLocation(path)
        try location.checkReadable()
        var context = unsafe avformat_alloc_context()
        guard unsafe context != nil else { fatalError("no memory for a format context") }
        unsafe context!.pointee.interrupt_callback = cancellation.interrupt
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        unsafe av_dict_set(&options, "protocol_whitelist", "file", 0)
        unsafe av_dict_set(&options, "format_whitelist", Demuxer.containerList, 0)
        let code = unsafe avformat_open_input(
            &context, location.address.cFileName, nil, &options)
        guard code >= 0, let opened = unsafe context else {
            throw MediaError(library: code, operation: "avformat_open_input", location: location)
        }
        defer { unsafe avformat_close_input(&context) }
        func tag(_ key: String) -> String? {
            if let text = unsafe MediaInfo.text(key, in: opened.pointee.metadata) { return text }
            // Ogg keeps its tags with the stream.
            for index in 0..<Int(unsafe opened.pointee.nb_streams) {
                let stream = unsafe opened.pointee.streams[index]!
                if let text = unsafe MediaInfo.text(key, in: stream.pointee.metadata) {
                    return text
                }
            }
            return nil
        }
        album = tag("album")
        disc = tag("disc").flatMap(Self.number)
        track = tag("track").flatMap(Self.number)
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
