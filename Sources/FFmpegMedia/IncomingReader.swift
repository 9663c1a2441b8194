import TuttiPlayout

/// libavformat's view of an ``IncomingFile``.
///
/// One thread at a time.
final class IncomingReader: LibraryReader {
    private let file: IncomingFile
    private let cancellation: MediaCancellation
    private var ahead: ReadAhead

    /// - Parameter part: bytes that are read as if they were the whole file.
    init(_ file: IncomingFile, _ part: Range<Int64>? = nil, cancellation: MediaCancellation) {
        self.file = file
        self.cancellation = cancellation
        ahead = ReadAhead(file.pace)
        super.init(part: part ?? 0..<file.fingerprint.byteCount)
    }

    override func foundPlace() { ahead.foundPlace(at: .now) }

    override func looksForPlace() { ahead.looksForPlace() }

    override func fill(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
    ) throws(MediaError) -> Int {
        unsafe try file.read(at: offset, into: buffer, &ahead, cancellation)
    }
}
