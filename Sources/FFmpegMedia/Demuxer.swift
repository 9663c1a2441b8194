import CTuttiFFmpeg
import TuttiPlayout

/// The packets of one stream of an opened file or address, with the ways back.
///
/// Confined to its owner's thread. Owns the format context and one packet that is used again.
@safe
final class Demuxer {
    let location: MediaLocation
    /// What is looked for: sound, or text.
    let kind: MediaTrack.Kind
    let cancellation: MediaCancellation
    private(set) var context: UnsafeMutablePointer<AVFormatContext>
    private(set) var stream: UnsafeMutablePointer<AVStream>
    private let packet: UnsafeMutablePointer<AVPacket>
    /// What libavformat reads by; `nil` where it does so by itself.
    private(set) var reader: LibraryReader?
    /// Of a local file when it was opened.
    private let openedByteCount: Int64?
    /// Packets of the stream that were read.
    private(set) var packetCount = 0
    /// Of streams of sound, as far as they were met on the way from the first packet.
    private(set) var firstPackets: [Int: FirstPacket] = [:]
    /// Streams of sound whose first packet may still come by; how many packets until then.
    private var awaited: [Int: Int] = [:]
    /// Of all tracks of an MP4, by their numbers there.
    private(set) lazy var editLists = readEditLists()
    /// The packet was read ahead and is to be yielded by the next `next()`.
    private var isHeld = false

    /// - Parameters:
    ///   - location: a file must be one, see ``MediaLocation/checkReadable()``.
    ///   - container: FFmpeg's name for what is there; `nil` to ask each of its demuxers.
    ///   - kind: of the stream that is looked for, audio or text.
    init(
        _ location: MediaLocation, container: String? = nil, kind: MediaTrack.Kind = .audio,
        cancellation: MediaCancellation
    ) throws(MediaError) {
        precondition(libraryIsQuiet)
        var location = try location.opened()
        self.kind = kind
        self.cancellation = cancellation
        guard let packet = unsafe av_packet_alloc() else { fatalError("no memory for a packet") }
        do throws(MediaError) {
            let reader = try Self.reader(of: &location, cancellation)
            self.location = location
            // The context reads by it until it is closed.
            defer { withExtendedLifetime(reader) {} }
            unsafe (context, stream) = try Self.open(
                location, container, kind, reader, cancellation)
            unsafe self.packet = packet
            self.reader = reader
            unsafe openedByteCount = Self.byteCount(of: context, location)
            awaitFirstPackets()
        } catch {
            var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
            unsafe av_packet_free(&packet)
            throw error
        }
    }

    deinit {
        var context: UnsafeMutablePointer<AVFormatContext>? = unsafe context
        var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
        unsafe av_packet_free(&packet)
        unsafe avformat_close_input(&context)
    }

    /// The next packet of the stream, valid until the next call; `nil` at the end.
    ///
    /// A truncated local file simply ends; an interrupted transfer is an error.
    func next() throws(MediaError) -> UnsafeMutablePointer<AVPacket>? {
        if isHeld {
            isHeld = false
            return unsafe packet
        }
        while true {
            unsafe av_packet_unref(packet)
            let code = unsafe av_read_frame(context, packet)
            if cancellation.isCancelled { throw failure(cff_error_exit, "av_read_frame") }
            if code == cff_error_eof {
                // Some demuxers take whatever ends their bytes for the end.
                if let known = reader?.failure { throw known }
                try checkReading()
                return nil
            }
            if code < 0 {
                if location.mayBreak { throw failure(code, "av_read_frame") }
                try checkReading()
                return nil
            }
            if !awaited.isEmpty { unsafe meet(packet) }
            if unsafe packet.pointee.stream_index == stream.pointee.index {
                // Priming packets are numbered and dropped by frame number, not by flag.
                unsafe packet.pointee.flags &= ~AV_PKT_FLAG_DISCARD
                packetCount += 1
                return unsafe packet
            }
        }
    }

    /// Keeps what is wanted of the first packet of another stream.
    private func meet(_ packet: UnsafeMutablePointer<AVPacket>) {
        let index = unsafe Int(packet.pointee.stream_index)
        guard let left = awaited[index] else { return }
        awaited[index] = left > 1 ? left - 1 : nil
        guard left == 1 else { return }
        firstPackets[index] = unsafe FirstPacket(packet)
        if index != track { unsafe context.pointee.streams[index]?.pointee.discard = AVDISCARD_ALL }
    }

    private func awaitFirstPackets() {
        awaited = streamsToAwait.filter { firstPackets[$0.key] == nil }
        for index in awaited.keys {
            unsafe context.pointee.streams[index]?.pointee.discard = AVDISCARD_DEFAULT
        }
    }

    /// Packets come from somewhere else from here on, and no first ones.
    private func awaitNothing() {
        for index in awaited.keys where index != track {
            unsafe context.pointee.streams[index]?.pointee.discard = AVDISCARD_ALL
        }
        awaited = [:]
    }

    /// A disk that fails is no end of the file: what libavformat's I/O met last.
    private func checkReading() throws(MediaError) {
        guard let io = unsafe context.pointee.pb else { return }
        let code = unsafe io.pointee.error
        if code < 0, code != cff_error_eof { throw failure(code, "read") }
    }

    /// Whether something was not read that may be there.
    var sawFailure: Bool {
        guard let io = unsafe context.pointee.pb else { return true }
        let code = unsafe io.pointee.error
        return cancellation.isCancelled || reader?.failure != nil
            || code < 0 && code != cff_error_eof
    }

    /// Bytes of a local file now; `nil` where that says nothing.
    private static func byteCount(
        of context: UnsafeMutablePointer<AVFormatContext>, _ location: MediaLocation
    ) -> Int64? {
        guard location.path != nil, let io = unsafe context.pointee.pb else { return nil }
        let size = unsafe avio_size(io)
        return size >= 0 ? size : nil
    }

    /// Whether a local file has lost bytes since it was opened.
    var isShortened: Bool {
        guard let openedByteCount, let now = unsafe Self.byteCount(of: context, location) else {
            return false
        }
        return now < openedByteCount
    }

    /// The same after a seek by bytes: what is left of a packet that was begun in the middle has no
    /// time, and is passed over.
    func nextWithTime() throws(MediaError) -> UnsafeMutablePointer<AVPacket>? {
        for _ in 0..<3 {
            guard let packet = unsafe try next() else { return nil }
            if unsafe packet.pointee.pts != cff_no_timestamp { return unsafe packet }
        }
        return nil
    }

    /// Makes the next `next()` yield the packet that the last one yielded.
    func hold() { isHeld = true }

    /// The next packets are to be played: see ``ReadAhead``.
    func foundPlace() { reader?.foundPlace() }

    /// - Returns: whether the container moved; where to, only the next packet tells.
    func seek(toTimestamp timestamp: Int64) -> Bool {
        isHeld = false
        awaitNothing()
        reader?.looksForPlace()
        return unsafe av_seek_frame(
            context, stream.pointee.index, timestamp, AVSEEK_FLAG_BACKWARD) >= 0
    }

    func seek(toByte position: Int64) -> Bool {
        isHeld = false
        awaitNothing()
        reader?.looksForPlace()
        return unsafe av_seek_frame(
            context, stream.pointee.index, position, AVSEEK_FLAG_BYTE) >= 0
    }

    /// Opens the location again, at its first packet: what always works where seeking does not.
    func reopen() throws(MediaError) {
        isHeld = false
        unsafe av_packet_unref(packet)
        var location = location
        let anew = try Self.reader(of: &location, cancellation)
        defer { withExtendedLifetime(anew) {} }
        let fresh = unsafe try Self.open(location, containerName, kind, anew, cancellation)
        var old: UnsafeMutablePointer<AVFormatContext>? = unsafe context
        unsafe avformat_close_input(&old)
        unsafe (context, stream) = fresh
        reader = anew
        awaitFirstPackets()
    }

    func failure(_ code: Int32, _ operation: String) -> MediaError {
        if let known = reader?.failure { return known }
        return MediaError(library: code, operation: operation, location: location)
    }
}

extension Demuxer {
    /// Bytes in the file; `nil` when the server does not say.
    var byteCount: Int64? {
        guard let io = unsafe context.pointee.pb else { return nil }
        let size = unsafe avio_size(io)
        return size > 0 ? size : nil
    }

    /// Whether the server says that it is a radio station, whatever length it claims.
    var isStation: Bool {
        guard let io = unsafe context.pointee.pb else { return false }
        var text: UnsafeMutablePointer<UInt8>?
        guard
            unsafe av_opt_get(io, "icy_metadata_headers", AV_OPT_SEARCH_CHILDREN, &text) >= 0,
            let value = unsafe text
        else { return false }
        defer { unsafe av_free(value) }
        return unsafe value[0] != 0
    }

    /// Whether the bytes can be read again from anywhere.
    var isSeekable: Bool {
        guard let io = unsafe context.pointee.pb else { return false }
        return unsafe io.pointee.seekable & AVIO_SEEKABLE_NORMAL != 0 && byteCount != nil
    }

    /// Leaves the packets where they are while `look` reads ``bytes(from:count:)``.
    func looking<Result>(
        _ look: () throws(MediaError) -> Result
    ) throws(MediaError) -> Result {
        guard let io = unsafe context.pointee.pb else { return try look() }
        let position = unsafe avio_seek(io, 0, SEEK_CUR)
        defer { unsafe avio_seek(io, position, SEEK_SET) }
        return try look()
    }

    /// Whether nothing but the name's ending speaks for the container: FFmpeg's lowest score.
    var isNamedOnly: Bool { unsafe context.pointee.probe_score == 1 }

    /// Bytes of the file itself, fewer at its end or where it cannot be read.
    func bytes(from offset: Int64, count: Int) -> [UInt8] {
        guard let io = unsafe context.pointee.pb, !cancellation.isCancelled,
            unsafe avio_seek(io, offset, SEEK_SET) == offset
        else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            unsafe filled = max(0, Int(avio_read(io, buffer.baseAddress, Int32(count))))
        }
    }

    /// First of FFmpeg's names for the container: `flac`, `mov`, `matroska` …
    var containerName: String {
        let names = unsafe String(cString: context.pointee.iformat.pointee.name)
        return String(names.prefix { $0 != "," })
    }

    /// The edit list of the stream in an MP4.
    var edits: MP4Edits? { unsafe edits(of: stream) }

    /// The same of another stream.
    func edits(of stream: UnsafeMutablePointer<AVStream>) -> MP4Edits? {
        location.ignoresEdits ? nil : unsafe editLists[Int64(stream.pointee.id)]
    }

    fileprivate func readEditLists() -> [Int64: MP4Edits] {
        guard containerName == "mov", isSeekable, let io = unsafe context.pointee.pb,
            let size = byteCount
        else { return [:] }
        return unsafe MP4Edits.read(io, size: size)
    }

    /// Whether an MP4 says that its samples are encrypted.
    var isProtected: Bool { unsafe Self.isProtected(stream) }

    static func isProtected(_ stream: UnsafeMutablePointer<AVStream>) -> Bool {
        let tag = unsafe stream.pointee.codecpar.pointee.codec_tag
        let name = String(
            decoding: (0..<4).map { UInt8(truncatingIfNeeded: tag >> (8 * $0)) }, as: UTF8.self)
        if ["drms", "enca", "aavd"].contains(name) { return true }
        return unsafe av_stream_get_side_data(
            stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, nil) != nil
    }
}
