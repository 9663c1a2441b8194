import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// Bytes that libavformat reads by a reader of ours: of a local file (``FileReader``), of one that is
/// still being fetched (``IncomingReader``), of one that stays on a server (``WebReader``), or of
/// what a server sends once (``BodyReader``).
///
/// One thread at a time.
@safe
class LibraryReader {
    /// Bytes read at once.
    private static let blockSize = 32_768

    /// Bytes that are read as if they were the whole file.
    private let part: Range<Int64>
    private var position: Int64 = 0
    /// Why the last call failed; libavformat knows numbers only.
    private(set) var failure: MediaError?
    /// Why the first of those failed that did. A demuxer that reads on behind it, or takes it for
    /// the end, finds anything wrong but that.
    private(set) var firstFailure: MediaError?

    /// What libavformat reads by; valid as long as this object.
    private(set) var io: UnsafeMutablePointer<AVIOContext>

    init(part: Range<Int64>) {
        self.part = part
        let buffer = unsafe av_malloc(Self.blockSize)?.assumingMemoryBound(to: UInt8.self)
        let io = unsafe avio_alloc_context(
            buffer, Int32(Self.blockSize), 0, nil,
            { context, bytes, count in
                unsafe LibraryReader.of(context).read(bytes, count)
            }, nil,
            { context, offset, whence in
                unsafe LibraryReader.of(context).seek(offset, whence)
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

    // MARK: For the kinds of readers

    /// Reads at an offset of the whole.
    ///
    /// - Returns: bytes read; 0 only at the end.
    func fill(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
    ) throws(MediaError) -> Int {
        fatalError("a kind of reader reads")
    }

    /// Bytes that are read as the whole; `nil` where nobody knows.
    var byteCount: Int64? { part.upperBound - part.lowerBound }

    /// Whether there are places behind the last byte.
    var goesBeyondEnd: Bool { false }

    /// What is read from here on is to be played.
    func foundPlace() {}

    func looksForPlace() {}

    // MARK: Callbacks

    private static func of(_ context: UnsafeMutableRawPointer?) -> LibraryReader {
        unsafe Unmanaged<LibraryReader>.fromOpaque(context!).takeUnretainedValue()
    }

    private func read(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int32) -> Int32 {
        failure = nil
        let count = min(Int(count), Int(part.upperBound - part.lowerBound - position))
        guard count > 0 else { return cff_error_eof }
        do throws(MediaError) {
            let got = unsafe try fill(
                UnsafeMutableBufferPointer(start: bytes, count: count),
                at: part.lowerBound + position)
            position += Int64(got)
            return got == 0 ? cff_error_eof : Int32(got)
        } catch {
            failure = error
            firstFailure = firstFailure ?? error
            return error.code == .cancelled ? cff_error_exit : cff_error(EIO)
        }
    }

    private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        let size = byteCount
        let wanted: Int64
        switch whence & ~AVSEEK_FORCE {
        case AVSEEK_SIZE: return size ?? Int64(cff_error(ENOSYS))
        case SEEK_SET: wanted = offset
        case SEEK_CUR: wanted = position + offset
        case SEEK_END where size != nil: wanted = size! + offset
        default: return Int64(cff_error(EINVAL))
        }
        guard wanted >= 0, goesBeyondEnd || wanted <= size ?? .max else {
            return Int64(cff_error(EINVAL))
        }
        position = wanted
        return wanted
    }
}
