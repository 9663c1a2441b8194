import Glibc
import TuttiPlayout

/// What the system says of a file as long as nobody has written to it or put another in its place.
struct FileIdentity: Equatable, Sendable {
    /// The file itself, whatever is in it.
    struct File: Hashable, Sendable {
        var device: UInt64
        var inode: UInt64
    }

    var file: File
    var byteCount: Int64
    /// Since 1970, nanoseconds. Programs set the first at will; the second only the system sets.
    private var modified: Int64
    private var changed: Int64
    /// Names that it has; none once it was removed while somebody has it open.
    private var links: UInt64

    /// The clock of file times ticks every few milliseconds; two writes within one look like one.
    private static let tick: Int64 = 50_000_000

    init(_ status: stat) {
        func nanoseconds(_ time: timespec) -> Int64 {
            Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        }
        file = File(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        byteCount = Int64(status.st_size)
        modified = nanoseconds(status.st_mtim)
        changed = nanoseconds(status.st_ctim)
        links = UInt64(status.st_nlink)
    }

    init?(of descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// - Returns: `nil` where there is no such file.
    init?(path: String) {
        var status = stat()
        guard stat(path.cFileName, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether the file was written so lately that another write might not show.
    var isFresh: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let nanoseconds = Int64(now.tv_sec) &* 1_000_000_000 &+ Int64(now.tv_nsec)
        return abs(nanoseconds - changed) < Self.tick
    }

    /// Whether nobody has written to it since it was `other`; that its name was removed changes
    /// nothing in it.
    func isUnwritten(since other: FileIdentity) -> Bool {
        self == other
            || links == 0 && isSameFile(as: other) && modified == other.modified
    }

    /// Whether it is the same file of the same length, whoever touched it.
    func isSameFile(as other: FileIdentity) -> Bool {
        file == other.file && byteCount == other.byteCount
    }
}
