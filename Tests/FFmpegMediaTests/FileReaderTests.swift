import Foundation
import Glibc
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A local file is opened once, whatever is done with it then.
@Suite(.timeLimit(.minutes(5))) struct FileReaderTests {
    @Test func `openings are counted, those of the same file in a row as well`() throws {
        let path = try Fixtures.write(Data(count: 10), "opened.bin")
        let count = OpenCount(of: path)
        for _ in 0..<3 { #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == 10) }
        #expect(count.value == 3)
    }

    /// The look at its first bytes, at its packets, the decoder, and the way back to the beginning.
    private func expectOneOpening(
        of path: String, _ sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let count = OpenCount(of: path)
        let source = try FFmpegSource(
            at: MediaLocation(path), container: nil, memory: SurveyMemory(),
            cancellation: MediaCancellation())
        let linear = try readAll(source)
        try source.seek(toFrame: Int64(linear.count / 4))
        _ = try read(source, 100)
        try source.seek(toFrame: 0)
        let isSame = isSame(try readAll(source), linear)
        #expect(isSame, sourceLocation: sourceLocation)
        #expect(count.value == 1, "\(path)", sourceLocation: sourceLocation)
    }

    @Test(arguments: Fixtures.names)
    func `an item is opened once to be looked at, played, and played from elsewhere`(
        name: String
    ) throws {
        try expectOneOpening(of: Fixtures.path(name))
    }

    @Test func `so is one of several recordings`() throws {
        let data = try Fixtures.data("cbr.mp3") + Data(count: 5_000) + Fixtures.data("low.mp3")
        try expectOneOpening(of: Fixtures.write(data, "joined-once.mp3"))
    }

    /// Somebody puts another file in its place: what was begun is played to its end.
    @Test func `what was opened is read, whatever has its name by then`() throws {
        let path = try Fixtures.write(Fixtures.data("cbr.mp3"), "replaced.mp3")
        let source = try FFmpegSource(path)
        let linear = try readAll(source)
        try Data("no sound".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        try source.seek(toFrame: 0)
        let isSame = isSame(try readAll(source), linear)
        #expect(isSame)
    }
}
