import Foundation

/// The folder of this test run; gone when the process ends.
enum TestFolder {
    static let url: URL = {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("tutti-device-\(getpid())")
        try! FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(at: TestFolder.url) }
        return folder
    }()
}
