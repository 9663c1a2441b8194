import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A seek is right when nobody can tell it from having listened up to there.
@Suite struct SeekTests {
    @Test(arguments: Fixtures.names)
    func `frames after a seek are those of the linear decode`(name: String) throws {
        let source = try FFmpegSource(Fixtures.path(name))
        let linear = try readAll(source)
        let total = linear.count / 2
        #expect(source.format.frameCount == Int64(total))
        #expect(linear[50_000..<51_000].contains { abs($0) > 0.05 })

        try source.seek(toFrame: 0)
        let again = try readAll(source)
        let isRepeated = again.count == linear.count && isSame(again, linear)
        #expect(isRepeated)

        var generator = SplitMix64(seed: 7)
        let edges = [0, 1, total - 1, total / 2, 2_000, 575]
        let targets = edges + (0..<34).map { _ in Int.random(in: 0..<total, using: &generator) }
        for target in targets {
            try source.seek(toFrame: Int64(target))
            let frames = try read(source, 3_000)
            #expect(frames.count == 2 * min(3_000, total - target))
            let matches = isSame(frames, linear, from: 2 * target)
            #expect(matches, "after a seek to \(target) of \(total)")
        }
    }

    @Test(arguments: ["16.flac", "aac.m4a", "vbr.mp3", "vorbis.ogg"])
    func `two sources that seek to a frame on different ways agree`(name: String) throws {
        let one = try FFmpegSource(Fixtures.path(name))
        let other = try FFmpegSource(Fixtures.path(name))
        try other.seek(toFrame: 300_000)
        _ = try read(other, 100)
        for frame in [Int64(270_000), 12_345] {
            try one.seek(toFrame: frame)
            try other.seek(toFrame: frame)
            let frames = try (readAll(one), readAll(other))
            let agree = frames.0.count == frames.1.count && isSame(frames.0, frames.1)
            #expect(agree, "from \(frame)")
        }
    }

    @Test func `two recordings in one Ogg file play one after the other, with exact seeks`() throws
    {
        let path = Fixtures.path("chained.opus")
        let parts = try ["opus.opus", "voice.opus"].map {
            try Data(contentsOf: URL(fileURLWithPath: Fixtures.path($0)))
        }
        try (parts[0] + parts[1]).write(to: URL(fileURLWithPath: path))
        let source = try FFmpegSource(path)
        let linear = try readAll(source)
        #expect(source.format.frameCount == Int64(linear.count / 2))
        #expect(linear.count > 2 * 600_000)
        for target in [400_000, 100_000, 342_000] {
            try source.seek(toFrame: Int64(target))
            let matches = isSame(try read(source, 3_000), linear, from: 2 * target)
            #expect(matches, "after a seek to \(target)")
        }
    }

    @Test func `a seek to the end or past it leaves nothing to read, and the way back open`() throws
    {
        let source = try FFmpegSource(Fixtures.path("cbr.mp3"))
        for frame in [Int64(Fixtures.frameCount), 10_000_000, .max] {
            try source.seek(toFrame: frame)
            #expect(try read(source, 10).isEmpty)
        }
        try source.seek(toFrame: -5)
        #expect(try readAll(source).count == 2 * Fixtures.frameCount)
    }
}
