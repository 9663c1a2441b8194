import Foundation
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

/// What a container says of its tracks, and that each of them plays as if it were alone.
@Suite struct TrackTests {
    private func failure(_ path: String, track: Int) -> MediaError? {
        do throws(MediaError) {
            _ = try FFmpegSource(path, track: track)
            return nil
        } catch {
            return error
        }
    }

    // MARK: What there is

    @Test(arguments: [
        ("tracks.mp4", "aac", "alac"), ("tracks.mkv", "vorbis", "flac"),
        ("tracks.ts", "mp2", "ac3"),
    ])
    func `a container names its tracks`(name: String, first: String, second: String) throws {
        let encoder = first == "vorbis" ? "libvorbis" : first
        let source = try FFmpegSource(Films.make(name, (encoder, second)))
        let tracks = source.tracks
        #expect(tracks.map(\.kind) == [.video, .audio, .audio])
        #expect(tracks.map(\.codec) == ["mpeg4", first, second])
        #expect(tracks.map(\.id) == [0, 1, 2])
        #expect(tracks.map(\.sampleRate) == [0, 44_100, 48_000])
        #expect(tracks.map(\.channelCount) == [0, 2, 6])
        #expect(tracks[0].channelLayout == nil && tracks[1].channelLayout == "stereo")
        #expect(tracks[2].channelLayout?.hasPrefix("5.1") == true)
        #expect(tracks.map(\.language) == [nil, "eng", "deu"])
        #expect(tracks.allSatisfy { $0.isDecodable && $0.title == nil })
        #expect(tracks[0].characteristics.contains(.visual))
        #expect(tracks[1].characteristics.contains(.audible))
        #expect(source.track == 1)
    }

    /// A transport stream has no such marks.
    @Test(arguments: [("marks.mkv", true), ("marks.mp4", false)])
    func `marks of the container are characteristics`(name: String, hasOriginal: Bool) throws {
        let path = Films.make(name, ("flac", "flac"), [])
        let tracks = try FFmpegSource(path).tracks
        #expect(tracks.map(\.isDefault)[1...] == [true, false])
        #expect(tracks[1].characteristics.contains(.isMainProgramContent))
        #expect(tracks[1].characteristics.contains(.isOriginalContent) == hasOriginal)
        #expect(!tracks[2].characteristics.contains(.isMainProgramContent))
        #expect(tracks[2].characteristics.contains(.isAuxiliaryContent))
    }

    @Test(arguments: [
        (1 << 1, MediaTrack.Kind.audio, MediaCharacteristic.isDubbedTranslation),
        (1 << 6, .text, .containsOnlyForcedSubtitles), (1 << 7, .text, .transcribesSpokenDialog),
        (1 << 8, .audio, .describesVideo), (1 << 16, .text, .transcribesSpokenDialog),
    ])
    func `a mark means what it says, of the kinds that it is for`(
        mark: Int, kind: MediaTrack.Kind, meaning: MediaCharacteristic
    ) {
        let marked = Demuxer.characteristics(of: kind, Int32(mark))
        #expect(marked.contains(meaning) && marked.count == 2)
        #expect(Demuxer.characteristics(of: kind, 0).count == 1)
        #expect(Demuxer.characteristics(of: .other, Int32(mark)).isEmpty)
    }

    @Test func `a cover is no track`() throws {
        let path = Fixtures.path("cover-track.m4a")
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-i"]
                + [Fixtures.path("picture.png"), "-map", "0", "-map", "1", "-c:v", "copy"]
                + ["-disposition:v", "attached_pic", path])
        let source = try FFmpegSource(path)
        #expect(source.tracks.map(\.kind) == [.audio] && source.metadata.artwork != nil)
    }

    @Test func `names are kept as they are, but not longer than names`() throws {
        let odd = "Bell\u{7} and \u{1B}[31mred"
        let source = try FFmpegSource(
            Films.make(
                "named.mkv", ("flac", "flac"),
                ["-metadata:s:a:0", "title=" + odd, "-metadata:s:a:0", "language=und"]
                    + ["-metadata:s:a:1", "title=" + String(repeating: "ü", count: 5_000)]
                    + ["-metadata:s:a:1", "language=" + String(repeating: "x", count: 5_000)]))
        #expect(source.tracks[1].title == odd && source.tracks[1].language == nil)
        #expect(source.tracks[2].title == String(repeating: "ü", count: Demuxer.longestTitle / 2))
        #expect(source.tracks[2].language?.utf8.count == Demuxer.longestLanguage)
    }

    @Test(arguments: [("abc", 3, "abc"), ("abü", 3, "ab"), ("🎵", 3, ""), ("", 0, "")])
    func `a cut does not part a letter's bytes`(text: String, count: Int, left: String) {
        #expect(text.cut(to: count) == left)
    }

    // MARK: Which one plays

    @Test(arguments: [
        ("each.mp4", "aac", "alac"), ("each.mkv", "flac", "pcm_s16le"), ("each.ts", "mp2", "ac3"),
        ("lossy.mkv", "libopus", "ac3"),
    ])
    func `each track sounds as it does alone, to the frame`(
        name: String, first: String, second: String
    ) throws {
        let path = Films.make(name, (first, second))
        for (track, stream) in [(1, "0:a:0"), (2, "0:a:1")] {
            let ending = String(name.split(separator: ".")[1])
            let alone = try readAll(
                FFmpegSource(Films.alone(stream, of: path, "alone-\(track)-\(name).\(ending)")))
            let source = try FFmpegSource(path, track: track)
            let linear = try readAll(source)
            #expect(source.track == track)
            #expect(source.format.frameCount == Int64(linear.count / 2))
            #expect(source.format.channelCount == source.tracks[track].channelCount)
            // What is more is silence in front: coders begin some milliseconds apart.
            let silence = linear.count - alone.count
            #expect((0..<2 * 2_048).contains(silence))
            #expect(linear.prefix(silence).allSatisfy { $0 == 0 })
            let matches = isSame(alone, linear, from: silence)
            #expect(matches, "\(track) of \(name)")
            try expectExactSeeks(
                source, linear, at: [90_000, 3, 200_000, linear.count / 2 - 1_000])
        }
    }

    @Test func `without a choice the mark of the container counts`() throws {
        let path = Films.make(
            "described.mkv", ("pcm_s16le", "pcm_s16le"),
            ["-disposition:a:0", "default+visual_impaired", "-disposition:a:1", "0"])
        // FFmpeg weighs both alike and would take the one of more bits a second.
        #expect(try FFmpegSource(path).track == 1)
        #expect(try FFmpegSource(path).format.sampleRate == 44_100)
        let unmarked = Films.make(
            "unmarked.mkv", ("pcm_s16le", "pcm_s16le"),
            ["-disposition:a:0", "0", "-disposition:a:1", "0"])
        #expect(try FFmpegSource(unmarked).track == 2)
    }

    @Test(arguments: [-1, 0, 3, .max, .min])
    func `what is no audio track is refused, and those that are one are named`(track: Int) throws {
        let path = Films.make("refused.mp4", ("aac", "aac"))
        let error = try #require(failure(path, track: track))
        #expect(error.code == .noAudio)
        #expect(error.reason.contains("no audio track \(track)"), "\(error)")
        #expect(error.reason.contains("1, 2"), "\(error)")
    }

    @Test func `a track in an unknown coding is refused, and the others play`() throws {
        var data = try Data(
            contentsOf: URL(fileURLWithPath: Films.make("known.mkv", ("pcm_s16le", "flac"))))
        let name = try #require(data.range(of: Data("A_FLAC".utf8)))
        data.replaceSubrange(name, with: Data("A_QLAC".utf8))
        let path = try Fixtures.write(data, "unknown.mkv")
        let source = try FFmpegSource(path)
        #expect(source.tracks.map(\.isDecodable) == [true, true, false])
        #expect(source.format.sampleRate == 44_100)
        let matches = isSame(Fixtures.floats, try readAll(source))
        #expect(matches)
        let error = try #require(failure(path, track: 2))
        #expect(error.code == .unsupported)
    }

    @Test func `a film without sound has no track to play`() throws {
        let error = try #require(failure(Fixtures.path("video.mp4"), track: 0))
        #expect(error.code == .noAudio && error.reason.contains("holds none"), "\(error)")
    }

    @Test func `what is known of one track is not taken for another's`() throws {
        let memory = SurveyMemory()
        let path = Films.make("remembered.mkv", ("flac", "pcm_s16le"))
        usleep(120_000)
        func open(_ track: Int?) throws -> FFmpegSource {
            var location = try MediaLocation(path)
            location.track = track
            return try FFmpegSource(
                at: location, container: nil, memory: memory, cancellation: MediaCancellation())
        }
        let formats = try [open(1), open(2), open(1), open(2), open(nil)].map(\.format)
        #expect(formats[0].sampleRate == 44_100 && formats[1].sampleRate == 48_000)
        #expect(formats[2] == formats[0] && formats[3] == formats[1] && formats[4] == formats[0])
        #expect(memory.madeCount == 2)
    }
}
