// The C module that reaches `timespec` first owns its members, so both are imported.
import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// What the system says of a file, as long as nobody has written to it or put another in its place.
struct FileStamp: Hashable, Sendable {
    private var inode: UInt64
    private var byteCount: Int64
    private var modified: [Int]
    private var changed: [Int]

    init(_ status: stat) {
        inode = UInt64(status.st_ino)
        byteCount = Int64(status.st_size)
        modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
        changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    }

    init?(of descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    init?(at path: String) {
        var status = stat()
        guard unsafe lstat(path.cFileName, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether nobody has written to it in between; it may have got another name.
    func hasBytes(of earlier: FileStamp) -> Bool {
        inode == earlier.inode && byteCount == earlier.byteCount && modified == earlier.modified
    }

    /// One line of numbers, the same for equal stamps.
    var text: String {
        let numbers =
            [inode.description, byteCount.description]
            + (modified + changed).map(\.description)
        return numbers.joined(separator: " ") + "\n"
    }
}
