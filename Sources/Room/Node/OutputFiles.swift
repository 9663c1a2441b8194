import Glibc
package import TuttiDeviceOutput
import TuttiPlayout

/// The files that an output writes, and those that it must never write over.
package struct OutputFiles {
    private let paths: [String]

    package init(_ output: OutputSpecification) {
        paths =
            switch output {
            case .file(let path): [path]
            case .virtual(let options):
                options.record.map { ["\($0).f32", "\($0).times"] } ?? []
            case .alsa, .none: []
            }
    }

    /// Also where another path, a symbolic or a hard link leads to the same file: what counts is
    /// device and inode.
    ///
    /// - Parameters:
    ///   - sources: what is to be played; addresses are no files.
    ///   - cacheFolder: whose files belong to whoever fetched them.
    /// - Throws: `RoomError` with code `noOutput` that names the file.
    package func spare(sources: [String], cacheFolder: String) throws(RoomError) {
        guard !paths.isEmpty else { return }
        let cache = Self.identity(cacheFolder)
        for path in paths {
            let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
            if let cache, Self.identity(folder) == cache {
                throw RoomError(
                    .noOutput,
                    "the output \(path) lies in the cache of assets; choose another folder")
            }
            guard let written = Self.identity(path) else { continue }
            for source in sources where Self.identity(source) == written {
                throw RoomError(
                    .noOutput,
                    "the output \(path) is the file that is to be played (\(source)); choose another path"
                )
            }
        }
    }

    private struct Identity: Equatable {
        var device: UInt
        var inode: UInt
    }

    private static func identity(_ path: String) -> Identity? {
        var info = stat()
        guard stat(path.cFileName, &info) == 0 else { return nil }
        return Identity(device: info.st_dev, inode: info.st_ino)
    }
}
