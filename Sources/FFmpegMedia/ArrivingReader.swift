import CFFmpeg
import Glibc
import Playout

/// libavformat's view of an ``ArrivingFile``.
///
/// One thread at a time.
@safe
final class ArrivingReader {
    /// Bytes read at once.
    private static let blockSize = 32_768

    private let file: ArrivingFile
    private let part: Range<Int64>
    private let cancellation: MediaCancellation
    private var position: Int64 = 0
    private var ahead: ReadAhead
    /// Why the last call failed; libavformat knows numbers only.
    private(set) var failure: MediaError?

    /// What libavformat reads by; valid as long as this object.
    private(set) var io: UnsafeMutablePointer<AVIOContext>

    /// - Parameter part: bytes that are read as if they were the whole file.
    init(_ file: ArrivingFile, _ part: Range<Int64>? = nil, cancellation: MediaCancellation) {
        self.file = file
        self.part = part ?? 0..<file.fingerprint.byteCount
        self.cancellation = cancellation
        ahead = ReadAhead(file.pace)
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

    /// What is read from here on is to be played.
    func foundPlace() { ahead.foundPlace(at: .now) }

    func looksForPlace() { ahead.looksForPlace() }

    // MARK: Callbacks

    private func read(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int32) -> Int32 {
        failure = nil
        let count = min(Int(count), Int(part.upperBound - part.lowerBound - position))
        guard count > 0 else { return cff_error_eof }
        let buffer = unsafe UnsafeMutableBufferPointer(start: bytes, count: count)
        do throws(MediaError) {
            let got = unsafe try file.read(
                at: part.lowerBound + position, into: buffer, &ahead, cancellation)
            position += Int64(got)
            return got == 0 ? cff_error_eof : Int32(got)
        } catch {
            failure = error
            return error.code == .cancelled ? cff_error_exit : cff_error(EIO)
        }
    }

    private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        let size = part.upperBound - part.lowerBound
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
}
