import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// MP3s on a server that are played while they come.
@Suite struct EarlyBeginningTests {
    /// Two minutes, as an encoder writes them that says how many.
    private func song(_ name: String, _ options: [String]) throws -> (data: Data, path: String) {
        let path = Fixtures.path("early-\(name).mp3")
        Fixtures.run(
            ["-v", "error", "-y", "-stream_loop", "16", "-i", Fixtures.path("s16.wav")] + options
                + [path])
        return (try Data(contentsOf: URL(fileURLWithPath: path)), path)
    }

    private func open(_ server: FileServer) throws -> FFmpegSource {
        try FFmpegSource(server.url("/body.mp3"), beginsEarly: true)
    }

    /// Looking for the container and beginning, of all of which the server sends no more than asked.
    private static let beginning = 600_000

    @Test(arguments: [
        ("constant", ["-b:a", "128k"]), ("variable", ["-q:a", "4"]),
        ("tagged", ["-b:a", "128k", "-write_id3v1", "1", "-metadata", "title=Evening"]),
        ("low", ["-b:a", "128k", "-ar", "22050"]),
    ])
    func `what says how long it is sounds long before all of it is here, and is the same`(
        name: String, options: [String]
    ) throws {
        let (data, path) = try song(name, options)
        let local = try FFmpegSource(path)
        let linear = try readAll(local)
        let server = FileServer(data)
        let source = try open(server)
        #expect(source.format == local.format && source.metadata == local.metadata)
        let first = try read(source, 44_100)
        #expect(server.bytesSent < Self.beginning, "\(server.bytesSent) of \(data.count)")
        #expect(isSame(first, linear))
        // Read on to the end, and back.
        let rest = try readAll(source)
        #expect(first.count + rest.count == linear.count)
        #expect(isSame(rest, linear, from: first.count))
        let before = server.bytesSent
        try expectExactSeeks(source, linear, at: [linear.count / 3, 0, linear.count / 2 - 5_000])
        #expect(server.bytesSent - before < Self.beginning, "\(server.bytesSent - before)")
    }

    @Test func `the first seek gets what has not come yet, and no more`() throws {
        let (data, path) = try song("sought", ["-b:a", "128k"])
        let linear = try readAll(FFmpegSource(path))
        let server = FileServer(data)
        let source = try open(server)
        _ = try read(source, 30 * 44_100)
        // Of the last request, as long as all before it, the rest is on its way and comes again.
        let onItsWay = 30 * 128_000 / 8
        try expectExactSeeks(source, linear, at: [linear.count / 3, 1_000])
        #expect(
            server.bytesSent < data.count + Self.beginning + onItsWay, "\(server.bytesSent)")
        // Who opens it meanwhile has all of it.
        let before = server.bytesSent
        let other = try open(server)
        try expectExactSeeks(other, linear, at: [linear.count / 4])
        #expect(server.bytesSent - before < Self.beginning, "\(server.bytesSent - before)")
    }

    @Test func `what is not as long as it says has its packets counted`() throws {
        let (data, _) = try song("doubted", ["-b:a", "128k"])
        let doubted = [
            ("twice", data + data), ("cut", data.dropLast(5_000)), ("bare", try bare()),
        ]
        for (name, data) in doubted {
            let local = try FFmpegSource(Fixtures.write(Data(data), "early-\(name).mp3"))
            let server = FileServer(Data(data))
            let source = try open(server)
            #expect(source.format == local.format, "\(name)")
            #expect(server.bytesSent > data.count, "\(name)")
        }
    }

    private func bare() throws -> Data {
        try song("bare", ["-b:a", "128k", "-write_xing", "0"]).data
    }

    @Test func `a server that goes away while it is played is an error where it does`() throws {
        let (data, _) = try song("lost", ["-b:a", "128k"])
        let server = FileServer(data, .init(stopsAt: data.count / 2))
        let source = try open(server)
        var frames = 0
        let failure = #expect(throws: MediaError.self) {
            while case let part = try read(source, 44_100), !part.isEmpty {
                frames += part.count / 2
            }
        }
        #expect(failure?.code == .network)
        let count = Int(try #require(source.format.frameCount))
        #expect(frames > count / 2 - 5 * 44_100 && frames < count / 2 + 44_100)
    }

    @Test func `what a first frame says is believed where the file is as long`() throws {
        let data = [UInt8](try song("said", ["-b:a", "128k"]).data)
        func promised(_ bytes: [UInt8]) -> PromisedLength? {
            PromisedLength(size: Int64(bytes.count)) { offset, count in
                Array(bytes[Int(offset)...].prefix(count))
            }
        }
        let plain = try #require(promised(data))
        #expect(plain.framesPerPacket == 1_152)
        let count = try FFmpegSource(Fixtures.path("early-said.mp3")).format.frameCount
        #expect(plain.end - plain.start == count)
        // The tag that may end a file is not counted; any other byte is one too many.
        #expect(promised(data + Array("TAG".utf8) + [UInt8](repeating: 0, count: 125)) == plain)
        #expect(promised(data + [0]) == nil && promised(Array(data.dropLast())) == nil)
    }
}
