import Foundation
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

/// Item time 0 is one instant for all tracks of a container.
@Suite struct TrackBeginningTests {
    /// Frames that two ticks of a container's clock are: what rounding may cost.
    private func tolerance(_ name: String) -> Int {
        name.hasSuffix("mkv") || name.hasSuffix("wmv") ? 96 : 1
    }

    private func silence(_ frames: [Float]) -> Int {
        (frames.firstIndex { $0 != 0 } ?? frames.count) / 2
    }

    @Test(arguments: [
        ("late.mp4", "alac", []), ("late.mkv", "pcm_s16le", []), ("late.ts", "mp2", []),
        ("late.wmv", "wmav2", ["-ac", "2", "-ar", "44100"]),
        ("late-parts.mp4", "alac", ["-movflags", "+frag_keyframe+empty_moov+delay_moov"]),
    ])
    func `a track that begins later begins with silence`(
        name: String, codec: String, options: [String]
    ) throws {
        let path = Films.make(name, (codec, codec), late: 1, by: 0.2, options)
        let together = Films.make("not-" + name, (codec, codec), options)
        let first = try FFmpegSource(path, track: 1)
        let late = try FFmpegSource(path, track: 2)
        let linear = try readAll(late)
        let alone = try readAll(FFmpegSource(together, track: 2))
        let lead = linear.count / 2 - alone.count / 2
        #expect(abs(lead - late.format.sampleRate / 5) <= tolerance(name), "\(lead)")
        #expect(late.format.frameCount == Int64(linear.count / 2))
        #expect(linear.prefix(2 * lead).allSatisfy { $0 == 0 })
        let matches = isSame(alone, linear, from: 2 * lead)
        #expect(matches)
        try expectExactSeeks(late, linear, at: [0, 9_000, lead - 1, lead, lead + 1, 100_000])
        // The one that begins first is as it was.
        let own = try readAll(first)
        let same = try isSame(readAll(FFmpegSource(together, track: 1)), own)
        #expect(same)
        #expect(silence(own) < 600)
    }

    @Test(arguments: [("main-late.mp4", "alac"), ("main-late.mkv", "pcm_s16le")])
    func `so does the default track, and neither is cut`(name: String, codec: String) throws {
        let path = Films.make(name, (codec, codec), late: 0, by: 0.2)
        let main = try FFmpegSource(path)
        #expect(main.track == 1)
        let linear = try readAll(main)
        let lead = linear.count / 2 - Fixtures.frameCount
        #expect(abs(lead - 8_820) <= tolerance(name))
        let matches = isSame(Fixtures.floats, linear, from: 2 * lead)
        #expect(matches)
        #expect(try FFmpegSource(path, track: 2).format.frameCount == 240_000)
    }

    /// Both are late against the picture: what they leave empty together is left out.
    @Test(arguments: [("both.mp4", "alac"), ("both.mkv", "pcm_s16le")])
    func `silence that all tracks share is left out`(name: String, codec: String) throws {
        let both = Fixtures.path(name)
        let film = Films.make("film-" + name, (codec, codec))
        Fixtures.run(
            ["-v", "error", "-y", "-itsoffset", "0.5", "-i", film, "-i", film, "-map", "1:v"]
                + ["-map", "0:a", "-c", "copy", both])
        for track in [1, 2] {
            let own = try readAll(FFmpegSource(both, track: track))
            let plain = try readAll(FFmpegSource(film, track: track))
            #expect(own.count == plain.count)
            let matches = isSame(plain, own)
            #expect(matches)
        }
    }

    @Test(arguments: [("only-late.mp4", "alac"), ("only-late.mkv", "pcm_s16le")])
    func `the only track begins with its first frame, however late it is`(
        name: String, codec: String
    ) throws {
        let path = Fixtures.path(name)
        Fixtures.run(
            ["-v", "error", "-y", "-f", "lavfi", "-i", "color=c=red:s=32x32:d=7", "-itsoffset"]
                + ["0.3", "-i", Fixtures.path("s16.wav"), "-c:v", "mpeg4", "-c:a", codec, path])
        let matches = isSame(Fixtures.floats, try readAll(FFmpegSource(path)))
        #expect(matches)
        #expect(try FFmpegSource(path).format.frameCount == Int64(Fixtures.frameCount))
    }

    @Test func `coders that begin ahead of the sound are heard together`() throws {
        // A click in both: 1 s from the beginning, at two rates and through two coders.
        var samples = [Int16](repeating: 0, count: 2 * 88_200)
        for index in 2 * 44_100..<2 * 44_150 { samples[index] = 30_000 }
        let click = try Fixtures.write(
            Fixtures.wave(samples, channels: 2, rate: 44_100), "click.wav")
        for (name, codecs) in [
            ("click.mp4", ["aac", "alac"]), ("click.mkv", ["aac", "flac"]),
            ("click.ts", ["aac", "mp2"]),
        ] {
            let path = Fixtures.path(name)
            Fixtures.run(
                ["-v", "error", "-y", "-i", click, "-i", click, "-map", "0", "-map", "1"]
                    + ["-c:a:0", codecs[0], "-c:a:1", codecs[1], "-ar:a:0", "48000", path])
            let times = try [0, 1].map { track in
                let source = try FFmpegSource(path, track: track)
                let frames = try readAll(source)
                let peak = try #require(frames.map { abs($0) }.max())
                let place = try #require(frames.firstIndex { abs($0) > peak / 2 }) / 2
                return Double(place) / Double(source.format.sampleRate)
            }
            // The clock of Matroska ticks in milliseconds.
            #expect(abs(times[0] - times[1]) < 0.0025, "\(name): \(times)")
        }
    }

    /// Whoever has the whole file counts the silence, too; its end is not asked for then.
    @Test(arguments: [1, 2])
    func `a track that is being fetched begins as it does in the whole file`(track: Int) throws {
        let options = ["-movflags", "+faststart"]
        let path = Films.make("fetched.mp4", ("alac", "alac"), late: 1, by: 0.2, options)
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let local = try FFmpegSource(path, track: track)
        let linear = try readAll(local)
        var asked: [Int] = []
        for frameCount in [nil, local.format.frameCount] {
            let parts = Parts(body)
            let file = try IncomingFile(
                url: "http://127.0.0.1:9/a", MediaFingerprint(of: body), server: parts,
                mayAskFirst: true)
            let source = try FFmpegSource(file, track: track, frameCount: frameCount)
            #expect(source.format == local.format && source.tracks == local.tracks)
            asked.append(parts.requests.count)
            let matches = isSame(try read(source, 20_000), linear, count: 40_000)
            #expect(matches)
        }
        #expect(asked[1] < asked[0], "\(asked)")
    }

    /// Each recording is opened by itself; the silence is the item's.
    @Test func `a track of several rates begins with silence once`() throws {
        let paths = try [0, 0.2].map { late in
            let parts = try ["44100", "48000"].map { rate in
                try Data(
                    contentsOf: URL(
                        fileURLWithPath: Films.make(
                            "part-\(rate)-\(late).ts", ("mp2", "ac3"), late: 0, by: late,
                            ["-ar:a:0", rate])))
            }
            return try Fixtures.write(parts[0] + parts[1], "rates-\(late).ts")
        }
        let (plain, late) = try (FFmpegSource(paths[0], track: 1), FFmpegSource(paths[1], track: 1))
        let (linear, together) = try (readAll(late), readAll(plain))
        let lead = (linear.count - together.count) / 2
        #expect(abs(lead - late.format.sampleRate / 5) < 600, "\(lead)")
        #expect(late.format.frameCount == Int64(linear.count / 2))
        try expectExactSeeks(late, linear, at: [0, 5_000, lead, 200_000, 500_000])
    }

    /// One program's clock says nothing of another's.
    @Test func `programs of a transport stream are apart`() throws {
        let path = Films.make(
            "programs.ts", ("mp2", "ac3"), late: 1, by: 0.2,
            ["-program", "title=One:st=0:st=1", "-program", "title=Two:st=2"])
        let together = Films.make("one-program.ts", ("mp2", "ac3"), late: 1, by: 0.2)
        let apart = try #require(try FFmpegSource(path, track: 2).format.frameCount)
        let late = try #require(try FFmpegSource(together, track: 2).format.frameCount)
        #expect(abs(late - apart - 9_600) < 1_200)
    }

    @Test func `a nonsensical beginning is none`() {
        for time in [MediaTime.invalid, .indefinite, MediaTime(value: -5, timescale: 1)] {
            #expect(LeadingSilence(time, sampleRate: 48_000).frameCount == 0)
        }
        var silence = LeadingSilence(MediaTime(value: 1, timescale: 1), sampleRate: 10)
        #expect(silence.take(4) == 4 && silence.take(100) == 6 && silence.take(1) == 0)
        #expect(silence.seek(toFrame: .max) == .max - 10 && silence.take(1) == 0)
        #expect(silence.seek(toFrame: .min) == 0 && silence.take(11) == 10)
        #expect(silence.seek(toFrame: 7) == 0 && silence.take(11) == 3)
    }
}
