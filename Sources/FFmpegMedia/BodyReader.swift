import CTuttiFFmpeg
import TuttiPlayout

/// libavformat's view of what a server sends without saying how long it is: once, from the first
/// byte on. Servers do so that code while they send.
///
/// Its own view takes the end of a connection for the end of the sound. Here a body that breaks off
/// is an error at its place (RFC 9112, 6.3; see ``ByteStream``).
final class BodyReader: LibraryReader {
    private let stream: ByteStream
    /// What was looked at, and not read yet.
    private var head: ArraySlice<UInt8>
    private var next: Int64 = 0

    /// Bytes that are looked at to see whether an MP4 has its table of contents last.
    private static let headLength = ByteStream.blockSize

    /// What becomes of a body without a length.
    enum Opening {
        case read(BodyReader)
        /// All of it, by now a file: its table of contents came last.
        case held(MediaLocation)
    }

    /// - Returns: `nil` where this is nothing for it: a playlist, or no body without a length any
    ///   more (``WebReader/Opening``).
    /// - Throws: `MediaError` of the connection, and where no disk takes what has its table last.
    static func open(
        _ location: MediaLocation, cancellation: MediaCancellation
    ) throws(MediaError) -> Opening? {
        let stream = try ByteStream(location, cancellation: cancellation)
        guard stream.byteCount == nil, stream.radioStation == nil, !stream.isPlaylist else {
            return nil
        }
        var head: [UInt8] = []
        while head.count < headLength, MP4Edits.hasTableLast(head) == nil,
            case let bytes = unsafe try stream.next(), !bytes.isEmpty
        {
            unsafe head.append(contentsOf: bytes)
        }
        if head.starts(with: "#EXTM3U".utf8) { return nil }
        if MP4Edits.hasTableLast(head) == true {
            return .held(try Spool.take(all: stream, behind: head))
        }
        return .read(BodyReader(stream, head[...]))
    }

    private init(_ stream: ByteStream, _ head: ArraySlice<UInt8>) {
        self.stream = stream
        self.head = head
        super.init(part: 0..<Int64.max)
        unsafe io.pointee.seekable = 0
    }

    override var byteCount: Int64? { nil }

    override func fill(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
    ) throws(MediaError) -> Int {
        guard offset == next else {
            throw MediaError(
                .unsupported, operation: "seek", subject: stream.location.subject,
                reason: "is sent once, from its beginning, and cannot be read elsewhere; "
                    + "fetch it and play the file")
        }
        var count = min(head.count, buffer.count)
        if count > 0 {
            for place in 0..<count { unsafe buffer[place] = head[head.startIndex + place] }
            head.removeFirst(count)
        } else {
            count = unsafe try stream.read(into: buffer)
        }
        next += Int64(count)
        return count
    }
}
