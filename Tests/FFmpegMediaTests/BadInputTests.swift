import CTuttiFFmpeg
import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Whatever is in a file: an error that helps, or sound with the right numbers.
@Suite struct BadInputTests {
    private func write(_ data: Data, _ name: String) throws -> String {
        let path = Fixtures.path(name)
        try data.write(to: URL(fileURLWithPath: path))
        return path
    }

    private func data(_ name: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: Fixtures.path(name)))
    }

    private func code(_ path: String) -> MediaError.Code? {
        do throws(MediaError) {
            _ = try FFmpegSource(path)
            return nil
        } catch {
            #expect(error.subject == path)
            #expect(error.reason.count > 10)
            return error.code
        }
    }

    @Test func `what cannot be played is refused with the reason`() throws {
        #expect(code(Fixtures.path("no-such.flac")) == .notFound)
        #expect(code(Fixtures.path("s16.wav/under.flac")) == .notFound)
        #expect(code("") == .notFound)
        #expect(code(Fixtures.folder) == .notReadable)
        #expect(code("/dev/zero") == .notReadable)
        #expect(code(try write(Data(), "empty.mp3")) == .notMedia)
        #expect(code(try write(Data(repeating: 0, count: 50_000), "zeros.mp3")) == .notMedia)
        let text = Data(String(repeating: "Once upon a time. ", count: 500).utf8)
        #expect(code(try write(text, "story.flac")) == .notMedia)
        #expect(code(Fixtures.path("video.mp4")) == .noAudio)
        #expect(code(Fixtures.path("picture.png")) == .notMedia)
        #expect(code(Fixtures.path("encrypted.mp4")) == .encrypted)
        #expect(code("ftp://example.org/a.mp3") == .unsupported)
        #expect(code("concat:\(Fixtures.path("s16.wav"))") == .notFound)
    }

    /// Bytes of a disk that fails behind a place, and is read on all the same.
    private final class BrokenReader: LibraryReader {
        private let bytes: [UInt8]
        private let end: Int

        init(_ bytes: [UInt8], until end: Int) {
            self.bytes = bytes
            self.end = end
            super.init(part: 0..<Int64(bytes.count))
        }

        override func fill(
            _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
        ) throws(MediaError) -> Int {
            guard offset < end else {
                guard firstFailure == nil else { return 0 }
                throw MediaError(
                    .notReadable, operation: "read", subject: "disk", reason: "the disk fails")
            }
            let part = bytes[Int(offset)..<min(end, Int(offset) + buffer.count)]
            return unsafe buffer.update(fromContentsOf: part) - buffer.startIndex
        }
    }

    @Test(arguments: ["16.flac", "aac.m4a", "cbr.mp3", "bare.mp3", "vorbis.ogg", "s16.wav"])
    func `a disk that fails while a file is opened is what is said of it`(name: String) throws {
        let bytes = [UInt8](try data(name))
        let location = try MediaLocation(Fixtures.path(name)).opened()
        var reasons: [String] = []
        for end in [0, 4, 60, 700, 5_000, 20_000] where end < bytes.count {
            let reader = BrokenReader(bytes, until: end)
            do throws(MediaError) {
                let (context, _) = unsafe try Demuxer.open(
                    location, nil, .audio, reader, MediaCancellation())
                var opened: UnsafeMutablePointer<AVFormatContext>? = unsafe context
                unsafe avformat_close_input(&opened)
            } catch {
                reasons.append(error.reason)
            }
        }
        #expect(!reasons.isEmpty)
        #expect(reasons.allSatisfy { $0 == "the disk fails" }, "\(reasons)")
    }

    /// The file was replaced since it was opened, or the name is nonsense or forbidden.
    @Test(arguments: ["mov", "mp3", "wav", "lavfi", "concat", "no-such-container", ""])
    func `a container that is not what was expected is opened all the same`(name: String) throws {
        let expected = try FFmpegSource(Fixtures.path("16.flac"))
        let source = try FFmpegSource(Fixtures.path("16.flac"), container: name)
        #expect(source.info == expected.info)
        #expect(try readAll(source) == readAll(expected))
    }

    @Test func `a container that is told is not asked for`() throws {
        let location = try MediaLocation(Fixtures.path("16.flac"))
        #expect(throws: MediaError.self) {
            _ = try Demuxer(location, container: "mp3", cancellation: MediaCancellation())
        }
    }

    @Test(arguments: Fixtures.names)
    func `the first bytes say what FFmpeg finds, or nothing`(name: String) throws {
        let path = Fixtures.path(name)
        let signature = ContainerSignature.container(ofFile: path)
        // These have no mark of their own, or a tag before it.
        let unmarked = [
            "mp3", "mp2", "aac", "ac3", ".ts", "wma", "nut", "adx", "thd", "eac3",
            "sox", "flv", "rm",
        ]
        let hasMark = !unmarked.contains { name.hasSuffix($0) }
        #expect((signature != nil) == hasMark)
        guard let signature else { return }
        let demuxer = try Demuxer(MediaLocation(path), cancellation: MediaCancellation())
        #expect(demuxer.containerName == signature)
    }

    /// FFmpeg believes a name that ends like one of its formats, whatever is there, and machine code
    /// looks like frames of MPEG audio in places.
    @Test(arguments: ["/bin/bash", "/usr/bin/ffmpeg", "/usr/bin/env"], ["mp3", "aac", "ac3"])
    func `a program under the name of a song is no song`(program: String, ending: String) throws {
        let path = try write(
            Data(contentsOf: URL(fileURLWithPath: program)), "program." + ending)
        #expect(code(path) == .notMedia)
    }

    @Test func `a mark on something else is no obstacle`() throws {
        // Not Ogg, by the byte after the mark, and FFmpeg finds MP3 behind it.
        let path = try write(
            Data("OggS".utf8) + Data(repeating: 0xFE, count: 8) + data("bare.mp3"), "marked.mp3")
        #expect(ContainerSignature.container(ofFile: path) == "ogg")
        #expect(try FFmpegSource(path).info.container == "mp3")
        #expect(ContainerSignature.container(ofFile: "/nowhere") == nil)
        #expect(ContainerSignature.container(of: [UInt8](repeating: 0xFF, count: 12)) == nil)
    }

    /// Sizes of 64 bits that count their head; FFmpeg refuses these files itself as it is today.
    @Test(
        arguments: ["w64", "asf", "dsf", "caf", "iff"], [Int64.min, .min + 1, -1, .max - 30, .max])
    func `a chunk of any size is no end of the program`(container: String, size: Int64) {
        let digits = (0..<8).map { UInt8(truncatingIfNeeded: size >> (8 * $0)) }
        for head in [digits, digits.reversed()] {
            let file = (0..<64).flatMap { _ in head }
            for fileSize in [Int64(file.count), .max] {
                let range = DataChunk.range(in: container, fileSize: fileSize) { offset, count in
                    Array(file.dropFirst(Int(min(offset, 512))).prefix(count))
                }
                #expect(range == nil)
            }
        }
    }

    @Test func `what was learnt about a container changes nothing that is heard`() throws {
        for name in ["16.flac", "cbr.mp3", "vorbis.ogg", "aac.m4a", "s16.wav"] {
            let first = try FFmpegSource(Fixtures.path(name))
            let second = try FFmpegSource(Fixtures.path(name), container: first.info.container)
            #expect(second.info == first.info)
            #expect(try readAll(second) == readAll(first), "\(name)")
        }
    }

    @Test func `a protected purchase is called protected`() throws {
        var bytes = try data("aac.m4a")
        let entry = try #require(bytes.range(of: Data("mp4a".utf8), options: .backwards))
        // The sample entry is the first of its name inside `stsd`.
        let table = try #require(bytes.range(of: Data("stsd".utf8)))
        let first = try #require(
            bytes.range(of: Data("mp4a".utf8), in: table.upperBound..<entry.upperBound))
        bytes.replaceSubrange(first, with: Data("drms".utf8))
        #expect(code(try write(bytes, "protected.m4a")) == .encrypted)
    }

    /// The header of a FLAC that says 32 bits, which FFmpeg decodes since version 6.
    @Test func `what this FFmpeg cannot decode is called by its name`() throws {
        var flac = try data("16.flac")
        flac[20] |= 1
        flac[21] |= 0xF0
        // Its frames say it as well: the fourth byte of each.
        for index in 42..<flac.count - 4 where flac[index] == 0xFF && flac[index + 1] == 0xF8 {
            flac[index + 3] |= 0x0E
        }
        var aac = try data("aac.m4a")
        // DecoderSpecificInfo: type 42 behind the escape, 44.1 kHz, two channels.
        let table = try #require(aac.range(of: Data("esds".utf8)))
        let info = try #require(
            aac.range(of: Data([0x05, 0x80, 0x80, 0x80]), in: table.upperBound..<aac.endIndex))
        aac.replaceSubrange(
            info.upperBound + 1..<info.upperBound + 4, with: [0xF9, 0x48, 0x40])
        for (bytes, name, format) in [
            (flac, "32-bit.flac", "FLAC with 32 bits"), (aac, "usac.m4a", "xHE-AAC"),
        ] {
            let failure = #expect(throws: MediaError.self) {
                _ = try FFmpegSource(try write(bytes, name))
            }
            #expect(failure?.code == .unsupported)
            #expect(failure?.reason.contains(format) == true, "\(failure?.reason ?? "")")
        }
    }

    @Test(arguments: ["aac.m4a", "alac.m4a"])
    func `an MP4 without its table of contents is called incomplete`(name: String) throws {
        let whole = try data(name)
        for count in [whole.count / 2, 40] {
            let path = try write(whole.prefix(count), "part.m4a")
            let failure = #expect(throws: MediaError.self) { _ = try FFmpegSource(path) }
            #expect(failure?.code == .damaged)
            #expect(failure?.reason.contains("is incomplete") == true)
        }
    }

    @Test func `a message says which file first, then why, then where, each once`() {
        let far = MediaError(
            .network, operation: "read", subject: "https://host/music/a%20b.mp3?key=1",
            reason: "cannot be fetched; check the network")
        #expect(
            far.description
                == "a%20b.mp3: cannot be fetched; check the network (https://host/music/a%20b.mp3?key=1)"
        )
        let near = MediaError(
            .notFound, operation: "stat", subject: "a.mp3", reason: "is not there")
        #expect(near.description == "a.mp3: is not there")
        let folder = MediaError(
            .notReadable, operation: "stat", subject: "/m/", reason: "is a folder")
        #expect(folder.description == "/m/: is a folder")
    }

    @Test func `a playlist cannot make us read other files`() throws {
        let list = "ffconcat version 1.0\nfile s16.wav\n"
        #expect(code(try write(Data(list.utf8), "list.wav")) == .notMedia)
        let hls = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:7,\naac.ts\n#EXT-X-ENDLIST\n"
        #expect(code(try write(Data(hls.utf8), "list.m3u8")) == .notMedia)
    }

    @Test(.enabled(if: getuid() != 0))
    func `a file without permission says so`() throws {
        let path = try write(try data("s16.wav"), "secret.wav")
        chmod(path, 0)
        #expect(code(path) == .notReadable)
    }

    @Test func `a wrong extension or a colon in the name does not matter`() throws {
        let bytes = try data("16.flac")
        for name in ["flac-called.mp3", "no-extension", "http:notes.flac", "a b%20c#ü.flac"] {
            let source = try FFmpegSource(write(bytes, name))
            #expect(source.format.frameCount == Int64(Fixtures.frameCount))
        }
    }

    @Test(arguments: Fixtures.names)
    func `a truncated file plays up to where it ends, or says that it cannot`(
        name: String
    ) throws {
        let whole = try data(name)
        let linear = try readAll(FFmpegSource(Fixtures.path(name)))
        for part in [0.62, 0.1] {
            let path = try write(whole.prefix(Int(part * Double(whole.count))), "cut-" + name)
            do throws(MediaError) {
                let source = try FFmpegSource(path)
                guard let frames = try? readAll(source) else { continue }
                #expect(source.format.frameCount == Int64(frames.count / 2))
                // The last packet (FLAC at 192 kHz: 18 432 frames) may be half there; all before
                // it is what it was.
                let sure = max(0, min(frames.count, linear.count) - 2 * 18_432)
                let matches = isSame(frames, linear, count: sure)
                #expect(matches)
                let share = Double(frames.count) / Double(linear.count)
                #expect(abs(share - part) < 0.1, "\(share) of the frames in \(part) of the bytes")
            } catch {
                #expect([.damaged, .notMedia].contains(error.code), "\(error)")
                // MP4 and CAF keep their tables at the end; a tenth of a small Ogg
                // file is less than its first page.
                let mayFail =
                    part == 0.1 ? ["m4a", "alac.caf", "opus", "ogg", "tta"] : ["m4a", "alac.caf"]
                #expect(mayFail.contains { name.hasSuffix($0) })
            }
        }
    }

    /// Every length of a FLAC header: 4 bytes of mark, 38 of the stream's figures, then the tags.
    @Test(arguments: [4, 5, 20, 41, 60, 100])
    func `a file that ends within its header is called cut off, not unreadable`(
        length: Int
    ) throws {
        let path = try write(try data("16.flac").prefix(length), "header-\(length).flac")
        let failure = #expect(throws: MediaError.self) { _ = try FFmpegSource(path) }
        #expect([.damaged, .notMedia].contains(failure?.code), "\(failure.map { "\($0)" } ?? "")")
        #expect(failure?.reason.contains("Input/output") == false)
    }

    @Test func `a damaged stretch of FLAC is silent and moves nothing`() throws {
        let linear = try readAll(FFmpegSource(Fixtures.path("16.flac")))
        var bytes = try data("16.flac")
        let middle = bytes.count / 2
        for index in middle..<(middle + 40) { bytes[index] ^= 0x5A }
        let source = try FFmpegSource(write(bytes, "damaged.flac"))
        #expect(source.format.frameCount == Int64(Fixtures.frameCount))
        let frames = try readAll(source)
        // Damage of 40 bytes reaches two FLAC blocks at most, of 4 608 frames.
        let first = try #require(frames.indices.first { frames[$0] != linear[$0] })
        let end = first + 2 * 2 * 4_608
        let isWholeAfter = isSame(Array(frames[end...]), linear, from: end)
        #expect(isWholeAfter)
        #expect((first..<end).allSatisfy { frames[$0] == linear[$0] || frames[$0] == 0 })
        try source.seek(toFrame: 200_000)
        let matches = isSame(try readAll(source), frames, from: 400_000)
        #expect(matches)
    }

    /// Two recordings, the first of which ends with a packet that says its own length, 904 frames.
    @Test func `a packet of ALAC that says it is a day long takes no room`() throws {
        let part = Fixtures.path("part.alac.m4a")
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-af", "atrim=end_sample=5000"]
                + ["-c:a", "alac", part])
        let list = try write(Data("file '\(part)'\nfile '\(part)'\n".utf8), "alac.txt")
        let path = Fixtures.path("twice.alac.mka")
        Fixtures.run(
            ["-v", "error", "-y", "-f", "concat", "-safe", "0", "-i", list, "-c", "copy", path])
        var bytes = try data("twice.alac.mka")
        let whole = try readAll(FFmpegSource(path))
        #expect(whole.count == 2 * 10_000)
        // Element, "has length", and twice the length.
        let heads = [0x10, 0x12].compactMap { bytes.range(of: Data([0x20, 0, $0, 0, 0, 0x07])) }
        let head = try #require(heads.min { $0.lowerBound < $1.lowerBound })
        bytes[head.lowerBound + 3] = 0x7F
        let source = try FFmpegSource(write(bytes, "long-packet.mka"))
        let frames = try readAll(source)
        #expect(source.format.frameCount == Int64(frames.count / 2))
        // It decodes to nothing, and is as long as the usual one.
        #expect(frames.count == 2 * (2 * 4_096 + 4_096 + 904))
        let matches = isSame(frames, whole, count: 2 * 4_096)
        #expect(matches)
    }

    @Test(arguments: Fixtures.names)
    func `no damage crashes, hangs or makes a seek lose count`(
        name: String
    ) throws {
        let whole = try data(name)
        for seed in UInt64(0)..<3 {
            var generator = SplitMix64(seed: seed)
            var bytes = whole
            for _ in 0..<30 {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            let path = try write(bytes, "fuzz-" + name)
            do throws(MediaError) {
                let source = try FFmpegSource(path)
                guard let linear = try? readAll(source) else { continue }
                #expect(source.format.frameCount == Int64(linear.count / 2), "seed \(seed)")
                let middle = Int64(linear.count / 4)
                try source.seek(toFrame: middle)
                let rest = try? readAll(source)
                #expect(rest.map { $0.count } == linear.count - 2 * Int(middle), "seed \(seed)")
            } catch {
                #expect(error.reason.count > 10)
            }
        }
    }
}
