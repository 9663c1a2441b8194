import CFFmpeg
import Glibc
import Playout

/// The files in a cache's folder: finished ones `<64 hex digits>.<extension>`, arriving ones
/// `….part`. A file's modification time is when it was last used.
struct CacheFolder: Sendable {
    let path: String

    struct Entry {
        var name: String
        var byteCount: Int64
        var used: timespec
        var isPart: Bool { name.hasSuffix(".part") }
    }

    /// Parts that nobody continued for this long are removed: a week, in seconds.
    static let partLifetime = 7 * 86_400

    /// Creates the folder, readable by its owner only, when it is not there.
    init(_ path: String) throws(MediaError) {
        self.path = path
        var reached = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            reached += (reached.isEmpty || reached == "/" ? "" : "/") + part
            if unsafe mkdir(reached, 0o700) != 0, errno != EEXIST { break }
        }
        guard unsafe access(path, R_OK | W_OK | X_OK) == 0 else {
            throw MediaError(
                .notReadable, operation: "mkdir", subject: path,
                reason: "cannot be used as the cache folder: \(libraryText(cff_error(errno)));"
                    + " choose another one")
        }
    }

    func file(_ name: String) -> String { path + "/" + name }

    /// All regular files that look like ours.
    func entries() -> [Entry] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var found: [Entry] = []
        while let item = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &item.pointee.d_name) { pointer in
                unsafe String(
                    cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            guard name.hasSuffix(".part") || Self.isFinished(name) else { continue }
            var status = stat()
            guard unsafe stat(file(name), &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                continue
            }
            found.append(
                Entry(name: name, byteCount: Int64(status.st_size), used: status.st_mtim))
        }
        return found
    }

    /// Removes the least recently used finished files until `needed` more bytes fit in `limit`.
    ///
    /// Files in use stay, and so does the last file used: playing comes before the limit.
    func makeRoom(for needed: Int64, limit: Int64) {
        let files = entries()
        var total = files.reduce(0) { $0 + $1.byteCount }
        let finished = files.filter { !$0.isPart }.sorted {
            ($0.used.tv_sec, $0.used.tv_nsec) < ($1.used.tv_sec, $1.used.tv_nsec)
        }
        for entry in finished.dropLast() where total + needed > limit {
            if removeUnlessUsed(entry.name) { total -= entry.byteCount }
        }
    }

    /// Removes what interrupted transfers left behind long ago.
    func removeStaleParts(now: Int) {
        for entry in entries() where entry.isPart {
            let isOld = now - Int(entry.used.tv_sec) > Self.partLifetime
            if isOld || entry.name.hasPrefix("download-") { removeUnlessUsed(entry.name) }
        }
    }

    /// Bytes that the disk has room for.
    var freeBytes: Int64 {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { return .max }
        return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
    }

    @discardableResult
    private func removeUnlessUsed(_ name: String) -> Bool {
        let descriptor = unsafe open(file(name), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        return unsafe unlink(file(name)) == 0
    }

    private static func isFinished(_ name: String) -> Bool {
        let stem = name.prefix { $0 != "." }
        return stem.utf8.count == 64 && stem.allSatisfy(\.isHexDigit)
    }
}
