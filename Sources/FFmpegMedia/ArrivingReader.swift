import CFFmpeg
import Glibc
import Playout

/// libavformat's view of an ``ArrivingFile``: from the disk where it is there, else from the server.
///
/// One thread at a time.
@safe
final class ArrivingReader {
    /// Bytes read at once.
    private static let blockSize = 32_768
    /// So far ahead of what is there it comes sooner by itself than by asking: a connection costs
    /// two round trips.
    static let patience: Int64 = 131_072
    /// … unless so many waits of ``ArrivingFile/waitMilliseconds`` bring nothing.
    private static let vainWaits = 2
    /// After a connection that failed: the fetch may bring the bytes, or say why nothing will.
    private static let askPause = Duration.milliseconds(500)

    private let file: ArrivingFile
    private let cancellation: MediaCancellation
    private var position: Int64 = 0
    /// A connection of its own, and what of its bytes were not wanted yet.
    private var stream: ByteStream?
    private var ahead: [UInt8] = []
    private var aheadBegin = 0
    /// Offset of the next byte of `ahead`, and of the stream behind it.
    private var aheadPosition: Int64 = 0
    private var asksFrom: ContinuousClock.Instant?
    /// Why the last call failed; libavformat knows numbers only.
    private(set) var failure: MediaError?

    /// What libavformat reads by; valid as long as this object.
    private(set) var io: UnsafeMutablePointer<AVIOContext>

    init(_ file: ArrivingFile, cancellation: MediaCancellation) {
        self.file = file
        self.cancellation = cancellation
        let buffer = unsafe av_malloc(Self.blockSize)?.assumingMemoryBound(to: UInt8.self)
        let io = unsafe avio_alloc_context(
            buffer, Int32(Self.blockSize), 0, nil,
            { context, bytes, count in
                unsafe ArrivingReader.of(context).read(bytes, count)
            }, nil,
            { context, offset, whence in
                unsafe ArrivingReader.of(context).seek(offset, whence)
            })
        guard let io = unsafe io else { fatalError("no memory for a reader") }
        unsafe self.io = io
        // Unretained: the context is freed in `deinit`.
        unsafe io.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        unsafe av_free(io.pointee.buffer)
        var freed: UnsafeMutablePointer<AVIOContext>? = unsafe io
        unsafe avio_context_free(&freed)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> ArrivingReader {
        unsafe Unmanaged<ArrivingReader>.fromOpaque(context!).takeUnretainedValue()
    }

    // MARK: Callbacks

    private func read(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int32) -> Int32 {
        failure = nil
        let buffer = unsafe UnsafeMutableBufferPointer(start: bytes, count: Int(count))
        do throws(MediaError) {
            let got = unsafe try next(into: buffer)
            position += Int64(got)
            return got == 0 ? cff_error_eof : Int32(got)
        } catch {
            failure = error
            return error.code == .cancelled ? cff_error_exit : cff_error(EIO)
        }
    }

    private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        let size = file.fingerprint.byteCount
        let wanted: Int64
        switch whence & ~AVSEEK_FORCE {
        case AVSEEK_SIZE: return size
        case SEEK_SET: wanted = offset
        case SEEK_CUR: wanted = position + offset
        case SEEK_END: wanted = size + offset
        default: return Int64(cff_error(EINVAL))
        }
        guard (0...size).contains(wanted) else { return Int64(cff_error(EINVAL)) }
        position = wanted
        return wanted
    }

    // MARK: -

    /// Some of the next bytes; 0 at the end.
    private func next(
        into buffer: UnsafeMutableBufferPointer<UInt8>
    ) throws(MediaError) -> Int {
        var (vain, held) = (0, file.held)
        while true {
            if cancellation.isCancelled {
                throw MediaError(
                    library: cff_error_exit, operation: "read", location: file.location)
            }
            // What is under way on a connection of its own goes on there until the disk has it.
            let isAhead = stream != nil && position == aheadPosition
            let patience = isAhead || vain >= Self.vainWaits ? 0 : Self.patience
            switch unsafe try file.read(at: position, into: buffer, patience: patience) {
            case .bytes(let count):
                hangUp()
                return count
            case .soon:
                file.wait()
                vain = file.held == held ? vain + 1 : 0
                held = file.held
            case .far:
                if let asksFrom, ContinuousClock.now < asksFrom {
                    file.wait()
                } else if let count = unsafe askOnce(into: buffer) {
                    return count
                }
            }
        }
    }

    /// `nil` where the server does not answer now.
    private func askOnce(into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int? {
        do throws(MediaError) {
            return unsafe try ask(into: buffer)
        } catch {
            hangUp()
            asksFrom = .now + Self.askPause
            return nil
        }
    }

    private func ask(
        into buffer: UnsafeMutableBufferPointer<UInt8>
    ) throws(MediaError) -> Int {
        file.asks()
        if stream == nil || aheadPosition != position {
            try callUp()
        } else if aheadBegin == ahead.count, !hasMore() {
            // A connection that was not used for a while may be gone.
            try callUp()
        }
        let count = min(buffer.count, ahead.count - aheadBegin)
        unsafe ahead.withUnsafeBufferPointer { bytes in
            unsafe buffer.baseAddress!.update(from: bytes.baseAddress! + aheadBegin, count: count)
        }
        aheadBegin += count
        aheadPosition += Int64(count)
        return count
    }

    /// A new connection, and its first bytes.
    private func callUp() throws(MediaError) {
        hangUp()
        let stream = try ByteStream(
            file.location, from: position, yields: true, cancellation: cancellation)
        let bytes = unsafe try stream.next()
        guard !bytes.isEmpty else {
            throw MediaError(
                .network, operation: "read", subject: file.location.subject,
                reason: "ended after \(position) of \(file.fingerprint.byteCount) bytes")
        }
        unsafe ahead = Array(bytes)
        aheadPosition = position
        self.stream = stream
    }

    /// Whether the connection that is there brings the next bytes.
    private func hasMore() -> Bool {
        guard let stream, let bytes = unsafe try? stream.next(), !bytes.isEmpty else {
            return false
        }
        unsafe ahead = Array(bytes)
        aheadBegin = 0
        return true
    }

    private func hangUp() {
        stream = nil
        ahead = []
        aheadBegin = 0
    }
}
