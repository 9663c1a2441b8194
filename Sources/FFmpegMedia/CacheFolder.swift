import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// The files in a cache's folder: finished ones `<64 hex digits>.<extension>`, arriving ones
/// `….part`.
///
/// Beside each finished file is a small one, `<64 hex digits>.seen`: it says what the file looked
/// like when its bytes were found right, and its modification time is when the file was last used. A
/// mark on the file itself would change what it looks like.
struct CacheFolder: Sendable {
    let path: String

    struct Entry {
        var name: String
        var byteCount: Int64
        var used: timespec
        var isPart: Bool { name.hasSuffix(".part") }
    }

    /// Parts that nobody continued for this long are removed, in seconds. A room that was restarted
    /// comes back within it; what was rewritten on the leader is never asked for again.
    static let partLifetime = 3_600

    init(_ path: String) { self.path = path }

    /// Creates the folder, readable by its owner only, when it is not there.
    ///
    /// - Throws: when files cannot be put into it.
    func make() throws(DiskFailure) {
        var reached = path.hasPrefix("/") ? "/" : ""
        var failure: DiskFailure?
        for part in path.split(separator: "/") {
            reached += (reached.isEmpty || reached == "/" ? "" : "/") + part
            if unsafe mkdir(reached.cFileName, 0o700) != 0, errno != EEXIST {
                // Before it is another call's.
                failure = DiskFailure("mkdir", path)
                break
            }
        }
        guard unsafe access(path.cFileName, R_OK | W_OK | X_OK) == 0 else {
            throw failure ?? DiskFailure("mkdir", path)
        }
    }

    func file(_ name: String) -> String { path + "/" + name }

    /// Names of the finished files with that hash, its digits given.
    func finished(_ text: String) -> [String] {
        names().filter { $0.hasPrefix(text + ".") && Self.isFinished($0) }
    }

    /// All finished and arriving files.
    func entries() -> [Entry] {
        names().compactMap { name in
            var (status, seen) = (stat(), stat())
            guard name.hasSuffix(".part") || Self.isFinished(name),
                unsafe stat(file(name).cFileName, &status) == 0, status.st_mode & S_IFMT == S_IFREG
            else { return nil }
            let isSeen = unsafe stat(seenFile(name).cFileName, &seen) == 0
            return Entry(
                name: name, byteCount: Int64(status.st_size),
                used: isSeen ? seen.st_mtim : status.st_mtim)
        }
    }

    private func names() -> [String] {
        guard let directory = unsafe opendir(path.cFileName) else { return [] }
        defer { unsafe closedir(directory) }
        var found: [String] = []
        while let item = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &item.pointee.d_name) { pointer in
                unsafe String(
                    cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            found.append(name)
        }
        return found
    }

    /// Removes the least recently used files, and what interrupted transfers left, until they take
    /// no more than `limit`; what is in use stays.
    ///
    /// - Parameter expected: the parts that are arriving, and how large each will be.
    /// - Returns: whether that is so.
    func makeRoom(expecting expected: [String: Int64], limit: Int64) -> Bool {
        let files = entries().filter { expected[$0.name] == nil }
        var total = files.reduce(expected.values.reduce(0, +)) { $0 + $1.byteCount }
        let oldest = files.sorted {
            ($0.used.tv_sec, $0.used.tv_nsec) < ($1.used.tv_sec, $1.used.tv_nsec)
        }
        for entry in oldest where total > limit {
            if removeUnlessUsed(entry.name) { total -= entry.byteCount }
        }
        return total <= limit
    }

    /// Removes what interrupted transfers left behind long ago, or at once where it is nothing.
    func removeLeftovers(now: Int) {
        for entry in entries() where entry.isPart {
            let isOld = now - Int(entry.used.tv_sec) > Self.partLifetime
            if isOld || entry.byteCount == 0 || entry.name.hasPrefix("download-") {
                removeUnlessUsed(entry.name)
            }
        }
        let all = names()
        let stems = Set(all.filter(Self.isFinished).map { String(Self.stem($0)) })
        for name in all where name.hasSuffix(".seen") && !stems.contains(String(Self.stem(name))) {
            unsafe unlink(file(name).cFileName)
        }
    }

    /// Bytes that the disk has room for.
    var freeBytes: Int64 {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { return .max }
        return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
    }

    /// - Returns: false also while somebody has it.
    @discardableResult
    func removeUnlessUsed(_ name: String) -> Bool {
        let descriptor = unsafe open(file(name).cFileName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        return remove(name)
    }

    /// Removes a finished file with what was noted of it, or a part.
    @discardableResult
    func remove(_ name: String) -> Bool {
        if !name.hasSuffix(".part") { unsafe unlink(seenFile(name).cFileName) }
        return unsafe unlink(file(name).cFileName) == 0
    }

    // MARK: What was found right

    /// Whether the bytes of a file of that name were found right when it looked like this.
    func wasSeen(_ name: String, _ stamp: FileStamp) -> Bool {
        let descriptor = unsafe open(seenFile(name).cFileName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return count > 0 && bytes.prefix(count).elementsEqual(stamp.text.utf8)
    }

    /// Notes that they were, and that the file is used. A disk that takes no notes is looked at again
    /// in the next process.
    func see(_ name: String, _ stamp: FileStamp) {
        let seen = seenFile(name)
        if wasSeen(name, stamp) {
            unsafe utimensat(AT_FDCWD, seen, nil, AT_SYMLINK_NOFOLLOW)
            return
        }
        let descriptor = unsafe open(
            seen, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let text = Array(stamp.text.utf8)
        _ = unsafe write(descriptor, text, text.count)
    }

    private func seenFile(_ name: String) -> String { file(Self.stem(name) + ".seen") }

    private static func stem(_ name: String) -> Substring { name.prefix { $0 != "." } }

    private static func isFinished(_ name: String) -> Bool {
        let stem = stem(name)
        return stem.utf8.count == 64 && stem.allSatisfy(\.isHexDigit)
            && !name.hasSuffix(".part") && !name.hasSuffix(".seen")
    }
}
