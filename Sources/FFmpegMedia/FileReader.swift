import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// libavformat's view of a local file that was opened once, for all who read it.
///
/// Opening an item may take a look at its first bytes, at its packets, at each of its recordings, and
/// a decoder. By itself libavformat opens the name for each of these, and finds another file where one
/// was put in its place meanwhile.
///
/// One thread at a time; several of them may share a file.
final class FileReader: LibraryReader {
    private let file: OpenFile
    private let part: Range<Int64>
    private let location: MediaLocation
    private let cancellation: MediaCancellation

    init(_ file: OpenFile, _ location: MediaLocation, cancellation: MediaCancellation) {
        self.file = file
        self.location = location
        self.cancellation = cancellation
        part = location.part ?? 0..<Int64.max
        super.init(part: part)
    }

    /// As it is now: it may have lost bytes since it was opened, or got more.
    override var byteCount: Int64? {
        max(0, min(part.upperBound, file.byteCount ?? 0) - part.lowerBound)
    }

    /// As in any file; what is read there is its end.
    override var goesBeyondEnd: Bool { true }

    override func fill(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
    ) throws(MediaError) -> Int {
        while true {
            if cancellation.isCancelled { throw failure(cff_error_exit) }
            let got = unsafe pread(
                file.descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if got >= 0 { return got }
            if errno != EINTR { throw failure(cff_error(errno)) }
        }
    }

    private func failure(_ code: Int32) -> MediaError {
        MediaError(library: code, operation: "read", location: location)
    }
}
