import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A file that loses its end while it is played.
@Suite struct ShortenedFileTests {
    @Test(arguments: ["s16.wav", "16.flac", "cbr.mp3", "aac.m4a"])
    func `what is there is heard, then it is an error at its place`(name: String) throws {
        let path = Fixtures.path("shortened-\(name)")
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: Fixtures.path(name), toPath: path)
        let whole = try readAll(try FFmpegSource(path))
        let source = try FFmpegSource(path)
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        #expect(truncate(path, size / 2) == 0)
        var heard: [Float] = []
        let buffer = UnsafeMutableBufferPointer<Float>.allocate(capacity: 8_192)
        defer { buffer.deallocate() }
        let error = #expect(throws: MediaError.self) {
            while case let count = try source.read(into: buffer), count > 0 {
                heard += buffer[..<(2 * count)]
            }
        }
        #expect(error?.code == .damaged, "\(error as Any)")
        #expect(error?.reason.contains("cut off while it was played") == true, "\(error as Any)")
        // No silence stands for what is gone: all that was given out was in the file. (The last
        // packet may be torn.)
        #expect(heard.count < whole.count * 3 / 4)
        #expect(heard.count > whole.count / 8)
        let sure = max(0, heard.count - 16_384)
        #expect(heard[..<sure] == whole[..<sure])
    }

    @Test func `a file that was already short when it was opened simply ends`() throws {
        let path = Fixtures.path("short.wav")
        let data = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("s16.wav")))
        try data.prefix(data.count / 2).write(to: URL(fileURLWithPath: path))
        let source = try FFmpegSource(path)
        #expect(try readAll(source).count / 2 == Int(source.format.frameCount ?? 0))
    }
}
