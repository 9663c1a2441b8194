import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

@Suite struct `What a file is called` {
    /// The fixture with a title in a chunk before the sound.
    private func wave(titled title: [UInt8]) throws -> Data {
        let plain = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("s16.wav")))
        func number(_ value: Int) -> Data {
            Data((0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
        }
        let padded = title + [0] + (title.count % 2 == 0 ? [0] : [])
        let info = Data("INFOINAM".utf8) + number(padded.count) + Data(padded)
        let list = Data("LIST".utf8) + number(info.count) + info
        var file = Data("RIFF".utf8) + number(plain.count - 8 + list.count)
        file += plain[8..<36] + list + plain[36...]
        return file
    }

    private func info(of data: Data, name: [UInt8]) throws -> MediaInfo {
        let path = String(fileName: Array(Fixtures.path("").utf8) + name)
        let descriptor = open(path.cFileName, O_CREAT | O_WRONLY | O_TRUNC, 0o600)
        try #require(descriptor >= 0)
        data.withUnsafeBytes { bytes in _ = write(descriptor, bytes.baseAddress, bytes.count) }
        close(descriptor)
        defer { unlink(path.cFileName) }
        return try FFmpegSource(path).info
    }

    @Test func `a title is text whatever its bytes are`() throws {
        for (bytes, title) in [
            (Array("Caf".utf8) + [0xE9, 0x20, 0x80], "Café €"), (Array("Café".utf8), "Café"),
            (Array("A\u{202E}B".utf8), "A\u{202E}B"),
        ] {
            let info = try info(of: wave(titled: bytes), name: Array("t.wav".utf8))
            #expect(info.title == title)
            #expect(!info.isNamedByFile)
        }
    }

    @Test func `without a title it is the name of the file, to its end`() throws {
        let plain = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("s16.wav")))
        for (name, title) in [
            (Array("What? #2.wav".utf8), "What? #2"), (Array("Mr. Smith".utf8), "Mr. Smith"),
            (Array("caf".utf8) + [0xE9] + Array(".wav".utf8), "café"),
            (Array("50%20 off.wav".utf8), "50%20 off"),
        ] {
            let info = try info(of: plain, name: name)
            #expect(info.title == title)
            #expect(info.isNamedByFile)
        }
    }

    @Test(arguments: [" \t", "\u{200B}\u{2060}", "\u{7}\u{202E}", "\u{FE0F}\u{AD}"])
    func `a title of which nothing shows is none`(title: String) throws {
        let info = try info(of: wave(titled: Array(title.utf8)), name: Array("song.wav".utf8))
        #expect(info.title == "song" && info.isNamedByFile)
    }

    @Test func `ID3v1 is read as Windows-1252`() throws {
        var plain = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("bare.mp3")))
        var tag = Data("TAG".utf8) + Data("Na".utf8) + Data([0xEF]) + Data("ve".utf8)
        tag += Data(count: 128 - tag.count)
        plain += tag
        let info = try info(of: plain, name: Array("id3v1.mp3".utf8))
        #expect(info.title == "Naïve")
    }

    @Test func `the place in an album is read from the header`() throws {
        let path = Fixtures.path("tagged.flac")
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-metadata", "track=03/12"]
                + ["-metadata", "disc=2", "-metadata", "album=Both", path])
        let tags = try MediaTags(of: path)
        #expect(tags.track == 3)
        #expect(tags.disc == 2)
        #expect(tags.album == "Both")
        #expect(throws: MediaError.self) { try MediaTags(of: Fixtures.path("picture.png")) }
    }
}
