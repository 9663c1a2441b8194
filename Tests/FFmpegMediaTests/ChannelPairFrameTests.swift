import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// The frames of a pair are those of the whole, wherever it is sought and however the item is put together.
@Suite struct ChannelPairFrameTests {
    private static let layout = ChannelLayout.usual(6)

    private func pairs(_ path: String, track: Int? = nil) throws -> [FFmpegSource] {
        try (0..<3).map {
            try FFmpegSource(path, track: track, channels: ChannelPair(of: Self.layout, $0))
        }
    }

    private func make(_ name: String, _ options: [String]) -> String {
        let path = Fixtures.path(name)
        Fixtures.run(["-v", "error", "-y", "-i", Films.second] + options + [path])
        return path
    }

    private func isSilent(_ frames: [Float]) -> Bool { frames.allSatisfy { $0 == 0 } }

    @Test(arguments: [
        ("flac", []), ("m4a", []), ("ac3", []), ("opus", []), ("mkv", ["-c:a", "eac3"]),
        ("dts", ["-strict", "-2"]),
    ])
    func `all pairs have the frames of the whole and are found alike`(
        kind: String, options: [String]
    ) throws {
        let path = make("pair-whole.\(kind)", ["-t", "2"] + options)
        let whole = try FFmpegSource(path)
        #expect(whole.format.channelCount == 6)
        let count = try readAll(whole).count / 2
        for source in try pairs(path) {
            #expect(source.format == whole.format && source.info == whole.info)
            let linear = try readAll(source)
            #expect(linear.count == 2 * count && !isSilent(linear))
            try expectExactSeeks(source, linear, at: [0, 1, 9_000, 60_001, count - 700, count])
        }
    }

    @Test func `recordings in a chain keep their own channels`() throws {
        let names = ["pair-chain-6.opus", "pair-chain-2.opus", "pair-chain-6.opus"]
        _ = make(names[0], ["-t", "0.8"])
        _ = make(names[1], ["-t", "0.8", "-ac", "2"])
        let data = try names.reduce(Data()) { try $0 + Fixtures.data($1) }
        let chain = try Fixtures.write(data, "pair-chain.opus")
        let parts = try names.map { try pairs(Fixtures.path($0)).map(readAll) }
        for (index, source) in try pairs(chain).enumerated() {
            let expected = parts.flatMap { $0[index] }
            let linear = try readAll(source)
            let matches = isSame(linear, expected) && linear.count == expected.count
            #expect(matches, "pair \(index)")
            #expect(isSilent(parts[1][index]) == (index > 0))
            let join = parts[0][index].count / 2
            try expectExactSeeks(source, linear, at: [0, join - 1, join, 2 * join + 5, 9_999])
        }
    }

    @Test(arguments: ["ac3", "flac"])
    func `recordings of another rate keep their channels`(kind: String) throws {
        let data = try ["48000", "44100"].reduce(Data()) { data, rate in
            let name = "pair-rate-\(rate).\(kind)"
            _ = make(name, ["-t", "0.8", "-ar", rate])
            return try data + Fixtures.data(name)
        }
        let path = try Fixtures.write(data, "pair-rates.\(kind)")
        let whole = try FFmpegSource(path)
        for source in try pairs(path) {
            #expect(source.format == whole.format && source.format.sampleRate == 48_000)
            let linear = try readAll(source)
            #expect(source.format.frameCount == Int64(linear.count / 2))
            #expect(linear.count > 2 * 75_000)
            for begin in [20_000, 60_000] {
                let window = linear[2 * begin..<2 * (begin + 5_000)]
                for side in [0, 1] {
                    #expect(window.indices.contains { $0 % 2 == side && window[$0] != 0 })
                }
            }
            try expectExactSeeks(source, linear, at: [0, 38_000, 38_400, 39_000, 70_000])
        }
    }

    @Test(arguments: [("pair-late.mp4", "alac"), ("pair-late.mkv", "pcm_s16le")])
    func `silence before a track is before each of its pairs`(name: String, codec: String) throws {
        let path = Films.make(name, (codec, codec), late: 1, by: 0.2)
        let together = Films.make("not-" + name, (codec, codec))
        let alone = try pairs(together, track: 2).map(readAll)
        let whole = try FFmpegSource(path, track: 2)
        for (index, source) in try pairs(path, track: 2).enumerated() {
            #expect(source.format == whole.format && source.track == 2)
            let linear = try readAll(source)
            let lead = linear.count - alone[index].count
            #expect(lead > 0 && isSilent(Array(linear.prefix(lead))))
            let matches = isSame(alone[index], linear, from: lead)
            #expect(matches && !isSilent(alone[index]))
            try expectExactSeeks(source, linear, at: [0, lead / 2 - 1, lead / 2, 50_000])
        }
    }

    @Test func `a file is surveyed once for all of its pairs`() throws {
        let memory = SurveyMemory()
        let path = make("pair-surveyed.mkv", ["-c:a", "ac3"])
        // Longer than two ticks of the clock of file times.
        usleep(120_000)
        var counts: [Int] = []
        for index in [nil, 0, 1, 2] {
            var location = try MediaLocation(path)
            location.channels = index.map { ChannelPair(of: Self.layout, $0) }
            _ = try FFmpegSource(
                at: location, container: nil, memory: memory, cancellation: MediaCancellation())
            counts.append(memory.madeCount)
        }
        #expect(counts == [1, 1, 1, 1])
    }

    @Test func `a pair of a file that is being fetched is that of the whole file`() throws {
        let path = make("pair-fetched.flac", ["-t", "2"])
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        for (index, local) in try pairs(path).enumerated() {
            let file = try IncomingFile(
                url: "http://127.0.0.1:9/a", MediaFingerprint(of: body), server: Parts(body),
                mayAskFirst: true)
            let source = try FFmpegSource(file, channels: ChannelPair(of: Self.layout, index))
            #expect(source.format == local.format)
            let matches = isSame(try read(source, 20_000), try readAll(local), count: 40_000)
            #expect(matches)
        }
    }
}
