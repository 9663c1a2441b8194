import Foundation
import Testing

@testable import TuttiRoom

@Suite struct CutFileTests {
    @Test func `a file that was cut off is named beside its title`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let whole = try folder.writeNoise(seconds: 4, seed: 1, as: "a.wav")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: whole))
        let cut = folder.path("cut.wav")
        try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: cut))
        let book = LogBook()
        let library = SessionAssets(
            cache: .init(folder: folder.path("cache"), limit: 1 << 30),
            pieces: MediaService(logger: book.logger).pieces, logger: book.logger)
        _ = try library.describe(AssetList.Item(location: cut, isMissed: true), .init())
        let said = book.entries("the file was cut off; what is there is played")
        #expect(said.map { $0["file"] } == [cut])
        #expect(said.map { $0["seconds"] } == ["2 of 4"])
    }
}
