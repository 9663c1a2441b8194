import Foundation
import Playout
import Testing

@testable import FFmpegMedia

@Suite struct MixTests {
    private func source(_ samples: [Int16], channels: Int, _ name: String) throws -> FFmpegSource {
        let path = Fixtures.path(name)
        try Fixtures.wave(samples, channels: channels, rate: 48_000)
            .write(to: URL(fileURLWithPath: path))
        return try FFmpegSource(path)
    }

    @Test func `a mono file sounds on both sides at the level it has`() throws {
        let samples = Fixtures.samples.prefix(5_000)
        let frames = try readAll(source(Array(samples), channels: 1, "mono.wav"))
        let expected = samples.flatMap { [Float($0) / 32_768, Float($0) / 32_768] }
        #expect(frames == expected)
    }

    @Test(arguments: [3, 4, 5, 6, 7, 8])
    func `full scale in all of many channels does not exceed full scale in two`(
        channels: Int
    ) throws {
        let samples = [Int16](repeating: .max, count: 1_000 * channels)
        let frames = try readAll(source(samples, channels: channels, "full-\(channels).wav"))
        #expect(frames.count == 2_000)
        // One rounding step of Float above 1 is the matrix's own.
        let peak = frames.map { abs($0) }.max()!
        #expect(peak <= 1 + .ulpOfOne)
        #expect(peak > 0.9)
    }

    @Test func `a file of a single frame is that frame`() throws {
        let one = try source([1_000, -2_000], channels: 2, "one.wav")
        #expect(one.format.frameCount == 1)
        #expect(try readAll(one) == [1_000.0 / 32_768, -2_000.0 / 32_768])
        try one.seek(toFrame: 0)
        #expect(try readAll(one).count == 2)
    }

    @Test func `what a file says about itself is there at once`() throws {
        let flac = try FFmpegSource(Fixtures.path("16.flac")).info
        #expect(flac.title == "Evening")
        #expect(flac.codec == "flac")
        #expect(flac.container == "flac")
        #expect(flac.duration == Double(Fixtures.frameCount) / 44_100)
        let mp3 = try FFmpegSource(Fixtures.path("cbr.mp3")).info
        #expect(mp3.title == "cbr")
        #expect(mp3.artist == "Ada")
        #expect(mp3.album == "Notes")
        #expect((120_000...136_000).contains(mp3.bitRate))
        #expect(try FFmpegSource(Fixtures.path("vorbis.ogg")).info.title == "Ogg")
    }
}
