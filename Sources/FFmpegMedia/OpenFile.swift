import CFFmpeg
import Glibc
import Playout

/// An open descriptor, closed with the last reference.
final class OpenFile: Sendable {
    let descriptor: Int32

    /// Takes over `descriptor`.
    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

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
