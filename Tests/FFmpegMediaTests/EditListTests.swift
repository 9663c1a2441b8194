import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// What an MP4's edit list takes of its media is the item, to the frame.
@Suite(.serialized) struct EditListTests {
    struct Edit {
        var duration: Int
        var mediaTime: Int
    }

    /// Movie times are milliseconds in what ffmpeg writes, media times frames.
    private static let second = 1_000

    /// The file with another edit list in its first track. Its `moov` must come last, so that the
    /// samples stay where they are.
    private func edited(_ data: Data, _ edits: [Edit]?) -> Data {
        func word(_ value: Int) -> Data {
            Data((0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) })
        }
        func box(_ type: String, _ content: Data) -> Data {
            word(content.count + 8) + Data(type.utf8) + content
        }
        var isDone = false
        func rebuilt(_ data: Data) -> Data {
            var result = Data()
            var rest = data
            while rest.count >= 8 {
                let size = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                let type = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
                let content = rest.dropFirst(8).prefix(size - 8)
                switch type {
                case "moov": result += box(type, rebuilt(content))
                case "trak" where !isDone: result += box(type, rebuilt(content))
                case "edts" where !isDone: break
                default: result += rest.prefix(size)
                }
                if type == "tkhd", !isDone, let edits {
                    let entries = edits.reduce(word(0) + word(edits.count)) {
                        $0 + word($1.duration) + word($1.mediaTime) + word(0x10000)
                    }
                    result += box("edts", box("elst", entries))
                }
                if type == "trak" { isDone = true }
                rest = rest.dropFirst(size)
            }
            return result
        }
        return rebuilt(data)
    }

    private func source(_ name: String, _ edits: [Edit]?) throws -> FFmpegSource {
        try FFmpegSource(Fixtures.write(edited(Fixtures.data(name), edits), "edited-" + name))
    }

    /// Compares with the parts of the media that the edits name, and with the length of FFmpeg's own
    /// decode, which ends with a whole packet.
    private func check(
        _ name: String, _ edits: [Edit], media: [Float], delay: Int = 0, packet: Int
    ) throws {
        let source = try source(name, edits)
        let linear = try readAll(source)
        let expected = edits.filter { $0.mediaTime >= 0 }.flatMap { edit in
            let begin = 2 * (edit.mediaTime - delay)
            return media[begin..<begin + 2 * edit.duration * 44_100 / Self.second]
        }
        #expect(linear.count == expected.count)
        let matches = isSame(linear, expected)
        #expect(matches)
        #expect(source.format.frameCount == Int64(expected.count / 2))
        #expect(source.info.promisedFrameCount == nil)
        try expectExactSeeks(
            source, linear, at: [0, 1, 44_000, 44_101, 30_000, linear.count / 2 - 1])
        let theirs = Fixtures.decode(Fixtures.path("edited-" + name)).count / 2
        #expect(theirs - linear.count / 2 <= packet * edits.count)
        #expect(theirs - linear.count / 2 >= -packet * edits.count)
    }

    @Test func `an end before the media's is the end`() throws {
        let media = try readAll(FFmpegSource(Fixtures.path("aac.m4a")))
        try check(
            "aac.m4a", [Edit(duration: 3_000, mediaTime: 1_024)], media: media, delay: 1_024,
            packet: 1_024)
    }

    @Test func `a beginning within the media is the beginning`() throws {
        let media = try readAll(FFmpegSource(Fixtures.path("aac.m4a")))
        try check(
            "aac.m4a", [Edit(duration: 2_500, mediaTime: 90_123)], media: media, delay: 1_024,
            packet: 1_024)
    }

    @Test func `several stretches follow each other`() throws {
        let media = try readAll(FFmpegSource(Fixtures.path("aac.m4a")))
        let edits = [
            Edit(duration: 1_000, mediaTime: 1_024), Edit(duration: 1_000, mediaTime: 100_000),
            Edit(duration: 500, mediaTime: 50_000),
        ]
        try check("aac.m4a", edits, media: media, delay: 1_024, packet: 2_048)
    }

    @Test func `an empty edit is not played`() throws {
        let media = try readAll(FFmpegSource(Fixtures.path("aac.m4a")))
        let edits = [
            Edit(duration: 700, mediaTime: -1), Edit(duration: 2_000, mediaTime: 1_024),
        ]
        try check("aac.m4a", edits, media: media, delay: 1_024, packet: 2_048)
    }

    @Test(arguments: [("alac.m4a", 4_096), ("pcm.mov", 1_024)])
    func `lossless media are cut to the frame`(name: String, packet: Int) throws {
        if name == "pcm.mov" {
            Fixtures.run(
                ["-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-c:a"]
                    + ["pcm_s16be", Fixtures.path("pcm.mov")])
        }
        for edits in [
            [Edit(duration: 3_000, mediaTime: 0)], [Edit(duration: 2_000, mediaTime: 70_001)],
            [Edit(duration: 1_000, mediaTime: 9), Edit(duration: 1_000, mediaTime: 5)],
        ] {
            try check(name, edits, media: Fixtures.floats, packet: packet)
        }
    }

    @Test func `a second track with an edit list of its own changes nothing`() throws {
        let path = Fixtures.path("film.mp4")
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("aac.m4a"), "-f", "lavfi"]
                + ["-i", "color=c=red:s=32x32:d=9", "-map", "0:a", "-map", "1:v", "-c:a", "copy"]
                + [path])
        #expect(try FFmpegSource(path).format.frameCount == Int64(Fixtures.frameCount))
        let media = try readAll(FFmpegSource(path))
        try check(
            "film.mp4", [Edit(duration: 3_000, mediaTime: 1_024)], media: media, delay: 1_024,
            packet: 1_024)
    }

    @Test func `an edit list that is nonsense, or beyond the media, takes nothing away`() throws {
        let whole = Int64(Fixtures.frameCount)
        for edit in [
            Edit(duration: 0, mediaTime: 1_024), Edit(duration: 90_000, mediaTime: 1_024),
            Edit(duration: Int(UInt32.max), mediaTime: 1_024),
        ] {
            #expect(try source("aac.m4a", [edit]).format.frameCount == whole, "\(edit)")
        }
        #expect(try source("alac.m4a", nil).format.frameCount == whole)
        let beyond = try source("alac.m4a", [Edit(duration: 9, mediaTime: 9_999_999)])
        #expect(beyond.format.frameCount == whole)
    }

    /// Boxes may say their size in 64 bits, and two of them end where numbers do.
    @Test func `boxes that reach the end of all numbers are read no further`() throws {
        func endless(_ type: String, at offset: Int) -> Data {
            let size = Int64.max - Int64(offset)
            let digits = (0..<8).map { UInt8(truncatingIfNeeded: size >> (56 - 8 * $0)) }
            return Data([0, 0, 0, 1]) + Data(type.utf8) + Data(digits)
        }
        let data = try Fixtures.data("aac.m4a")
        let mark = try #require(data.range(of: Data("moov".utf8), options: .backwards))
        let start = mark.lowerBound - 4
        #expect(data[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } == data.count - start)
        var movie = data[..<start] + endless("moov", at: start) + data[mark.upperBound...]
        movie += endless("free", at: movie.count)
        let source = try FFmpegSource(Fixtures.write(movie, "endless.m4a"))
        #expect(source.format.frameCount == Int64(Fixtures.frameCount))
    }

    @Test(arguments: [["-ss", "2.345"], []])
    func `Opus that was cut without encoding begins and ends where FFmpeg does`(
        before: [String]
    ) throws {
        let whole = Fixtures.path("opus.mp4")
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("opus.opus"), "-c", "copy", whole])
        let path = Fixtures.path("cut.mp4")
        let after = before.isEmpty ? ["-ss", "2.345"] : []
        Fixtures.run(
            ["-v", "error", "-y"] + before + ["-i", whole] + after
                + ["-t", "1.3", "-c", "copy", path])
        let source = try FFmpegSource(path)
        let frames = try readAll(source)
        #expect(frames.count == Fixtures.decode(path).count)
        #expect(source.format.frameCount == Int64(frames.count / 2))
        try expectExactSeeks(source, frames, at: [0, 1, 30_000, frames.count / 2 - 1])
    }

    /// Delay 2 112, padding 256, length 225 792: hexadecimal words, as iTunes writes them.
    @Test(arguments: [("0", 225_792), ("1", Fixtures.frameCount)])
    func `where iTunes and the edit list disagree, the edit list is right`(
        hasEdits: String, expected: Int
    ) throws {
        let path = Fixtures.path("itunes-\(hasEdits).m4a")
        let comment = " 00000000 00000840 00000100 0000000000037200 00000000"
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("aac.m4a"), "-c", "copy"]
                + ["-use_editlist", hasEdits, "-movflags", "use_metadata_tags"]
                + ["-metadata", "iTunSMPB=" + comment, path])
        let source = try FFmpegSource(path)
        #expect(source.format.frameCount == Int64(expected))
        let frames = try readAll(source)
        #expect(frames.count == 2 * expected)
        let media = try readAll(FFmpegSource(Fixtures.path("aac.m4a")))
        let shift = hasEdits == "1" ? 0 : 2_112 - 1_024
        let matches = isSame(Array(frames.prefix(100_000)), media, from: 2 * shift)
        #expect(matches)
    }
}
