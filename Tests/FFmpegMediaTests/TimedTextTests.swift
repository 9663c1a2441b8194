import Foundation
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

/// Text of containers, with its times and styles.
@Suite struct TimedTextTests {
    private static let subRip = """
        1
        00:00:01,000 --> 00:00:02,500
        Plain and <i>slanted</i>
        second line

        2
        00:00:02,000 --> 00:00:04,000
        {\\an8}<b>bold</b> <font color="#ff8000">orange</font>

        3
        00:00:05,250 --> 00:00:06,000
        Ünïcode 🎵

        """

    private static let script = """
        [Script Info]
        ScriptType: v4.00+

        [V4+ Styles]
        Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, \
        Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, \
        Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
        Style: Default,Arial,20,&H00FFFFFF,&H0,&H0,&H0,0,0,0,0,100,100,0,0,1,1,1,2,10,10,10,1
        Style: Sign,Arial,20,&H000000FF,&H0,&H0,&H0,-1,0,0,0,100,100,0,0,1,1,1,7,10,10,10,1

        [Events]
        Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
        Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,One, with a comma\\Nand {\\i1}two{\\i0}
        Dialogue: 0,0:00:01.50,0:00:03.00,Sign,,0,0,0,,{\\blur2\\pos(1,2)}Shop
        Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,{\\p1}m 0 0 l 100 0 100 100{\\p0}

        """

    /// Sound and one track of text.
    private func film(
        _ name: String, _ text: String, _ ending: String, _ codec: String, _ options: [String] = []
    ) throws -> String {
        let file = try Fixtures.write(Data(text.utf8), "\(name).\(ending)")
        let path = Fixtures.path(name)
        if FileManager.default.fileExists(atPath: path) { return path }
        let sound = name.hasSuffix("mp4") ? "alac" : "flac"
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path("s16.wav"), "-i", file, "-map", "0:a"]
                + ["-c:a", sound, "-map", "1:s", "-c:s", codec, "-metadata:s:s:0", "language=fra"]
                + ["-disposition:s:0", "forced"] + options + [path])
        return path
    }

    private func seconds(_ cues: [TimedText]) -> [[Double]] {
        cues.map { [$0.range.start.seconds, $0.range.end.seconds] }
    }

    private func failure(
        _ path: String, _ track: Int, _ limits: TimedTextList.Limits = .usual
    ) -> MediaError? {
        do throws(MediaError) {
            _ = try FFmpegText.read(path, track: track, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    // MARK: What is read

    @Test(arguments: [("sub.mkv", "srt", "subrip"), ("web.mkv", "webvtt", "webvtt")])
    func `text of Matroska has its times, styles and places`(
        name: String, encoder: String, codec: String
    ) throws {
        let path = try film(name, Self.subRip, "srt", encoder)
        let track = try #require(try FFmpegSource(path).tracks.last)
        #expect(track.kind == .text && track.codec == codec && track.language == "fra")
        #expect(track.isDecodable && track.characteristics.contains(.containsOnlyForcedSubtitles))
        let cues = try FFmpegText.read(path, track: track.id)
        #expect(seconds(cues) == [[1, 2.5], [2, 4], [5.25, 6]])
        #expect(cues[0].string == "Plain and slanted\nsecond line")
        #expect(cues[0].runs.first { $0.style.isItalic }?.text == "slanted")
        #expect(cues[1].runs.first { $0.style.isBold }?.text == "bold")
        #expect(cues[2].string == "Ünïcode 🎵" && cues[2].place == TimedText.Place())
        guard codec == "subrip" else { return }
        #expect(cues[1].runs.last?.style.color == 0xFF8000 && cues[1].runs.last?.text == "orange")
        #expect(cues[1].place == TimedText.Place(horizontal: .center, vertical: .top))
    }

    @Test func `text of MP4 has its times and styles`() throws {
        // An MP4 cannot keep two at once: the first ends where the second begins.
        let path = try film("text.mp4", Self.subRip, "srt", "mov_text")
        let track = try #require(try FFmpegSource(path).tracks.last)
        #expect(track.kind == .text && track.codec == "mov_text" && track.language == "fra")
        let cues = try FFmpegText.read(path, track: track.id)
        #expect(seconds(cues).map(\.[0]) == [1, 2, 5.25])
        #expect(cues.last?.range.end.seconds == 6)
        #expect(cues[0].string == "Plain and slanted\nsecond line")
        #expect(cues[0].runs.first { $0.style.isItalic }?.text == "slanted")
        #expect(cues[1].runs.map(\.style.isBold) == [true, false])
        #expect(cues[1].string == "bold orange")
    }

    @Test func `a script has its named styles, and no drawings`() throws {
        let path = try film("script.mkv", Self.script, "ass", "copy")
        let cues = try FFmpegText.read(path, track: 1)
        #expect(seconds(cues) == [[1, 2], [1.5, 3]])
        #expect(cues[0].string == "One, with a comma\nand two")
        #expect(cues[0].runs.last?.style.isItalic == true && cues[0].runs.first?.style.color == nil)
        #expect(cues[1].string == "Shop" && cues[1].runs[0].style.isBold)
        #expect(cues[1].runs[0].style.color == 0xFF0000)
        #expect(cues[1].place == TimedText.Place(horizontal: .left, vertical: .top))
    }

    @Test(arguments: [("alone.mkv", "srt"), ("alone.mp4", "mov_text")])
    func `a file of nothing but text is read`(name: String, codec: String) throws {
        let file = try Fixtures.write(Data(Self.subRip.utf8), "alone.srt")
        let path = Fixtures.path(name)
        Fixtures.run(["-v", "error", "-y", "-i", file, "-c:s", codec, path])
        #expect(try seconds(FFmpegText.read(path, track: 0)).map(\.[0]) == [1, 2, 5.25])
        #expect(throws: MediaError.self) { try FFmpegSource(path) }
    }

    /// The sound is half a second late, and the item begins with it.
    @Test(arguments: [
        ("shifted.mkv", "srt", "flac"), ("shifted.mp4", "mov_text", "alac"),
        ("shifted-vorbis.mkv", "srt", "libvorbis"),
    ])
    func `text is timed as the item is that is heard`(
        name: String, codec: String, sound: String
    ) throws {
        let text = try Fixtures.write(Data(Self.subRip.utf8), "shifted.srt")
        let path = Fixtures.path(name)
        Fixtures.run(
            ["-v", "error", "-y", "-f", "lavfi", "-i", "color=c=red:s=32x32:d=7"]
                + ["-itsoffset", "0.5", "-i", Fixtures.path("s16.wav"), "-i", text, "-map", "0:v"]
                + ["-map", "1:a", "-map", "2:s", "-c:v", "mpeg4", "-c:a", sound, "-c:s", codec]
                + [path])
        let starts = try seconds(FFmpegText.read(path, track: 2)).map(\.[0])
        #expect(zip(starts, [0.5, 1.5, 4.75]).allSatisfy { abs($0 - $1) < 0.002 }, "\(starts)")
    }

    @Test(arguments: ["tooth.mkv", "tooth.mp4"])
    func `text over http is what it is in the file`(name: String) throws {
        let path = try film(
            name, Self.subRip, "srt", name.hasSuffix("mp4") ? "mov_text" : "srt",
            ["-movflags", "+faststart"])
        let server = FileServer(try Data(contentsOf: URL(fileURLWithPath: path)))
        #expect(
            try FFmpegText.read(server.url("/body.bin"), track: 1)
                == FFmpegText.read(path, track: 1))
    }

    // MARK: What is refused

    @Test(arguments: [-1, 0, 2, .max])
    func `what is no text track is refused, and those that are one are named`(track: Int) throws {
        let path = try film("refused.mkv", Self.subRip, "srt", "srt")
        let error = try #require(failure(path, track))
        #expect(error.code == .unsupported && error.reason.contains("no text track \(track)"))
        #expect(error.reason.contains("these: 1"), "\(error)")
    }

    @Test func `pictures of text are refused by name`() throws {
        let path = Fixtures.path("pictures.mkv")
        let text = try film("letters.mkv", Self.subRip, "srt", "srt")
        var data = try Data(contentsOf: URL(fileURLWithPath: text))
        let name = try #require(data.range(of: Data("S_TEXT/UTF8".utf8)))
        data.replaceSubrange(name, with: Data("S_HDMV/PGS\0".utf8))
        try data.write(to: URL(fileURLWithPath: path))
        #expect(try FFmpegSource(path).tracks.last?.isDecodable == false)
        let error = try #require(failure(path, 1))
        #expect(error.code == .unsupported && error.reason.contains("pictures"), "\(error)")
    }

    @Test func `more than a track may hold is refused`() throws {
        let path = try film("many.mkv", Self.subRip, "srt", "srt")
        var limits = TimedTextList.Limits.usual
        limits.cues = 3
        #expect(failure(path, 1, limits) == nil)
        limits.cues = 2
        #expect(failure(path, 1, limits)?.reason.contains("more than 2 cues") == true)
        for change: (inout TimedTextList.Limits) -> Void in [
            { $0.cueBytes = 40 }, { $0.bytes = 100 }, { $0.packetBytes = 20 },
        ] {
            limits = .usual
            change(&limits)
            #expect(failure(path, 1, limits)?.code == .tooLarge)
        }
    }

    @Test func `a cancelled reading says so`() throws {
        let path = try film("stopped.mkv", Self.subRip, "srt", "srt")
        let cancellation = MediaCancellation()
        cancellation.cancel()
        let error = #expect(throws: MediaError.self) {
            try FFmpegText.read(path, track: 1, cancellation: cancellation)
        }
        #expect(error?.code == .cancelled)
    }

    // MARK: Order and ends

    private func text(_ letters: String) -> DialogueText {
        DialogueText(letters, style: "Default", in: DialogueStyles(header: ""))
    }

    private func time(_ seconds: Int64) -> MediaTime { MediaTime(value: seconds, timescale: 1) }

    @Test func `cues are in order, and what has no end ends with the next`() throws {
        var list = TimedTextList(.usual)
        try list.add(text("late"), from: time(20), to: nil)
        try list.add(text("first"), from: time(1), to: nil)
        try list.add(text("beside it"), from: time(1), to: time(9))
        try list.add(text("next"), from: time(3), to: nil)
        let cues = list.inOrder(from: .zero)
        #expect(cues.map(\.string) == ["first", "beside it", "next", "late"])
        let usual = TimedTextList.usualDuration.seconds
        #expect(cues.map(\.range.end.seconds) == [3, 9, 3 + usual, 20 + usual])
    }

    @Test func `what is over before the item begins is left out, what has begun is cut`() throws {
        var list = TimedTextList(.usual)
        try list.add(text("over"), from: time(1), to: time(2))
        try list.add(text("begun"), from: time(1), to: time(4))
        try list.add(text("backwards"), from: time(9), to: time(8))
        try list.add(text("never"), from: .invalid, to: nil)
        try list.add(text(" \n\u{200B}"), from: time(3), to: time(4))
        let far = MediaTime(value: .max, timescale: 1)
        try list.add(text("far"), from: far, to: far + far)
        let cues = list.inOrder(from: time(2))
        #expect(cues.map(\.string) == ["begun"])
        #expect(seconds(cues) == [[0, 2]])
    }
}
