import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// An open descriptor, closed with the last reference.
final class OpenFile: Sendable {
    let descriptor: Int32

    /// Takes over `descriptor`.
    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Bytes in it now; `nil` where the system does not say.
    var byteCount: Int64? {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? Int64(status.st_size) : nil
    }

    /// The first bytes, fewer where it has no more.
    func beginning(_ count: Int) -> [UInt8] { bytes(from: 0, count) }

    /// Bytes from a place on, fewer where it has no more.
    func bytes(from offset: Int64, _ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            unsafe filled = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
        }
    }

    /// The same file with a position and locks of its own, whatever its name is by now; `nil` where
    /// it cannot be opened again.
    func reopened() -> OpenFile? {
        let again = unsafe open(path.cFileName, O_RDONLY | O_CLOEXEC)
        return again >= 0 ? OpenFile(again) : nil
    }

    /// Leads this process to the file while it is open here, also when it has no name any more.
    var path: String { "/proc/self/fd/\(descriptor)" }

    /// Anonymous memory that reads and writes like a file.
    static func memory() -> OpenFile? {
        let descriptor = cff_memory_file()
        return descriptor >= 0 ? OpenFile(descriptor) : nil
    }
}
