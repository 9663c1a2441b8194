import CFFmpeg
import Glibc
import Playout
import Timing

/// The bytes of a file or address from an offset on (libavformat's I/O, undecoded).
@safe
final class ByteStream {
    /// Bytes read at once.
    static let blockSize = 65_536
    /// Longer than libavformat itself waits for a silent server.
    static let patience = Nanoseconds.seconds(15)
    /// What the kernel takes in while nobody reads, where a fetch may have to make way: more would
    /// keep the path busy for long. Kernels allow 208 KiB, as a rule (net.core.rmem_max), which is
    /// 40 Mbit/s with 40 ms round trips.
    private static let yieldingBuffer: Int64 = 262_144

    let location: MediaLocation
    /// Bytes in the whole; `nil` when the server does not say, as with a live stream.
    let byteCount: Int64?
    private let cancellation: MediaCancellation
    /// Longest wait for the next bytes.
    private let patience: Nanoseconds
    private let io: UnsafeMutablePointer<AVIOContext>
    private let block: UnsafeMutableBufferPointer<UInt8>

    /// - Parameters:
    ///   - end: offset behind the last byte to ask a server for; `nil`: all there are.
    ///   - yields: whether who reads may pause, so that others have the path.
    ///   - patience: longest wait for the next bytes.
    ///   - trust: which certificates an https server may have.
    init(
        _ location: MediaLocation, from offset: Int64 = 0, to end: Int64? = nil,
        yields: Bool = false, trust: MediaTrust = .system,
        patience: Nanoseconds = ByteStream.patience, cancellation: MediaCancellation
    ) throws(MediaError) {
        precondition(libraryIsQuiet)
        try location.checkReadable()
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        let protocols = location.isRemote ? "http,https,tcp,tls,crypto" : "file"
        unsafe av_dict_set(&options, "protocol_whitelist", protocols, 0)
        trust.set(&options, for: location)
        if location.isRemote {
            // On a connection that is to be kept, an end in the middle of a chunk is an error.
            unsafe av_dict_set_int(&options, "multiple_requests", 1, 0)
            unsafe av_dict_set_int(
                &options, "rw_timeout", Int64(Demuxer.ioTimeoutMicroseconds), 0)
            unsafe av_dict_set_int(&options, "offset", offset, 0)
            if let end { unsafe av_dict_set_int(&options, "end_offset", end, 0) }
            if yields {
                unsafe av_dict_set_int(&options, "recv_buffer_size", Self.yieldingBuffer, 0)
            }
        }
        var interrupt = unsafe cancellation.interrupt
        var io: UnsafeMutablePointer<AVIOContext>?
        let code = unsafe avio_open2(
            &io, location.address.cFileName, AVIO_FLAG_READ, &interrupt, &options)
        guard code >= 0, let io = unsafe io else {
            if cancellation.isCancelled {
                throw MediaError(
                    library: cff_error_exit, operation: "avio_open2", location: location)
            }
            throw WebDiagnosis(location: location, trust: trust, cancellation: cancellation).error()
                ?? MediaError(library: code, operation: "avio_open2", location: location)
        }
        let size = unsafe avio_size(io)
        byteCount = size >= 0 ? size : nil
        unsafe self.io = io
        self.location = location
        self.cancellation = cancellation
        self.patience = patience
        unsafe block = .allocate(capacity: Self.blockSize)
    }

    deinit {
        var io: UnsafeMutablePointer<AVIOContext>? = unsafe io
        unsafe avio_closep(&io)
        unsafe block.deallocate()
    }

    /// Whether the end of the connection is the end of the body (HTTP/1.0, RFC 1945, 7.2.2), which
    /// libavformat takes for an interruption.
    var endsWithConnection: Bool { byteCount == nil && exported("http_version") == "1.0" }

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
        // A body that is labelled as compressed and is not keeps libavformat busy for ever.
        cancellation.expect(within: patience)
        let count = unsafe avio_read_partial(io, block.baseAddress, Int32(block.count))
        let isLate = cancellation.isLate
        cancellation.expect(within: nil)
        if cancellation.isCancelled { throw failure(cff_error_exit) }
        if isLate, count < 0 { throw failure(cff_error(ETIMEDOUT)) }
        if count < 0, endsWithConnection {
            return unsafe UnsafeBufferPointer(rebasing: block[..<0])
        }
        if count == cff_error_eof || count == 0 {
            return unsafe UnsafeBufferPointer(rebasing: block[..<0])
        }
        guard count > 0 else { throw failure(count) }
        return unsafe UnsafeBufferPointer(rebasing: block[..<Int(count)])
    }

    private func failure(_ code: Int32) -> MediaError {
        MediaError(library: code, operation: "avio_read_partial", location: location)
    }
}
