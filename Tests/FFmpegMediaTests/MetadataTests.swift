import Foundation
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

/// Tags, chapters, pictures and loudness, as containers keep them.
@Suite struct MetadataTests {
    private static let chapters = """
        ;FFMETADATA1
        title=Evening
        artist=Ada
        album=Notes
        genre=Ambient
        [CHAPTER]
        TIMEBASE=1/1000
        START=0
        END=2000
        title=One
        [CHAPTER]
        TIMEBASE=1/1000
        START=2000
        END=7000
        title=Zwei ü

        """

    private func make(_ name: String, _ options: [String] = []) throws -> MediaMetadata {
        let text = try Fixtures.write(Data(Self.chapters.utf8), "chapters.txt")
        let path = Fixtures.path("metadata-" + name)
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-i", text]
                + ["-map_metadata", "1", "-map_chapters", "1", "-map", "0:a"] + options + [path])
        return try FFmpegSource(path).metadata
    }

    @Test(arguments: ["a.m4a", "a.mka", "a.mp3", "a.opus"])
    func `chapters have a name and a place`(name: String) throws {
        let metadata = try make(name, name.hasSuffix("opus") ? ["-c:a", "libopus"] : [])
        #expect(metadata.title == "Evening" && metadata.artist == "Ada")
        #expect(metadata.album == "Notes" && metadata.genre == "Ambient")
        #expect(metadata.chapters.map(\.title) == ["One", "Zwei ü"])
        #expect(metadata.chapters.first?.range.start == .zero)
        let second = try #require(metadata.chapters.last?.range.start.seconds)
        #expect(abs(second - 2) < 0.002)
        #expect(metadata.chapter(at: MediaTime(seconds: 3))?.title == "Zwei ü")
        #expect(metadata.chapter(at: MediaTime(seconds: 1.9))?.title == "One")
    }

    @Test(arguments: ["flac", "mp3", "m4a"])
    func `a cover picture is what was put in`(kind: String) throws {
        let path = Fixtures.path("cover-metadata." + kind)
        Fixtures.run(
            [
                "-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-i",
                Fixtures.path("picture.png"),
            ]
                + [
                    "-map", "0", "-map", "1", "-c:v", "copy", "-disposition:v", "attached_pic",
                    path,
                ])
        let artwork = try #require(try FFmpegSource(path).metadata.artwork)
        #expect(artwork.mimeType == "image/png")
        #expect(try Data(artwork.bytes) == Fixtures.data("picture.png"))
        #expect(try FFmpegSource(Fixtures.path("16.flac")).metadata.artwork == nil)
    }

    @Test func `loudness is read in both ways, and nonsense is none`() throws {
        func loudness(_ tags: [String: String]) -> MediaMetadata {
            var metadata = MediaMetadata()
            metadata.tags = tags
            return metadata
        }
        let replayGain = loudness([
            "replaygain_track_gain": "-7.03 dB", "replaygain_track_peak": "0.98",
            "replaygain_album_gain": "+2.5 dB",
        ])
        #expect(replayGain.trackLoudness == .init(gain: -7.03, peak: 0.98))
        #expect(replayGain.albumLoudness == .init(gain: 2.5, peak: nil))
        #expect(loudness(["r128_track_gain": "-512"]).trackLoudness == .init(gain: 3, peak: nil))
        for text in ["", "loud", "nan", "inf dB", "1e9 dB"] {
            #expect(loudness(["replaygain_track_gain": text]).trackLoudness == nil, "\(text)")
        }
        #expect(loudness(["r128_track_gain": "99999"]).trackLoudness == nil)
        let tagged = try make("gain.flac", ["-metadata", "REPLAYGAIN_TRACK_GAIN=-3.5 dB"])
        #expect(tagged.trackLoudness?.gain == -3.5)
    }

    @Test func `what is only sound says nothing`() throws {
        let metadata = try FFmpegSource(Fixtures.path("s16.wav")).metadata
        #expect(metadata.chapters.isEmpty && metadata.artwork == nil && metadata.title == nil)
    }
}
