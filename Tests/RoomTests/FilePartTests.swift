import Foundation
import Testing
import TuttiFFmpegMedia
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

@testable import TuttiRoom

/// Tracks and chapters that are items of a player without a group.
@Suite(.timeLimit(.minutes(1))) struct FilePartTests {
    private static let opener = MediaOpener { location throws(MediaError) in
        try FFmpegSource(location)
    }

    private func samples(of source: any MediaSource) throws -> [Float] {
        var samples: [Float] = []
        let buffer = UnsafeMutableBufferPointer<Float>.allocate(capacity: 2_000)
        defer { buffer.deallocate() }
        while case let count = try source.read(into: buffer), count > 0 {
            samples += buffer[..<(2 * count)]
        }
        return samples
    }

    private func samples(of item: PlayableFiles.Item) throws -> [Float] {
        let opener = item.part.map { Self.opener.part($0) } ?? Self.opener
        return try samples(of: opener.open(item.location))
    }

    private func convert(_ source: String, _ target: String, _ options: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-nostdin", "-v", "error", "-y", "-i", source] + options + [target]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    private static let sheet = """
        PERFORMER "Ada"
        TITLE "Notes"
        FILE "whatever it was called.wav" WAVE
          TRACK 01 AUDIO
            TITLE "One"
            INDEX 01 00:00:00
          TRACK 02 AUDIO
            TITLE "Two"
            PERFORMER "Bob"
            INDEX 00 00:01:10
            INDEX 01 00:01:37
          TRACK 03 AUDIO
            INDEX 01 00:02:01
        """

    @Test func `the tracks of a sheet are the file, cut where it says`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.writeNoise(seconds: 3, seed: 12, as: "album.wav")
        let sheet = Self.sheet.replacing("whatever it was called", with: "album")
        let cue = try folder.write(Data(sheet.utf8), as: "album.cue")
        let files = PlayableFiles([cue])
        #expect(files.passedOver.isEmpty && files.items.map(\.location) == [path, path, path])
        let parts = try files.items.map { try samples(of: $0) }
        let whole = try samples(of: FFmpegSource(path))
        #expect(parts.flatMap(\.self) == whole)
        // 75 to the second: the first frame of a track at or beside its time.
        let rate = Double(TemporaryFolder.sampleRate)
        #expect(abs(Double(parts[0].count / 2) - rate * (1 + 37.0 / 75)) <= 0.5)
        #expect(abs(Double(parts[1].count / 2) - rate * (39.0 / 75)) <= 0.5)
        let names = try files.items.map { item in
            try Self.opener.part(#require(item.part)).open(item.location).metadata
        }
        #expect(names.map(\.title) == ["One", "Two", "Track 03"])
        #expect(names.map(\.artist) == ["Ada", "Bob", "Ada"])
        #expect(names.allSatisfy { $0.album == "Notes" })
    }

    @Test func `a sheet within a file is about that file`() throws {
        let folder = try TemporaryFolder()
        let source = try folder.writeNoise(seconds: 3, seed: 13, as: "source.wav")
        let path = folder.path("renamed.flac")
        try convert(source, path, ["-metadata", "cuesheet=\(Self.sheet)"])
        let files = PlayableFiles([path])
        #expect(files.items.map(\.title) == ["One", "Two", "Track 03"])
        #expect(files.items.allSatisfy { $0.location == path })
        let parts = try files.items.flatMap { try samples(of: $0) }
        #expect(try parts == samples(of: FFmpegSource(path)))
        // In a folder as well.
        try FileManager.default.removeItem(atPath: source)
        #expect(PlayableFiles([folder.path("")]).items.count == 3)
    }

    @Test func `chapters are items, and leave nothing of the file out`() throws {
        let folder = try TemporaryFolder()
        let source = try folder.writeNoise(seconds: 3, seed: 14, as: "source.wav")
        let chapters = """
            ;FFMETADATA1
            title=A book
            artist=Ada
            [CHAPTER]
            TIMEBASE=1/1000
            START=200
            END=900
            title=Preface
            [CHAPTER]
            TIMEBASE=1/1000
            START=1001
            END=3000
            """
        let list = try folder.write(Data(chapters.utf8), as: "chapters.txt")
        for name in ["book.mka", "book.m4a"] {
            let path = folder.path(name)
            try convert(source, path, ["-i", list, "-map_metadata", "1", "-map_chapters", "1"])
            let items = PlayableFiles([path]).items
            #expect(items.map(\.title) == ["Preface", "Track 2"], "\(name)")
            #expect(items.first?.part?.credits.performer == "Ada")
            #expect(items.first?.part?.credits.album == "A book")
            let parts = try items.map { try samples(of: $0) }
            #expect(try parts.flatMap(\.self) == samples(of: FFmpegSource(path)), "\(name)")
        }
    }

    @Test func `a file with one chapter, and one without, is one item`() throws {
        let folder = try TemporaryFolder()
        let source = try folder.writeNoise(seconds: 1, seed: 15, as: "source.wav")
        #expect(PlayableFiles([source]).items.map { $0.part == nil } == [true])
        let path = folder.path("one.flac")
        let sheet = "FILE \"a\" WAVE\nTRACK 01 AUDIO\nINDEX 01 00:00:00"
        try convert(source, path, ["-metadata", "cuesheet=\(sheet)"])
        #expect(PlayableFiles([path]).items.map { $0.part == nil } == [true])
        #expect(PlayableFiles([folder.path("nowhere.flac")]).items.count == 1)
    }

    @Test(arguments: [
        "", "no sheet", "FILE \"a\" WAVE\nTRACK 01 AUDIO\nINDEX 01 00:00:00",
        "FILE \"a\" WAVE\nTRACK 01 AUDIO\nINDEX 01 00:00:00\nFILE \"b\" WAVE\nTRACK 02 AUDIO\n"
            + "INDEX 01 00:00:00",
    ])
    func `a sheet of nothing, or of several files, parts nothing`(text: String) {
        #expect((CueSheet(within: "/m/a.flac", text)?.entries.count ?? 0) < 2)
    }

    @Test func `a track behind the end of its file says so`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.writeNoise(seconds: 1, seed: 16, as: "short.wav")
        let part = FilePart(
            start: MediaTime(value: 2, timescale: 1), end: nil,
            credits: TrackCredits(title: "Late"))
        let error = #expect(throws: MediaError.self) { try Self.opener.part(part).open(path) }
        #expect(error?.reason.contains("before Late begins") == true)
    }

    @Test(arguments: [1, 11_025, 44_100, 48_000, 768_000])
    func `parts of any file touch, and huge times are none`(rate: Int) {
        let count = Int64(rate) * 100
        let format = MediaFormat(sampleRate: rate, channelCount: 2, frameCount: count)
        let times = [0, 1_501, 3_333, 7_499].map { MediaTime(value: $0, timescale: 75) }
        let parts = times.indices.map { place in
            FilePart(
                start: times[place], end: place + 1 < times.count ? times[place + 1] : nil,
                credits: TrackCredits())
        }
        var end: Int64 = 0
        for part in parts {
            guard let frames = part.frames(of: format) else { continue }
            #expect(frames.lowerBound == end)
            end = frames.upperBound
        }
        #expect(end == count)
        let huge = FilePart(
            start: MediaTime(value: .max, timescale: 1), end: .indefinite, credits: TrackCredits())
        #expect(huge.frames(of: format) == nil)
        #expect(
            FilePart(start: .invalid, end: nil, credits: TrackCredits()).frames(of: format) == nil)
    }
}
