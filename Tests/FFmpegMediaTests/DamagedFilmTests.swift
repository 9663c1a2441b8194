import Foundation
import Testing
import TuttiChance
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

/// Films that are cut off or damaged, and those on a server.
@Suite struct DamagedFilmTests {
    private static let names = ["whole.mp4", "whole.mkv", "whole.ts"]

    /// Two tracks of sound and, where the container takes it, one of text.
    private func film(_ name: String) throws -> String {
        let text = (1...6).map { "\($0)\n00:00:0\($0),000 --> 00:00:0\($0),500\nCue \($0)\n\n" }
        let file = try Fixtures.write(Data(text.joined().utf8), "whole.srt")
        let codec = ["mp4": "mov_text", "mkv": "srt"][name.suffix(3)]
        let path = Films.make("sound-" + name, ("aac", "ac3"), ["-movflags", "+faststart"])
        guard let codec else { return path }
        let whole = Fixtures.path(name)
        if FileManager.default.fileExists(atPath: whole) { return whole }
        Fixtures.run(
            ["-v", "error", "-y", "-i", path, "-i", file, "-map", "0", "-map", "1", "-c", "copy"]
                + ["-c:s", codec, "-movflags", "+faststart", whole])
        return whole
    }

    /// Plays and reads all that can be; what cannot be is refused in words.
    private func use(_ path: String) {
        for track in [1, 2] {
            do throws(MediaError) {
                let source = try FFmpegSource(path, track: track)
                #expect(source.tracks.contains { $0.id == track && $0.kind == .audio })
                let buffer = UnsafeMutableBufferPointer<Float>.allocate(capacity: 40_000)
                defer { buffer.deallocate() }
                var count: Int64 = 0
                while case let got = try source.read(into: buffer), got > 0 { count += Int64(got) }
                #expect(count == source.format.frameCount ?? count)
            } catch {
                #expect(!error.reason.isEmpty && !error.subject.isEmpty)
            }
        }
        do throws(MediaError) {
            let cues = try FFmpegText.read(path, track: 3)
            #expect(cues.allSatisfy { $0.range.isValid && !$0.range.isEmpty })
            #expect(zip(cues, cues.dropFirst()).allSatisfy { $0.range.start <= $1.range.start })
        } catch {
            #expect(!error.reason.isEmpty && !error.subject.isEmpty)
        }
    }

    @Test(arguments: names)
    func `a film that was cut off plays and is read as far as it goes`(name: String) throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: film(name)))
        let whole = try FFmpegSource(film(name), track: 2).format.frameCount ?? 0
        var last: Int64 = 0
        for share in [1, 40, 90] {
            let path = try Fixtures.write(
                data.prefix(data.count * share / 100), "cut-\(share)-\(name)")
            use(path)
            guard let source = try? FFmpegSource(path, track: 2) else { continue }
            let count = source.format.frameCount ?? 0
            #expect(last <= count && count <= whole)
            last = count
        }
        #expect(last > whole / 2)
    }

    @Test(arguments: names, 0..<6 as Range<UInt64>)
    func `no damage is more than an error`(name: String, seed: UInt64) throws {
        var data = try Data(contentsOf: URL(fileURLWithPath: film(name)))
        var generator = SplitMix64(seed: seed)
        // Half of it in the header, where it hurts.
        for index in 0..<60 {
            let range = index % 2 == 0 ? min(6_000, data.count) : data.count
            data[Int(generator.next() % UInt64(range))] = UInt8(
                truncatingIfNeeded: generator.next())
        }
        use(try Fixtures.write(data, "damaged-\(seed)-\(name)"))
    }

    // MARK: Servers

    /// A minute, five or seven seconds again and again; the track with a number of its own last.
    private func long(_ name: String) -> (path: String, track: Int) {
        let path = Fixtures.path(name)
        let isFilm = name.hasSuffix("mp4")
        let first = ["-stream_loop", "12", "-i", Films.second]
        Fixtures.run(
            ["-v", "error", "-y"] + (isFilm ? first : [])
                + ["-stream_loop", "8", "-i", Fixtures.path("s16.wav"), "-map", "0"]
                + (isFilm ? ["-map", "1", "-c:a", "alac", "-movflags", "+faststart"] : [])
                + [path])
        return (path, isFilm ? 1 : 0)
    }

    @Test(arguments: ["long-served.mp4", "long-served.flac"])
    func `a track on a server moves its own kilobytes, not the file`(name: String) throws {
        let (path, track) = long(name)
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let server = FileServer(body)
        let local = try FFmpegSource(path, track: track)
        let remote = try FFmpegSource(server.url("/body.bin"), track: track)
        #expect(remote.format == local.format && remote.tracks == local.tracks)
        let count = try #require(local.format.frameCount)
        var moved = [server.bytesSent]
        for share in [0.7, 0.2, 0.9, 0.0, 0.5] {
            let before = server.bytesSent
            let frame = Int64(share * Double(count))
            try remote.seek(toFrame: frame)
            let frames = try read(remote, 4_800)
            moved.append(server.bytesSent - before)
            try local.seek(toFrame: frame)
            let matches = isSame(frames, try read(local, 4_800))
            #expect(matches)
        }
        #expect(moved[0] < body.count / 2, "opening: \(moved[0]) of \(body.count)")
        #expect(moved[1...].max()! < body.count / 10, "\(moved) of \(body.count)")
    }

    @Test func `a film that must be counted is fetched once, whichever track plays`() throws {
        let path = Films.make("counted.mkv", ("flac", "flac"), [])
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let server = FileServer(body)
        let remote = try FFmpegSource(server.url("/body.mkv"), track: 2)
        let opening = server.bytesSent
        let local = try readAll(FFmpegSource(path, track: 2))
        let matches = isSame(local, try readAll(remote))
        #expect(matches)
        try expectExactSeeks(remote, local, at: [200_000, 10])
        #expect(server.bytesSent == opening && opening < 2 * body.count)
    }
}
