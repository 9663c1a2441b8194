import CTuttiFFmpeg
import TuttiPlayout

/// libavformat's view of what a server sends once, from the first byte on: servers that code while
/// they send do not say how long it is, and plain ones know of no parts.
///
/// Its own view takes the end of a connection for the end of the sound. Here a body that breaks off
/// is an error at its place (RFC 9112, 6.3; see ``ByteStream``).
final class BodyReader: LibraryReader {
    private let stream: ByteStream
    /// What was looked at, and not read yet.
    private var head: ArraySlice<UInt8>
    private var next: Int64 = 0
    /// The first bytes of all, in which headers say how much sound there is.
    private let first: [UInt8]
    private static let firstLength = 4_096

    /// Bytes that are looked at to see whether an MP4 has its table of contents last.
    private static let headLength = ByteStream.blockSize

    /// What becomes of it.
    enum Opening {
        case read(BodyReader)
        /// All of it, by now a file: its table of contents came last.
        case held(MediaLocation)
    }

    /// - Returns: `nil` where this is nothing for it: a playlist, or by now a file with parts
    ///   (``WebReader/Opening``).
    /// - Throws: `MediaError` of the connection, and where no disk takes what has its table last.
    static func open(
        _ location: MediaLocation, cancellation: MediaCancellation
    ) throws(MediaError) -> Opening? {
        let stream = try ByteStream(location, cancellation: cancellation)
        guard stream.byteCount == nil || !stream.hasParts, stream.radioStation == nil,
            !stream.isPlaylist
        else { return nil }
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
        first = Array(head.prefix(Self.firstLength))
        super.init(part: 0..<Int64.max)
        unsafe io.pointee.seekable = 0
    }

    override var byteCount: Int64? { stream.byteCount }

    /// Bytes that were read.
    var count: Int64 { next }

    /// Bytes from the beginning of all, fewer behind what is kept of it.
    func beginning(from offset: Int64, count: Int) -> [UInt8] {
        Array(first.dropFirst(Int(min(offset, Int64(first.count)))).prefix(count))
    }

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
