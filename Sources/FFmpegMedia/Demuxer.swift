import CFFmpeg
import Playout

/// The packets of one audio stream of an opened file or address, with the ways back.
///
/// Confined to its owner's thread. Owns the format context and one packet that is used again.
@safe
final class Demuxer {
    /// Longest wait for a server that says nothing; long enough for a sleeping disk behind it.
    static let ioTimeoutMicroseconds = 10_000_000

    /// What may be opened. The list keeps out everything that names other files or devices
    /// (concat, playlists on disk, image sequences, lavfi); hls only from a server.
    private static let containers =
        "aac,ac3,aiff,alac,amr,ape,asf,au,avi,bonk,caf,dsf,dts,eac3,flac,flv,iff,loas,matroska,mlp,"
        + "mov,mp3,mpc,mpc8,mpeg,mpegts,oga,ogg,oma,rm,rso,sln,sox,tak,truehd,tta,voc,vqf,w64,wav,"
        + "wv,xwma"

    /// What else may be opened as a local file: old, of studios and of games. Whoever sends them over
    /// the network would reach demuxers that few look after.
    ///
    /// Left out on purpose: what only a name's ending tells (G.722, GSM, aptX), since rooms keep files
    /// under names of their own; and tracker modules and the chips of game consoles (libopenmpt,
    /// libgme), which are programs for a synthesiser that varies them at random or plays without
    /// end: two rooms would not hear the same.
    private static let localContainers =
        ",adx,aea,ast,avr,bfstm,brstm,epaf,gxf,hca,ircam,mmf,mxf,nistsphere,nsp,nut,paf,pvf,qcp,"
        + "sds,shn,spdif,svs,wtv,wve,xa"

    /// Headers are shorter, the pictures in them included: 64 MiB.
    private static let headerBlocksMax = (64 << 20) / ByteStream.blockSize

    let location: MediaLocation
    let cancellation: MediaCancellation
    private(set) var context: UnsafeMutablePointer<AVFormatContext>
    private(set) var stream: UnsafeMutablePointer<AVStream>
    private let packet: UnsafeMutablePointer<AVPacket>
    /// What libavformat reads by; `nil` where it does so by itself.
    private var reader: LibraryReader?
    /// Of a local file when it was opened.
    private let openedByteCount: Int64?
    /// Packets of the stream that were read.
    private(set) var packetCount = 0
    /// The packet was read ahead and is to be yielded by the next `next()`.
    private var isHeld = false

    /// - Parameters:
    ///   - location: a file must be one, see ``MediaLocation/checkReadable()``.
    ///   - container: FFmpeg's name for what is there; `nil` to ask each of its demuxers.
    init(
        _ location: MediaLocation, container: String? = nil, cancellation: MediaCancellation
    ) throws(MediaError) {
        precondition(libraryIsQuiet)
        let location = try location.opened()
        self.location = location
        self.cancellation = cancellation
        guard let packet = unsafe av_packet_alloc() else { fatalError("no memory for a packet") }
        do throws(MediaError) {
            let reader = try Self.reader(of: location, cancellation)
            // The context reads by it until it is closed.
            defer { withExtendedLifetime(reader) {} }
            let context = unsafe try Self.open(location, container, reader, cancellation)
            do throws(MediaError) {
                unsafe self.stream = try Self.audioStream(of: context, location)
            } catch {
                var context: UnsafeMutablePointer<AVFormatContext>? = unsafe context
                unsafe avformat_close_input(&context)
                throw error
            }
            unsafe self.context = context
            unsafe self.packet = packet
            self.reader = reader
            unsafe openedByteCount = Self.byteCount(of: context, location)
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
            if unsafe packet.pointee.stream_index == stream.pointee.index {
                // Priming packets are numbered and dropped by frame number, not by flag.
                unsafe packet.pointee.flags &= ~AV_PKT_FLAG_DISCARD
                packetCount += 1
                return unsafe packet
            }
        }
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
        reader?.looksForPlace()
        return unsafe av_seek_frame(
            context, stream.pointee.index, timestamp, AVSEEK_FLAG_BACKWARD) >= 0
    }

    func seek(toByte position: Int64) -> Bool {
        isHeld = false
        reader?.looksForPlace()
        return unsafe av_seek_frame(
            context, stream.pointee.index, position, AVSEEK_FLAG_BYTE) >= 0
    }

    /// Opens the location again, at its first packet: what always works where seeking does not.
    func reopen() throws(MediaError) {
        isHeld = false
        unsafe av_packet_unref(packet)
        let anew = try Self.reader(of: location, cancellation)
        defer { withExtendedLifetime(anew) {} }
        let fresh = unsafe try Self.open(location, containerName, anew, cancellation)
        let audio: UnsafeMutablePointer<AVStream>
        do throws(MediaError) { unsafe audio = try Self.audioStream(of: fresh, location) } catch {
            var fresh: UnsafeMutablePointer<AVFormatContext>? = unsafe fresh
            unsafe avformat_close_input(&fresh)
            throw error
        }
        var old: UnsafeMutablePointer<AVFormatContext>? = unsafe context
        unsafe avformat_close_input(&old)
        unsafe (context, stream) = (fresh, audio)
        reader = anew
    }

    func failure(_ code: Int32, _ operation: String) -> MediaError {
        if let known = reader?.failure { return known }
        return MediaError(library: code, operation: operation, location: location)
    }
}

extension Demuxer {
    static var containerList: String { containers + localContainers }

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

    /// Containers whose headers say how long the sound is, not how long it may be.
    private static let promising: Set<String> = [
        "flac", "aiff", "mov", "mp3", "wv", "tta", "ape", "tak", "matroska", "flv", "rm",
    ]

    /// Those that say it for all their streams together.
    private static let promisingForAll: Set<String> = ["matroska", "flv", "rm"]

    /// Frames that the header says there are, delay and padding included; `nil` for containers whose
    /// headers do not, and where it is left open.
    func promisedFrames(perSecond sampleRate: Int, counted: Int64) -> Int64? {
        if let size = byteCount,
            let chunk = DataChunk.range(
                in: containerName, fileSize: size, bytes: { bytes(from: $0, count: $1) })
        {
            guard chunk.upperBound > size, chunk.lowerBound < size else { return counted }
            let there = Double(size - chunk.lowerBound)
            return Int64(Double(counted) * min(1e6, Double(chunk.count) / there))
        }
        let duration = unsafe stream.pointee.duration
        let base = unsafe stream.pointee.time_base
        guard Self.promising.contains(containerName),
            unsafe context.pointee.duration_estimation_method == AVFMT_DURATION_FROM_STREAM
        else { return nil }
        if duration != cff_no_timestamp, duration > 0 {
            return av_rescale_q(duration, base, AVRational(num: 1, den: Int32(sampleRate)))
        }
        let whole = unsafe context.pointee.duration
        guard Self.promisingForAll.contains(containerName), whole > 0,
            unsafe context.pointee.nb_streams == 1
        else { return nil }
        return av_rescale(whole, Int64(sampleRate), Int64(AV_TIME_BASE))
    }

    /// The edit list of the stream in an MP4.
    var edits: MP4Edits? {
        guard containerName == "mov", !location.ignoresEdits, isSeekable,
            let io = unsafe context.pointee.pb, let size = byteCount
        else { return nil }
        return unsafe MP4Edits.read(io, track: Int64(stream.pointee.id), size: size)
    }

    /// Whether an MP4 says that its samples are encrypted.
    var isProtected: Bool {
        let tag = unsafe stream.pointee.codecpar.pointee.codec_tag
        let name = String(
            decoding: (0..<4).map { UInt8(truncatingIfNeeded: tag >> (8 * $0)) }, as: UTF8.self)
        if ["drms", "enca", "aavd"].contains(name) { return true }
        return unsafe av_stream_get_side_data(
            stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, nil) != nil
    }

    /// Some demuxers call it an I/O error when a file ends within its header, as they call a disk
    /// that fails: whether it is not that.
    private static func readsToEnd(
        _ location: MediaLocation, _ cancellation: MediaCancellation
    ) -> Bool {
        // What arrives has an error of its own for bytes that do not.
        if location.incoming != nil { return true }
        guard !location.isRemote,
            let stream = try? ByteStream(location, cancellation: cancellation)
        else { return false }
        for _ in 0..<headerBlocksMax {
            guard let bytes = unsafe try? stream.next() else { return false }
            if bytes.isEmpty { return true }
        }
        return false
    }

    /// Whether a local file is an MP4 that ends before what tells where its samples are.
    private static func lacksTable(
        _ location: MediaLocation, _ cancellation: MediaCancellation
    ) -> Bool {
        guard let path = location.path, ContainerSignature.container(ofFile: path) == "mov" else {
            return false
        }
        var io: UnsafeMutablePointer<AVIOContext>?
        var interrupt = unsafe cancellation.interrupt
        guard
            unsafe avio_open2(&io, location.address.cFileName, AVIO_FLAG_READ, &interrupt, nil)
                >= 0,
            let opened = unsafe io
        else { return false }
        defer { unsafe avio_closep(&io) }
        return unsafe MP4Edits.isIncomplete(opened, size: avio_size(opened))
    }

    /// - Returns: `nil` for what libavformat reads by itself.
    private static func reader(
        of location: MediaLocation, _ cancellation: MediaCancellation
    ) throws(MediaError) -> LibraryReader? {
        if let file = location.incoming {
            return IncomingReader(file, location.part, cancellation: cancellation)
        }
        if let file = location.file {
            return FileReader(file, location, cancellation: cancellation)
        }
        guard location.isRemote else { return nil }
        return try WebReader.open(location, cancellation: cancellation)
    }

    private static func open(
        _ location: MediaLocation, _ container: String?, _ reader: LibraryReader?,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> UnsafeMutablePointer<AVFormatContext> {
        var context = unsafe avformat_alloc_context()
        guard unsafe context != nil else { fatalError("no memory for a format context") }
        unsafe context!.pointee.interrupt_callback = cancellation.interrupt
        if let reader {
            unsafe context!.pointee.pb = reader.io
            unsafe context!.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        }
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        let protocols = location.isRemote ? "http,https,tcp,tls,crypto" : "file"
        let range = location.part == nil ? "" : ",subfile"
        unsafe av_dict_set(&options, "protocol_whitelist", protocols + range, 0)
        let kinds = containers + (location.isRemote ? ",hls" : localContainers)
        unsafe av_dict_set(&options, "format_whitelist", kinds, 0)
        // The demuxer's own cut at an edit list rounds the last packet to the movie's timescale,
        // often milliseconds; the table itself is exact.
        unsafe av_dict_set(&options, "advanced_editlist", "0", 0)
        unsafe MediaTrust.system.set(&options, for: location)
        if location.isRemote {
            unsafe av_dict_set_int(&options, "rw_timeout", Int64(ioTimeoutMicroseconds), 0)
        }
        let format = unsafe container.flatMap { unsafe av_find_input_format($0) }
        var code = unsafe avformat_open_input(
            &context, location.partAddress.cFileName, format, &options)
        guard code >= 0, let opened = unsafe context else {
            if let known = reader?.failure { throw known }
            if code == cff_error(EIO), readsToEnd(location, cancellation) {
                throw MediaError(
                    .damaged, operation: "avformat_open_input", subject: location.subject,
                    reason: "ends within its header, as if cut off; try another copy")
            }
            if code == cff_error_invalid_data, lacksTable(location, cancellation) {
                throw MediaError(
                    .damaged, operation: "avformat_open_input", subject: location.subject,
                    reason: "is incomplete: its table of contents (moov) is missing, as when a "
                        + "recording or a download broke off; try another copy")
            }
            throw MediaError(library: code, operation: "avformat_open_input", location: location)
        }
        code = unsafe avformat_find_stream_info(opened, nil)
        guard code >= 0 else {
            unsafe avformat_close_input(&context)
            if let known = reader?.failure { throw known }
            throw MediaError(
                library: code, operation: "avformat_find_stream_info", location: location)
        }
        return unsafe opened
    }

    /// The stream to play; all others are dropped by the demuxer.
    private static func audioStream(
        of context: UnsafeMutablePointer<AVFormatContext>, _ location: MediaLocation
    ) throws(MediaError) -> UnsafeMutablePointer<AVStream> {
        let best = unsafe av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, nil, 0)
        guard best >= 0, let stream = unsafe context.pointee.streams[Int(best)] else {
            // An audio stream without rate or channels: the name or the first bytes deceived.
            let hasNamesake = (0..<Int(unsafe context.pointee.nb_streams)).contains {
                unsafe context.pointee.streams[$0]!.pointee.codecpar.pointee.codec_type
                    == AVMEDIA_TYPE_AUDIO
            }
            if hasNamesake {
                throw MediaError(
                    .notMedia, operation: "av_find_best_stream", subject: location.subject,
                    reason: "is not an audio file that can be played, or its beginning is damaged")
            }
            throw MediaError(
                .noAudio, operation: "av_find_best_stream", subject: location.subject,
                reason: "holds no sound; choose a file with an audio track")
        }
        for index in 0..<Int(unsafe context.pointee.nb_streams) where index != Int(best) {
            unsafe context.pointee.streams[index]!.pointee.discard = AVDISCARD_ALL
        }
        return unsafe stream
    }
}
