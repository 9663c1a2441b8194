import Glibc
import Synchronization
import TuttiPlayout

/// What has come of a server's file that is played from its beginning: kept, so that a seek need not
/// ask for it again.
final class SpoolFile: Sendable {
    let file: OpenFile
    private let reached = Mutex<Int64>(0)

    init(_ file: OpenFile) { self.file = file }

    /// Bytes that are there, from the beginning.
    var held: Int64 { reached.withLock(\.self) }

    /// Keeps bytes that follow what is there; others are not needed yet.
    func take(_ bytes: UnsafeBufferPointer<UInt8>, at offset: Int64) {
        reached.withLock { held in
            let end = offset + Int64(bytes.count)
            guard offset <= held, end > held, let first = unsafe bytes.baseAddress else { return }
            if unsafe file.write(first, bytes.count, at: offset) { held = end }
        }
    }
}

extension OpenFile {
    /// - Returns: whether the disk had room for it.
    func write(_ bytes: UnsafePointer<UInt8>, _ count: Int, at offset: Int64) -> Bool {
        var done = 0
        while done < count {
            let written = unsafe pwrite(
                descriptor, bytes + done, count - done, off_t(offset) + done)
            guard written > 0 else { return false }
            done += written
        }
        return true
    }
}
