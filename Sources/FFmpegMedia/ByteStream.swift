import CTuttiFFmpeg
import Glibc
import TuttiPlayout
import TuttiTiming

/// The bytes of a file, or of an address of the world, from an offset on (libavformat's I/O,
/// undecoded). What another node has comes by a ``ServedStream``.
@safe
final class ByteStream {
    /// Bytes read at once.
    static let blockSize = 65_536
    /// Longer than libavformat itself waits for a silent server.
    static let patience = Nanoseconds.seconds(15)

    let location: MediaLocation
    /// Bytes in the whole; `nil` when the server does not say, as with a live stream.
    let byteCount: Int64?
    private let trust: MediaTrust
    private let cancellation: MediaCancellation
    /// Longest wait for the next bytes.
    private let patience: Nanoseconds
    private let io: UnsafeMutablePointer<AVIOContext>
    private let block: UnsafeMutableBufferPointer<UInt8>

    /// - Parameters:
    ///   - end: offset behind the last byte to ask a server for; `nil`: all there are.
    ///   - patience: longest wait for the next bytes.
    ///   - trust: which certificates an https server may have.
    init(
        _ location: MediaLocation, from offset: Int64 = 0, to end: Int64? = nil,
        trust: MediaTrust = .system,
        patience: Nanoseconds = ByteStream.patience, cancellation: MediaCancellation
    ) throws(MediaError) {
        precondition(libraryIsQuiet)
        try location.checkReadable()
        let request = Request(offset: offset, end: end, trust: trust)
        var (opened, code) = unsafe Self.open(location, request, cancellation)
        let isRefused = unsafe opened == nil
        if isRefused, !cancellation.isCancelled,
            let end = Self.end(of: location, trust, cancellation)
        {
            unsafe (opened, code) = Self.open(end, request, cancellation)
        }
        guard let io = unsafe opened else {
            if cancellation.isCancelled {
                throw MediaError(
                    library: cff_error_exit, operation: "avio_open2", location: location)
            }
            throw WebDiagnosis(location: location, trust: trust, cancellation: cancellation).error()
                ?? MediaError(library: code, operation: "avio_open2", location: location)
        }
        let size = unsafe avio_size(io)
        byteCount = size >= 0 ? size : nil
        if byteCount == nil { unsafe Self.distinguishEnds(of: io) }
        unsafe self.io = io
        self.location = location
        self.trust = trust
        self.cancellation = cancellation
        self.patience = patience
        unsafe block = .allocate(capacity: Self.blockSize)
        // libavformat takes a redirection that leads nowhere for the body: nothing, or a web page. The
        // server is asked once more only for these; it may serve one connection at a time.
        if location.isRemote,
            byteCount == 0 || exported("mime_type")?.lowercased().hasPrefix("text/html") == true,
            let failure = WebDiagnosis(
                location: location, trust: trust, cancellation: cancellation
            ).error()
        {
            throw failure
        }
    }

    deinit {
        var io: UnsafeMutablePointer<AVIOContext>? = unsafe io
        unsafe avio_closep(&io)
        unsafe block.deallocate()
    }

    /// Whether the end of the connection, which libavformat takes for an interruption, is the end of
    /// the body: where nothing else says where that is (RFC 9112, 6.3, 8). The server is asked once
    /// more for what it says of the body.
    private func endsWithConnection() -> Bool {
        guard location.isRemote, byteCount == nil else { return false }
        if exported("http_version") == "1.0" { return true }
        return WebDiagnosis(location: location, trust: trust, cancellation: cancellation)
            .endsWithConnection()
    }

    /// Whether the server gives parts of it.
    var hasParts: Bool { unsafe io.pointee.seekable & AVIO_SEEKABLE_NORMAL != 0 }

    /// Whether it begins as a list of other addresses (HLS).
    var isPlaylist: Bool {
        let type = (exported("mime_type") ?? "").lowercased()
        let name = (location.webAddress?.path ?? "").prefix { $0 != "?" }.lowercased()
        return type.contains("mpegurl") || name.hasSuffix(".m3u8") || name.hasSuffix(".m3u")
    }

    /// What libavformat's HTTP says of an answer under that name.
    private func exported(_ name: String) -> String? {
        var text: UnsafeMutablePointer<UInt8>?
        guard unsafe av_opt_get(io, name, AV_OPT_SEARCH_CHILDREN, &text) >= 0,
            let value = unsafe text
        else { return nil }
        defer { unsafe av_free(value) }
        return unsafe String(cString: value)
    }

    /// What a radio station calls itself, empty where it says only that it is one; `nil` for
    /// anything else.
    var radioStation: String? {
        let lines = (exported("icy_metadata_headers") ?? "").split(whereSeparator: \.isNewline)
        guard !lines.isEmpty else { return nil }
        let name = lines.first { $0.lowercased().hasPrefix("icy-name:") }
        return name.map { String($0.dropFirst(9).drop(while: \.isWhitespace).prefix(80)) } ?? ""
    }

    /// The next bytes, valid until the next call; empty at the end.
    func next() throws(MediaError) -> UnsafeBufferPointer<UInt8> {
        let count = unsafe try read(into: block)
        return unsafe UnsafeBufferPointer(rebasing: block[..<count])
    }

    /// Passes over bytes; fewer at the end.
    func skip(_ count: Int64) throws(MediaError) {
        var left = Int(count)
        while left > 0 {
            let part = unsafe UnsafeMutableBufferPointer(
                rebasing: block[..<min(left, block.count)])
            let got = unsafe try read(into: part)
            if got == 0 { return }
            left -= got
        }
    }

    /// - Returns: bytes read, as soon as there are any; 0 at the end.
    func read(into buffer: UnsafeMutableBufferPointer<UInt8>) throws(MediaError) -> Int {
        // A body that is labelled as compressed and is not keeps libavformat busy for ever.
        cancellation.expect(within: patience)
        let count = unsafe avio_read_partial(io, buffer.baseAddress, Int32(buffer.count))
        let isLate = cancellation.isLate
        cancellation.expect(within: nil)
        if cancellation.isCancelled { throw failure(cff_error_exit) }
        if isLate, count < 0 { throw failure(cff_error(ETIMEDOUT)) }
        if count == cff_error(EIO), !isLate, endsWithConnection() {
            return 0
        }
        if count == cff_error_eof || count == 0 { return 0 }
        guard count > 0 else { throw failure(count) }
        return Int(count)
    }

    // MARK: Opening

    private struct Request {
        let offset: Int64
        let end: Int64?
        let trust: MediaTrust
    }

    /// Where an address leads, when a host on the way may be excepted from the look at certificates;
    /// `nil` where that is nowhere else, or nowhere.
    private static func end(
        of location: MediaLocation, _ trust: MediaTrust, _ cancellation: MediaCancellation
    ) -> MediaLocation? {
        guard !trust.insecureHosts.isEmpty, let start = location.webAddress,
            case .answer(let end, _) = WebRoute.end(from: start, trust, cancellation), end != start
        else { return nil }
        return location.moved(to: end)
    }

    private static func open(
        _ location: MediaLocation, _ request: Request, _ cancellation: MediaCancellation
    ) -> (UnsafeMutablePointer<AVIOContext>?, Int32) {
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        let protocols = location.isRemote ? "http,https,tcp,tls,crypto" : "file"
        unsafe av_dict_set(&options, "protocol_whitelist", protocols, 0)
        unsafe request.trust.set(&options, for: location)
        if location.isRemote {
            unsafe av_dict_set_int(
                &options, "rw_timeout", Int64(Demuxer.ioTimeoutMicroseconds), 0)
            unsafe av_dict_set_int(&options, "offset", request.offset, 0)
            if let end = request.end { unsafe av_dict_set_int(&options, "end_offset", end, 0) }
        }
        var interrupt = unsafe cancellation.interrupt
        var io: UnsafeMutablePointer<AVIOContext>?
        let code = unsafe avio_open2(
            &io, location.address.cFileName, AVIO_FLAG_READ, &interrupt, &options)
        return unsafe (code >= 0 ? io : nil, code)
    }

    /// Makes libavformat tell a body in chunks that was cut off from one that is whole.
    ///
    /// It calls either the end, unless it is to connect again where a connection ends: behind the
    /// last chunk it then ends, anywhere else it connects. That it may not do, for want of an allowed
    /// protocol, and so it reports an error (libavformat 58 to 60).
    private static func distinguishEnds(of io: UnsafeMutablePointer<AVIOContext>) {
        for (name, value) in [
            ("reconnect_at_eof", "1"), ("reconnect_streamed", "1"), ("reconnect_delay_max", "0"),
            ("protocol_whitelist", "none"),
        ] {
            unsafe av_opt_set(io, name, value, AV_OPT_SEARCH_CHILDREN)
        }
    }

    private func failure(_ code: Int32) -> MediaError {
        MediaError(library: code, operation: "avio_read_partial", location: location)
    }
}
