import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// What is opened again is not read again.
@Suite struct SurveyMemoryTests {
    private func open(
        _ path: String, _ memory: SurveyMemory
    ) throws -> FFmpegSource {
        try FFmpegSource(
            at: MediaLocation(path), container: nil, memory: memory,
            cancellation: MediaCancellation())
    }

    /// Longer than two ticks of the clock of file times.
    private func settle() { usleep(120_000) }

    /// Bytes that this thread has read from files until now.
    private func bytesRead() throws -> Int {
        let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("rchar") })
        return try #require(line.split(separator: " ").last.flatMap { Int($0) })
    }

    private func joined(_ names: [String]) throws -> String {
        try Fixtures.write(
            names.reduce(Data()) { try $0 + Fixtures.data($1) }, "known-\(names.count)-\(names[0])")
    }

    @Test(arguments: [
        ["bare.mp3"], ["vbr.mp3"], ["opus.opus"], ["aac.mkv"], ["16.flac"], ["wma.wma"],
        ["aac.m4a"], ["cbr.mp3", "vbr.mp3"], ["vorbis.ogg", "vorbis.ogg"], ["cbr.mp3", "low.mp3"],
        ["16.flac", "16.flac"], ["aac.ts"],
    ])
    func `a file that is opened again is not surveyed again, and sounds the same`(
        names: [String]
    ) throws {
        let memory = SurveyMemory()
        let path = try joined(names)
        settle()
        let first = try open(path, memory)
        let count = memory.madeCount
        #expect(count > 0)
        let again = try open(path, memory)
        #expect(memory.madeCount == count)
        #expect(again.format == first.format)
        #expect(again.info.promisedFrameCount == first.info.promisedFrameCount)
        let linear = try readAll(first)
        let matches = isSame(try readAll(again), linear, count: linear.count)
        #expect(matches)
        try expectExactSeeks(again, linear, at: [200_000, 0, linear.count / 2 - 5])
    }

    @Test func `the second opening of a long file reads next to nothing of it`() throws {
        let memory = SurveyMemory()
        let path = try joined(Array(repeating: "bare.mp3", count: 60))
        settle()
        let begin = try bytesRead()
        let source = try open(path, memory)
        let first = try bytesRead() - begin
        let again = try open(path, memory)
        try again.seek(toFrame: source.format.frameCount! / 2)
        _ = try read(again, 1_000)
        let second = try bytesRead() - begin - first
        #expect(first > 6_000_000)
        #expect(second < first / 10, "\(second) of \(first)")
    }

    @Test func `a file that was written to is surveyed anew`() throws {
        let memory = SurveyMemory()
        let path = try joined(["vbr.mp3"])
        settle()
        _ = try open(path, memory)
        let count = memory.madeCount
        let longer = try Fixtures.data("vbr.mp3") + Fixtures.data("vbr.mp3")
        try longer.write(to: URL(fileURLWithPath: path))
        settle()
        let anew = try open(path, memory)
        #expect(memory.madeCount > count)
        #expect(anew.format.frameCount == 2 * Int64(Fixtures.frameCount))
    }

    @Test func `what was written a moment ago is not remembered`() throws {
        let memory = SurveyMemory()
        let path = Fixtures.path("fresh.mp3")
        // The survey of seven seconds takes less than a tick, as a rule.
        try Fixtures.data("low.mp3").write(to: URL(fileURLWithPath: path))
        let key = try SurveyMemory.Key(MediaLocation(path), container: "mp3")
        #expect(key == nil)
        settle()
        #expect(try SurveyMemory.Key(MediaLocation(path), container: "mp3") != nil)
        _ = memory
    }

    @Test func `what was not used for longest is forgotten`() throws {
        let memory = SurveyMemory()
        let anchor = PacketMap.Anchor(position: 0, timestamp: 0, size: 0, end: 0)
        func survey(_ anchors: Int) -> SurveyMemory.Survey {
            let numbering = PacketMap.Numbering.anchors(
                Array(repeating: anchor, count: anchors), byBytes: true)
            return SurveyMemory.Survey(
                map: PacketMap(numbering: numbering, first: anchor, start: 0, end: 1, preroll: 0),
                framesPerPacket: 1, sampleRate: 1, channelCount: 1)
        }
        let path = try joined(["16.flac"])
        settle()
        func key(_ part: Int64) throws -> SurveyMemory.Key {
            var location = try MediaLocation(path)
            location.part = part..<part + 1
            return try #require(SurveyMemory.Key(location, container: "flac"))
        }
        for part in Int64(0)..<4 {
            memory.keep(survey(SurveyMemory.anchorsMax / 4), for: try key(part))
        }
        #expect(memory.survey(try key(0)) != nil)
        memory.keep(survey(1), for: try key(4))
        #expect(memory.survey(try key(0)) != nil)
        #expect(memory.survey(try key(1)) == nil)
        memory.keep(survey(SurveyMemory.anchorsMax + 1), for: try key(5))
        #expect(memory.survey(try key(5)) == nil)
        for part in 100..<100 + Int64(SurveyMemory.entriesMax) {
            memory.keep(survey(0), for: try key(part))
        }
        #expect(memory.survey(try key(0)) == nil)
        #expect(memory.survey(try key(100)) != nil)
    }

    @Test func `a file that is being fetched is surveyed once`() throws {
        let body = try Fixtures.data("16.flac")
        let memory = SurveyMemory()
        var asked: [Int] = []
        for _ in 0..<2 {
            let parts = Parts(body)
            let file = try IncomingFile(
                url: "http://127.0.0.1:9/a", MediaFingerprint(of: body), server: parts,
                mayAskFirst: true)
            let source = try FFmpegSource(
                at: MediaLocation(file, frameCount: nil), container: nil, memory: memory,
                cancellation: MediaCancellation())
            #expect(source.format.frameCount == Int64(Fixtures.frameCount))
            asked.append(parts.requests.count)
        }
        #expect(memory.madeCount == 1)
        // The last second was not asked for again.
        #expect(asked[1] < asked[0], "\(asked)")
    }
}
