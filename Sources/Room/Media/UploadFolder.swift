import Glibc
import TuttiPlayout

/// The folder of one leader's ``Uploads``, locked by it and removed with it.
final class UploadFolder: Sendable {
    private static let prefix = "uploads-"

    private let path: String
    private let lock: Int32

    /// The name of the folder that a file is in; `nil` where it is in none of these.
    static func name(of path: String, in base: String) -> String? {
        guard path.hasPrefix(base + "/" + prefix) else { return nil }
        return path.dropFirst(base.utf8.count + 1).split(separator: "/").first.map(String.init)
    }

    /// Whether a path is one of a file in such a folder, wherever that is: in a folder of its own, which
    /// is called as its bytes hash.
    static func isOfUpload(_ path: String) -> Bool {
        let parts = path.split(separator: "/").suffix(3)
        guard path.hasPrefix("/"), parts.count == 3, let folder = parts.first else { return false }
        let id = parts[parts.startIndex + 1]
        return folder.hasPrefix(prefix) && id.utf8.count == 64 && id.allSatisfy(\.isHexDigit)
    }

    /// Makes one, and removes those that nobody has locked.
    ///
    /// - Returns: `nil`, with `errno`, where it cannot be made.
    ///
    /// - Parameter needed: names of folders that this process needs still.
    init?(in base: String, but needed: Set<String> = []) {
        mkdir(base.cFileName, 0o700)
        Self.removeThoseOfOthers(in: base, but: needed)
        var template = Array((base + "/" + Self.prefix + "XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        let path = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let lock = open(path.cFileName, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { return nil }
        flock(lock, LOCK_EX | LOCK_NB)
        self.path = path
        self.lock = lock
    }

    deinit {
        if !Self.isMarked(path) { Self.remove(path) }
        close(lock)
    }

    /// Whether nobody has removed it.
    var isThere: Bool { access(path.cFileName, F_OK) == 0 }

    /// A folder for one file, so that it keeps its name.
    ///
    /// - Returns: `nil`, with `errno`, where it cannot be made.
    func place(for id: String) -> String? {
        let place = path + "/" + id
        return mkdir(place.cFileName, 0o700) == 0 || errno == EEXIST ? place : nil
    }

    /// Removes those that nobody has locked: of leaders that ended without a word.
    ///
    /// One that a session needs, which goes on when its node is back, stays for a while (``mark(_:)``).
    static func removeThoseOfOthers(in base: String, but needed: Set<String> = []) {
        for name in FolderEntries.names(in: base)
        where name.hasPrefix(prefix) && !needed.contains(name) && !isMarked(base + "/" + name) {
            let folder = base + "/" + name
            let lock = open(folder.cFileName, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
            guard lock >= 0 else { continue }
            if flock(lock, LOCK_EX | LOCK_NB) == 0 { remove(folder) }
            close(lock)
        }
    }

    /// A file in a folder that says until when, in seconds since 1970.
    private static let markName = "kept"
    /// A node that is away for longer does not find its files any more, seconds.
    private static let markLife = 90 * 86_400

    /// From now on the folder stays when its leader ends.
    static func mark(_ folder: String) {
        try? StateFolder(path: folder).write(markName, "\(time(nil) + markLife)\n")
    }

    static func unmark(_ folder: String) { unlink((folder + "/" + markName).cFileName) }

    private static func isMarked(_ folder: String) -> Bool {
        guard let text = try? StateFolder(path: folder).read(markName),
            let until = Int(text.prefix { $0.isNumber })
        else { return false }
        return time(nil) < until
    }

    private static func remove(_ folder: String) {
        unmark(folder)
        for name in FolderEntries.names(in: folder) {
            for file in FolderEntries.names(in: folder + "/" + name) {
                unlink((folder + "/" + name + "/" + file).cFileName)
            }
            rmdir((folder + "/" + name).cFileName)
        }
        rmdir(folder.cFileName)
    }

    /// Removes a file and the folder that was made for it.
    static func removeFile(_ path: String) {
        unlink(path.cFileName)
        if let slash = path.lastIndex(of: "/") { rmdir(String(path[..<slash]).cFileName) }
    }

    /// Longest name of a file, bytes (`NAME_MAX`).
    private static let longestName = 255

    /// What may be the name of a file here, from what it is called elsewhere; never a way to another
    /// folder.
    static func fileName(_ name: String) -> String {
        let bytes = name.fileNameBytes.split(separator: UInt8(ascii: "/")).last ?? []
        // The end says what is in it.
        let safe = Array(bytes.filter { $0 >= 0x20 && $0 != 0x7F }.suffix(longestName))
        let isFolder = safe == [UInt8(ascii: ".")] || safe == Array("..".utf8)
        return safe.isEmpty || isFolder ? "file" : String(fileName: safe)
    }
}
