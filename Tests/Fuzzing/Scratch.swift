import Foundation
import Synchronization

/// A folder for parsers that want a file; of this process alone, and gone with it.
enum Scratch {
    static var folder: String { made.path }

    /// - Returns: the name of the file in ``folder``.
    static func write(_ bytes: [UInt8], as name: String) throws -> String {
        try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
        return name
    }

    private static let made = Made()

    private final class Made: Sendable {
        let path: String

        init() {
            // Memory, where the system offers it as a folder: a disk is a hundred times as slow.
            let memory = "/dev/shm"
            let base =
                FileManager.default.isWritableFile(atPath: memory)
                ? memory : FileManager.default.temporaryDirectory.path
            path = "\(base)/tutti-fuzzing-\(getpid())"
            try? FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true)
            atexit { Scratch.remove() }
        }
    }

    private static func remove() { try? FileManager.default.removeItem(atPath: made.path) }
}
