import Foundation
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiPlayout

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

/// Tracks of a cue sheet.
@Suite(.timeLimit(.minutes(1))) struct CueSheetTests {
    private func sheet(_ text: String, base: String = "/m") -> CueSheet? {
        CueSheet(Array(text.utf8), PlaylistPlace(base: base))
    }

    private static let album = """
        REM GENRE Classical
        PERFORMER "Various"
        TITLE "An album"
        FILE "an album.wav" WAVE
          TRACK 01 AUDIO
            TITLE "Prélude"
            PERFORMER "One"
            INDEX 01 00:00:00
          TRACK 02 AUDIO
            TITLE "Fugue"
            INDEX 00 03:58:70
            INDEX 01 04:00:74
          TRACK 03 AUDIO
            INDEX 01 10:00:00
        """

    @Test func `each track ends where the next begins, its pause included`() throws {
        let entries = try #require(sheet(Self.album)?.entries)
        #expect(entries.map(\.title) == ["One - Prélude", "Fugue", "Track 03"])
        #expect(
            entries.map(\.span) == [
                CueSpan(first: 0, end: 18_074), CueSpan(first: 18_074, end: 45_000),
                CueSpan(first: 45_000, end: nil),
            ])
        #expect(entries.allSatisfy { $0.places.first == "/m/an album.wav" })
        #expect(entries[0].places.contains("/m/an album.flac"), "as which it was packed since")
    }

    @Test func `a file for each track is played whole`() throws {
        let entries = try #require(
            sheet(
                """
                FILE "1.wav" WAVE
                TRACK 01 AUDIO
                INDEX 01 00:00:00
                FILE "2.wav" WAVE
                TRACK 02 AUDIO
                INDEX 01 00:00:00
                TRACK 03 AUDIO
                INDEX 01 00:01:00
                """)?.entries)
        #expect(entries.map { $0.places[0] } == ["/m/1.wav", "/m/2.wav", "/m/2.wav"])
        #expect(entries[0].span == nil)
        #expect(entries[1].span == CueSpan(first: 0, end: 75))
        #expect(entries[2].span == CueSpan(first: 75, end: nil))
    }

    /// As Exact Audio Copy writes it: the pause before a track is at the end of the file before.
    @Test func `a track may begin in the file behind its pause`() throws {
        let entries = try #require(
            sheet(
                """
                FILE "1.wav" WAVE
                TRACK 01 AUDIO
                INDEX 01 00:00:00
                TRACK 02 AUDIO
                TITLE "Two"
                INDEX 00 03:00:00
                FILE "2.wav" WAVE
                INDEX 01 00:00:00
                TRACK 03 AUDIO
                INDEX 00 04:00:00
                FILE "3.wav" WAVE
                INDEX 01 00:00:00
                """)?.entries)
        #expect(entries.map { $0.places[0] } == ["/m/1.wav", "/m/2.wav", "/m/3.wav"])
        #expect(entries.map(\.span) == [nil, nil, nil])
        #expect(entries.map(\.title) == [nil, "Two", nil])
    }

    @Test(arguments: [
        "", "TRACK 01 AUDIO\nINDEX 01 00:00:00", "FILE \"a.wav\" WAVE",
        "FILE \"a.bin\" BINARY\nTRACK 01 MODE1/2352\nINDEX 01 00:00:00",
        "FILE \"a.wav\" WAVE\nTRACK 01 AUDIO\nINDEX 01 00:60:00",
        "FILE \"a.wav\" WAVE\nTRACK 01 AUDIO\nINDEX 01 9999999999999999999:00:00",
        "FILE \"a.wav\" WAVE\nTRACK 01 AUDIO\nINDEX 01 -1:00:00",
        "FILE \"a.wav\" WAVE\nTRACK 01 AUDIO\nINDEX 01",
    ])
    func `what names no track is none`(text: String) { #expect(sheet(text) == nil) }

    @Test func `times that go backwards leave out their track alone`() throws {
        let entries = try #require(
            sheet(
                """
                FILE "a \\"b\\" c.wav" WAVE\r
                TRACK 01 AUDIO\r
                INDEX 01 05:00:00\r
                TRACK 02 AUDIO\r
                INDEX 01 04:00:00\r
                """)?.entries)
        #expect(entries.map(\.span) == [CueSpan(first: 18_000, end: nil)])
    }

    @Test(arguments: [8_000, 11_025, 44_100, 48_000, 88_200, 96_000])
    func `tracks touch at every sample rate`(rate: Int) {
        let count = Int64(rate) * 700
        let first = CueSpan(first: 0, end: 18_074).frames(sampleRate: rate, count: count)
        let second = CueSpan(first: 18_074, end: 45_001).frames(sampleRate: rate, count: count)
        let third = CueSpan(first: 45_001, end: nil).frames(sampleRate: rate, count: count)
        #expect(first?.upperBound == second?.lowerBound)
        #expect(second?.upperBound == third?.lowerBound)
        #expect(third?.upperBound == count)
        #expect(CueSpan(first: 75 * 700, end: nil).frames(sampleRate: rate, count: count) == nil)
    }

    @Test func `a leader finds the parts, and looks into the file once`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.writeNoise(seconds: 10, seed: 91, as: "an album.wav")
        let text = """
            FILE "an album.flac" WAVE
            TRACK 01 AUDIO
            TITLE "One"
            INDEX 01 00:00:00
            TRACK 02 AUDIO
            TITLE "Two"
            INDEX 01 00:04:15
            TRACK 03 AUDIO
            TITLE "Nothing"
            INDEX 01 00:11:00
            """
        let cue = try folder.write(Data(text.utf8), as: "album.cue")
        var list = AssetList([cue])
        var items: [AssetList.Item] = []
        while let step = list.next(MediaCancellation()) {
            if case .item(let item) = step { items.append(item) }
        }
        #expect(items.map(\.location) == [path, path, path])
        let reader = AssetReaderTests.reader([], in: folder)
        let library = reader.library
        let first = try library.describe(items[0], MediaCancellation())
        library.insert(first)
        let second = try library.describe(items[1], MediaCancellation())
        let rate = Int64(TemporaryFolder.sampleRate)
        #expect(first.descriptor.frameCount == rate * 4 + rate / 5)
        #expect(first.descriptor.excerpt?.firstFrame == 0)
        #expect(second.descriptor.excerpt?.firstFrame == first.descriptor.frameCount)
        #expect(second.descriptor.frameCount == rate * 10 - first.descriptor.frameCount)
        #expect(second.descriptor.hash == first.descriptor.hash)
        #expect([first, second].map(\.descriptor.title) == ["One", "Two"])
        let error = #expect(throws: MediaError.self) {
            try library.describe(items[2], MediaCancellation())
        }
        #expect(error?.reason.contains("behind the end") == true)
        #expect(error?.reason.contains("/") == false, "where a leader keeps it means nothing")
    }
}

extension IntegrationTests {
    @Suite struct CueSheets {
        /// What leaves the card is the file from beginning to end, though it is three items.
        @Test(.timeLimit(.minutes(1)))
        func `the tracks of a sheet join without a seam`() async throws {
            try await withGroup { group in
                let path = try group.folder.writeNoise(seconds: 8, seed: 92, as: "album.wav")
                let text = """
                    FILE "album.wav" WAVE
                    TRACK 01 AUDIO
                    INDEX 01 00:00:00
                    TRACK 02 AUDIO
                    INDEX 01 00:02:40
                    TRACK 03 AUDIO
                    INDEX 01 00:05:11
                    """
                let cue = try group.folder.write(Data(text.utf8), as: "album.cue")
                let recording = group.folder.path("heard.wav")
                let leader = LeaderNode(
                    group.configuration("leader", .file(path: recording)), assets: [cue],
                    roomsToWaitFor: 1, loops: false)
                try await leader.run()
                #expect(leader.missedItems == (0, 3))
                let heard = try Self.frames(of: recording)
                let played = try Self.frames(of: path)
                func place(_ first: Int, after start: Double = 0, within: Int) throws -> Double {
                    let expected = Int(start) + first
                    return try #require(
                        Self.place(
                            of: Array(played[first...].prefix(2_000)), in: heard,
                            among: expected - 100...expected + within),
                        "what is played from \(first) on is heard")
                }
                // The clock of the output is measured on, which moves the sound by less than a frame
                // altogether; a seam that lost or repeated one would be a step of one.
                let start = try place(0, within: heard.count)
                let last = played.count - 2_000
                #expect(abs(try place(last, after: start, within: 100) - start - Double(last)) < 1)
                let rate = Double(TemporaryFolder.sampleRate)
                for seam in [2 + 40.0 / 75, 5 + 11.0 / 75].map({ Int($0 * rate) }) {
                    let step =
                        try place(seam, after: start, within: 100)
                        - place(seam - 2_000, after: start, within: 100) - 2_000
                    #expect(abs(step) < 0.25, "at frame \(seam)")
                }
            }
        }

        private static func frames(of path: String) throws -> [Float] {
            let source = try FFmpegSource(path)
            var frames: [Float] = []
            var buffer = [Float](repeating: 0, count: 8_192)
            while true {
                let count = try buffer.withUnsafeMutableBufferPointer {
                    try source.read(into: $0)
                }
                guard count > 0 else { return frames }
                for frame in 0..<count { frames.append(buffer[2 * frame]) }
            }
        }

        /// Where the heard frames are most like a part of the played ones, between two frames too: the
        /// likeness of white noise to itself falls like a sinc.
        private static func place(
            of part: [Float], in heard: [Float], among places: ClosedRange<Int>
        ) -> Double? {
            guard heard.count >= part.count else { return nil }
            let places = places.clamped(to: 0...heard.count - part.count)
            let energy = part.reduce(0) { $0 + $1 * $1 }
            func score(at place: Int, step: Int = 1) -> Float {
                guard place >= 0, place + part.count <= heard.count else { return 0 }
                var score: Float = 0
                for index in stride(from: 0, to: part.count, by: step) {
                    score += part[index] * heard[place + index]
                }
                return score
            }
            var best: (place: Int, score: Float) = (0, 0)
            for place in places {
                // A few points decide: between two frames noise is like itself by three fifths.
                let score = score(at: place, step: 5)
                if score > best.score { best = (place, score) }
            }
            let here = score(at: best.place)
            guard here > energy / 2 else { return nil }
            let (before, behind) = (score(at: best.place - 1), score(at: best.place + 1))
            let other = max(before, behind, 0)
            let part = Double(other / (here + other))
            return Double(best.place) + (behind > before ? part : -part)
        }
    }
}
