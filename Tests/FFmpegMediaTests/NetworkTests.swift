import Foundation
import Playout
import Testing

@testable import FFmpegMedia

@Suite(.timeLimit(.minutes(5))) struct NetworkTests {
    private func data(_ name: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: Fixtures.path(name)))
    }

    @Test(arguments: ["16.flac", "vbr.mp3", "faststart.m4a", "opus.opus", "s16.wav"])
    func `an address sounds like the file behind it`(name: String) throws {
        let server = FileServer(try data(name))
        let local = try FFmpegSource(Fixtures.path(name))
        let remote = try FFmpegSource(server.url())
        #expect(remote.format == local.format)
        for frame in [Int64(200_000), 1_000] {
            try local.seek(toFrame: frame)
            try remote.seek(toFrame: frame)
            let matches = isSame(try read(remote, 20_000), try read(local, 20_000))
            #expect(matches)
        }
    }

    @Test func `an address at which the rate changes plays on`() throws {
        let body = try data("cbr.mp3") + data("low.mp3")
        let local = try FFmpegSource(Fixtures.write(body, "joined-remote.mp3"))
        let server = FileServer(body)
        let remote = try FFmpegSource(server.url())
        #expect(remote.format.sampleRate == local.format.sampleRate)
        let linear = try readAll(remote)
        // Without a look at the bytes the padding of the first and the delay of the second remain.
        #expect(abs(linear.count / 2 - Int(local.format.frameCount!)) < 10_000)
        #expect(linear.suffix(100_000).contains { abs($0) > 0.05 })
        try expectExactSeeks(remote, linear, at: [100_000, 400_000, 0])
    }

    @Test func `a stream without a length plays on but not back`() throws {
        let server = FileServer(
            try data("bare.mp3"), .init(hasRanges: false, hasLength: false, isEndless: true))
        let source = try FFmpegSource(server.url())
        #expect(source.format.frameCount == nil)
        #expect(try read(source, 400_000).count == 800_000)
        try source.seek(toFrame: 500_000)
        #expect(try read(source, 1_000).count == 2_000)
        let failure = #expect(throws: MediaError.self) { try source.seek(toFrame: 0) }
        #expect(failure?.code == .unsupported)
    }

    @Test func `an address that is not there is not found`() throws {
        let server = FileServer(Data())
        let failure = #expect(throws: MediaError.self) {
            _ = try FFmpegSource(server.url("/other.mp3"))
        }
        #expect(failure?.code == .notFound)
    }

    @Test func `a server that nobody runs is a network failure`() throws {
        // Port 9 (discard) is closed on every ordinary machine.
        let failure = #expect(throws: MediaError.self) {
            _ = try FFmpegSource("http://127.0.0.1:9/a.mp3")
        }
        #expect(failure?.code == .network)
    }

    @Test func `a transfer that breaks off is an error, not the end`() throws {
        let server = FileServer(
            try data("s16.wav"), .init(hasRanges: false, breaksAfter: 600_000))
        let source = try FFmpegSource(server.url())
        let failure = #expect(throws: MediaError.self) { _ = try readAll(source) }
        #expect(failure?.code == .network)
        #expect(failure?.reason.contains("broke off") == true, "\(failure?.reason ?? "")")
    }

    @Test func `a host that nobody knows is said to be that`() throws {
        // No name has a part of 64 letters: it is refused at once, and no server is asked.
        let name = String(repeating: "x", count: 64)
        let failure = #expect(throws: MediaError.self) {
            _ = try FFmpegSource("http://\(name).invalid/a.mp3")
        }
        #expect(failure?.code == .network)
        #expect(failure?.reason.contains("host is not found") == true, "\(failure?.reason ?? "")")
    }

    @Test func `another thread ends the wait for a silent server`() throws {
        let server = FileServer(try data("vbr.mp3"), .init(stalls: true))
        let cancellation = MediaCancellation()
        Thread.detachNewThread {
            while server.requestCount == 0 { usleep(1_000) }
            cancellation.cancel()
        }
        let failure = #expect(throws: MediaError.self) {
            _ = try FFmpegSource(server.url(), cancellation: cancellation)
        }
        #expect(failure?.code == .cancelled)
    }

    @Test func `a cancelled source says so on the next read`() throws {
        let source = try FFmpegSource(Fixtures.path("16.flac"))
        source.cancellation.cancel()
        let failure = #expect(throws: MediaError.self) { _ = try readAll(source) }
        #expect(failure?.code == .cancelled)
    }
}
