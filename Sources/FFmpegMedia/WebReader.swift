import CTuttiFFmpeg
import TuttiPlayout

/// libavformat's view of a file on a server that hands out parts (RFC 9110, 14).
///
/// Its own view asks for all that follows a place and hangs up at the next seek: servers send, and
/// systems buffer, some megabytes for each. Here each request has an end: a little behind a place that
/// was sought, twice as much each time that reading goes on.
final class WebReader: LibraryReader {
    /// Bytes asked for at a place that was sought: 3 s of lossless sound, and twice what
    /// libavformat reads to know a container.
    private static let first: Int64 = 131_072
    /// Bytes asked for at most: connections cost a round trip or three.
    private static let largest: Int64 = 8 << 20
    /// So far ahead it is cheaper to read on than to ask.
    private static let step: Int64 = 65_536
    /// In a row, without a byte between them.
    private static let attemptLimit = 2

    private let location: MediaLocation
    private let size: Int64
    private let cancellation: MediaCancellation
    private var stream: ByteStream?
    /// Offset of the next byte of `stream`, and where it ends.
    private var next: Int64
    private var end: Int64
    private var request = WebReader.first

    /// What an address turned out to be.
    enum Opening {
        /// It has a length, and can be read from any place.
        case parts(WebReader)
        /// A body without a length, or without parts: see ``BodyReader``.
        case body
        /// What libavformat opens by itself: radio stations, and playlists, whose parts are elsewhere.
        case other
    }

    static func open(
        _ location: MediaLocation, cancellation: MediaCancellation
    ) throws(MediaError) -> Opening {
        let begin = location.part?.lowerBound ?? 0
        let stream = try ByteStream(
            location, from: begin, to: begin + first, cancellation: cancellation)
        guard stream.radioStation == nil, !stream.isPlaylist else { return .other }
        guard let size = stream.byteCount, size > 0, stream.hasParts else {
            return location.part == nil ? .body : .other
        }
        return .parts(WebReader(location, stream, size, begin, cancellation))
    }

    private init(
        _ location: MediaLocation, _ stream: ByteStream, _ size: Int64, _ begin: Int64,
        _ cancellation: MediaCancellation
    ) {
        self.location = location
        self.stream = stream
        self.size = size
        self.cancellation = cancellation
        next = begin
        end = min(size, begin + Self.first)
        super.init(part: location.part?.clamped(to: 0..<size) ?? 0..<size)
    }

    override func fill(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
    ) throws(MediaError) -> Int {
        var attempts = 0
        while true {
            do throws(MediaError) {
                try approach(offset)
                guard let stream else { return 0 }
                let count = min(buffer.count, Int(end - next))
                let got = unsafe try stream.read(
                    into: UnsafeMutableBufferPointer(rebasing: buffer[..<count]))
                unsafe location.spool?.take(
                    UnsafeBufferPointer(rebasing: buffer[..<got]), at: next)
                next += Int64(got)
                if got > 0 { return got }
                throw MediaError(
                    library: cff_error(EIO), operation: "av_read_frame", location: location)
            } catch {
                stream = nil
                attempts += 1
                guard error.code == .network, attempts < Self.attemptLimit,
                    !cancellation.isCancelled
                else { throw error }
            }
        }
    }

    /// Makes the next byte of `stream` the one at `offset`.
    private func approach(_ offset: Int64) throws(MediaError) {
        if let stream, offset > next, offset < end, offset - next <= Self.step {
            try stream.skip(offset - next)
            next = offset
        }
        if stream != nil, offset == next, next < end { return }
        // Reading goes on where the last request ended, or begins somewhere else.
        request = offset == next && offset == end ? min(2 * request, Self.largest) : Self.first
        stream = nil
        next = offset
        end = min(size, offset + request)
        let fresh = try ByteStream(location, from: offset, to: end, cancellation: cancellation)
        guard fresh.byteCount == size else {
            throw MediaError(
                .damaged, operation: "http", subject: location.subject,
                reason: "was changed on the server while it was played; open it again")
        }
        stream = fresh
    }
}
