import Glibc
import TuttiPlayout

/// What is in a folder as the system lists it, in no order, without itself and its parent.
struct FolderEntries {
    struct Entry {
        var name: String
        /// `d_type` of readdir(3).
        var type: UInt8
    }

    /// The folder itself.
    let identity: FileIdentity.File
    let entries: [Entry]

    /// - Returns: `nil`, with `errno`, where it cannot be read.
    init?(_ path: String) {
        guard let directory = opendir(path.cFileName) else { return nil }
        defer { closedir(directory) }
        guard let identity = FileIdentity(of: dirfd(directory))?.file else { return nil }
        var entries: [Entry] = []
        while let item = readdir(directory) {
            let bytes = withUnsafeBytes(of: &item.pointee.d_name) { name in
                Array(name.prefix { $0 != 0 })
            }
            guard bytes != [UInt8(ascii: ".")], bytes != Array("..".utf8) else { continue }
            entries.append(Entry(name: String(fileName: bytes), type: item.pointee.d_type))
        }
        self.identity = identity
        self.entries = entries
    }

    /// The names alone; none where it cannot be read.
    static func names(in path: String) -> [String] {
        FolderEntries(path)?.entries.map(\.name) ?? []
    }
}
