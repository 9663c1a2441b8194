import Foundation
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Several recordings in one file, and what is not sound around them.
@Suite struct JoinedFileTests {
    private func joined(_ names: [String], _ name: String) throws -> FFmpegSource {
        let data = try names.reduce(Data()) { try $0 + Fixtures.data($1) }
        return try FFmpegSource(Fixtures.write(data, name))
    }

    private func make(_ name: String, _ options: [String]) {
        Fixtures.run(
            ["-v", "error", "-y", "-t", "2", "-i", Fixtures.path("s16.wav")] + options
                + [Fixtures.path(name)])
    }

    @Test(arguments: [
        ["cbr.mp3", "vbr.mp3"], ["vbr.mp3", "cbr.mp3", "vbr.mp3"], ["opus.opus", "voice.opus"],
        ["vorbis.ogg", "vorbis.ogg"], ["flac.ogg", "flac.ogg"], ["16.flac", "16.flac"],
        ["16.flac", "16.flac", "16.flac"],
    ])
    func `recordings of one rate that were joined are what each is alone`(
        names: [String]
    ) throws {
        let source = try joined(names, "joined-\(names.count)-" + names[0])
        let expected = try names.flatMap { try readAll(FFmpegSource(Fixtures.path($0))) }
        let linear = try readAll(source)
        #expect(source.format.frameCount == Int64(expected.count / 2))
        #expect(linear.count == expected.count)
        let matches = isSame(linear, expected)
        #expect(matches)
        let join = try readAll(FFmpegSource(Fixtures.path(names[0]))).count / 2
        try expectExactSeeks(
            source, linear, at: [0, join - 1, join, join + 1, join - 1_500, join + 50_000, 9_999])
    }

    /// A sine of 1 kHz is 1 kHz at the rate that the item has, on both sides of each change.
    @Test(arguments: [
        ("mp3", [44_100, 48_000, 22_050]), ("aac", [48_000, 44_100]), ("ogg", [44_100, 48_000]),
        ("flac", [44_100, 96_000]), ("opus.ogg", [48_000, 48_000]), ("mp2", [48_000, 32_000]),
        ("mp3", [8_000, 44_100]), ("flac.ogg", [48_000, 44_100]), ("ac3", [44_100, 48_000]),
        ("eac3", [48_000, 32_000]), ("ts", [44_100, 48_000]),
    ])
    func `a change of the sample rate is heard as no change`(
        kind: String, rates: [Int]
    ) throws {
        let codec = [
            "ogg": ["-c:a", "libvorbis"], "opus.ogg": ["-c:a", "libopus"],
            "flac.ogg": ["-c:a", "flac"],
        ]
        var names: [String] = []
        for (index, rate) in rates.enumerated() {
            let name = "rate-\(index).\(kind)"
            Fixtures.run(
                ["-v", "error", "-y", "-f", "lavfi", "-i", "sine=f=1000:r=\(rate):d=1.5"]
                    + ["-af", "volume=4", "-ac", index == 1 ? "1" : "2"] + (codec[kind] ?? [])
                    + [Fixtures.path(name)])
            names.append(name)
        }
        try expectSteadySine(joined(names, "rates.\(kind)"), names, rates)
    }

    /// Containers of packets take such recordings one after the other.
    @Test(arguments: [
        ("mkv", "mp3", [44_100, 48_000, 22_050]), ("mkv", "ac3", [44_100, 48_000]),
        ("mkv", "flac", [44_100, 96_000]), ("avi", "mp3", [48_000, 32_000]),
        ("mp4", "mp3", [44_100, 24_000]), ("nut", "mp2", [48_000, 24_000]),
        ("flv", "mp3", [44_100, 22_050, 44_100]), ("mka", "eac3", [48_000, 44_100]),
    ])
    func `a change of the sample rate in a container of packets is heard as no change`(
        container: String, kind: String, rates: [Int]
    ) throws {
        let names = makeSines(kind, rates, ["-b:a", "160k"])
        let list = try Fixtures.write(
            Data(names.map { "file '\(Fixtures.path($0))'\n" }.joined().utf8), "parts.txt")
        let path = Fixtures.path("packets-\(kind).\(container)")
        Fixtures.run(
            ["-v", "error", "-y", "-f", "concat", "-safe", "0", "-i", list, "-c", "copy", path])
        try expectSteadySine(FFmpegSource(path), names, rates)
    }

    /// FLV has what the decoder is told between its packets.
    @Test func `a container that tells the decoder something new on its way is followed`() throws {
        let rates = [48_000, 32_000, 48_000]
        let names = makeSines("flv", rates, ["-c:a", "aac"])
        // Its header has 9 bytes, and the length of nothing before it 4.
        let data = try names.dropFirst().reduce(Fixtures.data(names[0])) {
            try $0 + Fixtures.data($1).dropFirst(13)
        }
        let source = try FFmpegSource(Fixtures.write(data, "settings.flv"))
        try expectSteadySine(source, names, rates)
    }

    private func makeSines(_ kind: String, _ rates: [Int], _ options: [String]) -> [String] {
        rates.enumerated().map { index, rate in
            let name = "sine-\(index).\(kind)"
            Fixtures.run(
                ["-v", "error", "-y", "-f", "lavfi", "-i", "sine=f=1000:r=\(rate):d=1.5"]
                    + ["-af", "volume=4", "-ac", "2"] + options + [Fixtures.path(name)])
            return name
        }
    }

    /// - Parameter names: what was joined, a sine of 1 kHz each.
    private func expectSteadySine(
        _ source: FFmpegSource, _ names: [String], _ rates: [Int]
    ) throws {
        // What is in front decides nothing about what may be heard behind it.
        let rate = try #require(rates.max())
        #expect(source.format.sampleRate == rate)
        let linear = try readAll(source)
        #expect(source.format.frameCount == Int64(linear.count / 2))
        var begin = 0
        for name in names {
            let part = try FFmpegSource(Fixtures.path(name))
            let count = try #require(part.format.frameCount)
            let length = Int(
                (Double(count) * Double(rate) / Double(part.format.sampleRate)).rounded())
            // Ten milliseconds in the middle: it crosses zero twice in each millisecond.
            let middle = begin + length / 2
            let window = (middle..<middle + rate / 10).map { linear[2 * $0] }
            let crossings = zip(window, window.dropFirst()).count { ($0 < 0) != ($1 < 0) }
            #expect((198...202).contains(crossings), "\(name)")
            #expect(window.map { abs($0) }.max()! > 0.3, "\(name)")
            begin += length
        }
        // Delay and padding of those in the middle of a stream remain.
        #expect(abs(begin - linear.count / 2) <= names.count * rate / 10)
        let join = linear.count / 2 / rates.count
        try expectExactSeeks(
            source, linear,
            at: [0, join - 10, join, join + 1, join + 700, 2 * join - 3_000, linear.count / 2 - 1])
    }

    @Test func `rates are converted exactly in time and level`() throws {
        for (from, to) in [(44_100, 48_000), (48_000, 44_100), (8_000, 44_100), (96_000, 44_100)] {
            let converter = RateConverter(from: from, to: to)
            let frequency = 1_000.0
            var position = converter.seek(to: 0)
            var output = [Float](repeating: 0, count: 2 * to / 2)
            output.withUnsafeMutableBufferPointer { buffer in
                converter.read(from: 0, into: buffer) { (input) -> Int in
                    for frame in 0..<input.count / 2 {
                        let value = sin(
                            2 * .pi * frequency * Double(position + Int64(frame)) / Double(from))
                        input[2 * frame] = Float(value)
                        input[2 * frame + 1] = Float(-value)
                    }
                    position += Int64(input.count / 2)
                    return input.count / 2
                }
            }
            for frame in to / 10..<to / 2 - 1 {
                let expected = sin(2 * .pi * frequency * Double(frame) / Double(to))
                #expect(abs(Double(output[2 * frame]) - expected) < 3e-5, "\(from) to \(to)")
            }
        }
    }

    // MARK: What is no sound

    private static func apeTag(_ value: Data) -> Data {
        func word(_ number: Int) -> Data {
            Data((0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })
        }
        let item = word(value.count) + word(2) + Data("Cover Art (Front)".utf8) + [0] + value
        func frame(_ flags: Int) -> Data {
            Data("APETAGEX".utf8) + word(2_000) + word(item.count + 32) + word(1) + word(flags)
                + Data(count: 8)
        }
        return frame(Int(UInt32(0xA000_0000))) + item + frame(Int(UInt32(0x8000_0000)))
    }

    private static func identification(_ size: Int) -> Data {
        Data("ID3".utf8) + [3, 0, 0]
            + Data((0..<4).map { UInt8(truncatingIfNeeded: size >> (21 - 7 * $0) & 0x7F) })
            + Data(count: size)
    }

    /// Random bytes, in which every 500th looks like the beginning of a frame.
    private static let noise: Data = {
        var generator = SplitMix64(seed: 5)
        var data = Data((0..<150_000).map { _ in UInt8.random(in: 0...255, using: &generator) })
        for index in stride(from: 100, to: data.count - 4, by: 500) {
            data.replaceSubrange(index..<index + 4, with: [0xFF, 0xFB, 0x90, 0x64])
        }
        return data
    }()

    private static let page = Data(
        String(repeating: "<html><body>404 Not Found</body></html>\n", count: 300).utf8)

    private static let junk: [(String, before: Data, after: Data)] = [
        ("cover", Data(), apeTag(noise)),
        ("ID3v1", Data(), Data("TAG".utf8) + Data(repeating: 0x20, count: 125)),
        ("both", Data(), apeTag(noise) + Data("TAG".utf8) + Data(count: 125)),
        (
            "lyrics", Data(),
            Data("LYRICSBEGIN".utf8) + Data(String(repeating: "la ", count: 9_000).utf8)
                + Data("027000LYRICS200".utf8) + Data("TAG".utf8) + Data(count: 125)
        ),
        ("zeros", Data(), Data(count: 100_000)),
        ("page", Data(), page),
        ("page before", page, Data()),
        ("zeros before", Data(count: 30_000), Data()),
        ("two tags", identification(3_000) + identification(70_000), Data()),
        ("tag, zeros, tag", identification(300) + Data(count: 77) + identification(300), Data()),
        ("noise before and behind", noise.prefix(9_000), noise),
        ("APE before", apeTag(noise), Data()),
    ]

    @Test(arguments: junk.map(\.0), ["cbr.mp3", "bare.mp3", "aac.aac"])
    func `what is no sound is not counted and not played`(junk: String, name: String) throws {
        let (_, before, after) = Self.junk.first { $0.0 == junk }!
        // Tags of its own would come second.
        let plain = Fixtures.path("plain-" + name)
        Fixtures.run(
            ["-v", "error", "-y", "-i", Fixtures.path(name), "-c", "copy", "-map_metadata", "-1"]
                + (name.hasSuffix("mp3") ? ["-id3v2_version", "0"] : [])
                + (name == "bare.mp3" ? ["-write_xing", "0"] : []) + [plain])
        let expected = try readAll(FFmpegSource(plain))
        let data = try before + Fixtures.data("plain-" + name) + after
        let source = try FFmpegSource(Fixtures.write(data, "junk-" + name))
        #expect(source.format.frameCount == Int64(expected.count / 2))
        #expect(source.info.promisedFrameCount == nil)
        let frames = try readAll(source)
        let matches = frames.count == expected.count && isSame(frames, expected)
        #expect(matches)
        try expectExactSeeks(source, frames, at: [0, 100_000, frames.count / 2 - 10])
    }

    @Test func `an advertisement with tags of its own between two halves is no hole`() throws {
        make("first.mp3", ["-b:a", "128k"])
        make("advertisement.mp3", ["-b:a", "64k", "-ar", "22050", "-ac", "1"])
        let source = try joined(["first.mp3", "advertisement.mp3", "first.mp3"], "podcast.mp3")
        #expect(source.format.frameCount == Int64(3 * 88_200))
        let frames = try readAll(source)
        #expect(frames.count == 6 * 88_200)
        for start in stride(from: 1_000, to: 3 * 88_200 - 3_000, by: 1_000) {
            let isHeard = frames[2 * start..<2 * start + 2_000].contains { abs($0) > 0.05 }
            #expect(isHeard, "silence at \(start)")
        }
    }

    @Test func `pages of Ogg tell links from streams beside each other`() throws {
        let link = try Fixtures.data("vorbis.ogg")
        let junk = Data(repeating: 0x4F, count: 1_000)
        let whole = link + junk + link
        func bytes(_ data: Data) -> FrameScan.Bytes {
            { offset, count in Array(data.dropFirst(Int(offset)).prefix(count)) }
        }
        #expect(Recordings.oggLinks(size: Int64(link.count), bytes(link)).count == 1)
        let links = Recordings.oggLinks(size: Int64(whole.count), bytes(whole))
        #expect(links.map(\.lowerBound) == [0, Int64(link.count + 1_000)])
    }

    /// A medium that stops answering, or a wish that was given up: what follows is not looked for
    /// byte by byte.
    @Test(.timeLimit(.minutes(5)))
    func `a search for recordings ends where nothing can be read`() {
        var asked = 0
        func none(_ offset: Int64, _ count: Int) -> [UInt8] {
            asked += 1
            return offset == 0 ? [UInt8](repeating: 0xFF, count: count) : []
        }
        let size = Int64(1) << 40
        #expect(FrameScan.recordings(.mpeg, size: size, bytes: none).isEmpty)
        #expect(Recordings.oggLinks(size: size, none).isEmpty)
        #expect(asked < 100)
    }
}
