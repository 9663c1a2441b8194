import Glibc
import TuttiPlayout

/// A folder that will be written to.
struct FolderFacts: Equatable, Sendable {
    var path: String
    /// The folder itself, or the nearest one above that exists.
    var existing: String
    var isWritable: Bool
    var freeBytes: Int64

    /// Whether it is there already, and need not be made.
    var exists: Bool { existing == path }
}

extension FolderFacts {
    /// Looks at a folder, or at the nearest one above it: makes nothing that stays.
    init(examining path: String) {
        self.path = path
        var place = path
        while access(place.cFileName, F_OK) != 0, place != "/", place != "." {
            place = Self.above(place)
        }
        existing = place
        isWritable = Self.takesFile(place)
        var space = statvfs()
        freeBytes =
            statvfs(place.cFileName, &space) == 0
            ? Int64(clamping: UInt64(space.f_bavail) * UInt64(space.f_frsize)) : 0
    }

    /// The folder in which `path` lies: `/` and `.` end the way up.
    static func above(_ path: String) -> String {
        let parent = path.split(separator: "/").dropLast().joined(separator: "/")
        return path.hasPrefix("/") ? "/" + parent : parent.isEmpty ? "." : parent
    }

    /// Writes a file and removes it: only that finds permissions, read-only mounts and quotas.
    private static func takesFile(_ folder: String) -> Bool {
        var template = "\(folder)/.tutti-doctor-XXXXXX".cFileName
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        unlink(template)
        let bytes = [UInt8](repeating: 0, count: 4_096)
        return write(descriptor, bytes, bytes.count) == bytes.count
    }
}

/// What is where a file will be written.
enum FilePlace: Equatable, Sendable {
    /// Nothing: its folder decides.
    case free
    /// A file that can be replaced, or a device.
    case writable
    /// A folder, or a file that refuses; in the system's words.
    case refused(reason: String)

    /// Opens what is there and changes nothing.
    init(examining path: String) {
        let descriptor = open(path.cFileName, O_RDWR | O_CLOEXEC | O_NONBLOCK)
        guard descriptor < 0 else {
            close(descriptor)
            self = .writable
            return
        }
        let code = errno
        let words = strerror(code).map { String(cString: $0) } ?? "error \(code)"
        self = code == ENOENT || code == ENOTDIR ? .free : .refused(reason: words)
    }
}
