import Foundation
import Synchronization
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

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

    @Test(arguments: [
        ["cbr.mp3", "low.mp3"], ["vbr.mp3", "cbr.mp3"], ["opus.opus", "voice.opus"],
        ["vorbis.ogg", "vorbis.ogg"], ["16.flac", "16.flac"], ["aac.ts", "aac.ts"],
    ])
    func `an address of several recordings sounds like the file behind it`(
        names: [String]
    ) throws {
        let body = try names.reduce(Data()) { try $0 + data($1) }
        try expectSame(body, "served-" + names.joined())
    }

    @Test(arguments: ["cbr.mp3", "bare.mp3", "aac.aac", "ac3.ac3"], [true, false])
    func `an address with bytes that are no sound sounds like the file behind it`(
        name: String, hasRanges: Bool
    ) throws {
        let line = "<html><body>404 Not Found</body></html>\n"
        let page = Data(String(repeating: line, count: 300).utf8)
        let body = try page + data(name) + Data(count: 90_000) + data(name) + page
        try expectSame(body, "served-junk-" + name, .init(hasRanges: hasRanges))
    }

    @Test(
        arguments: ["16.flac", "cbr.mp3", "opus.opus", "s16.wav", "faststart.m4a"], [true, false])
    func `what comes in chunks is played to where it breaks off, and that is an error`(
        name: String, isBetween: Bool
    ) throws {
        let body = try data(name)
        let whole = FileServer(body, .init(hasRanges: false, hasLength: false, isChunked: true))
        let count = try readAll(FFmpegSource(whole.url())).count
        let server = FileServer(
            body,
            .init(
                hasRanges: false, hasLength: false, breaksAfter: body.count / 2, isChunked: true,
                breaksBetweenChunks: isBetween))
        let source = try FFmpegSource(server.url())
        var heard = 0
        let failure = #expect(throws: MediaError.self) {
            while case let part = try read(source, 4_096), !part.isEmpty { heard += part.count }
        }
        #expect(failure?.code == .network && failure?.reason.contains("broke off") == true)
        // Their sound is spread evenly, and a block of what is heard is less than a tenth.
        #expect(Double(heard) > 0.3 * Double(count) && Double(heard) < 0.7 * Double(count))
    }

    /// As a server gives what was cut off before it got there: all that it has, and says so.
    @Test(
        arguments: ["16.flac", "s16.wav", "faststart.m4a"],
        [
            FileServer.Behaviour(hasRanges: false),
            FileServer.Behaviour(hasRanges: false, hasLength: false),
            FileServer.Behaviour(hasRanges: false, hasLength: false, isChunked: true),
        ])
    func `what is sent once and ends before its header says is an error there`(
        name: String, behaviour: FileServer.Behaviour
    ) throws {
        let body = try data(name)
        let whole = try FFmpegSource(FileServer(body, behaviour).url())
        let all = try readAll(whole)
        let stated = try #require(whole.metadata.statedDuration)
        let length = Double(all.count / 2) / Double(whole.format.sampleRate)
        #expect(abs(stated.seconds - length) < 0.1, "\(stated.seconds) of \(length)")
        let source = try FFmpegSource(FileServer(body.prefix(body.count / 2), behaviour).url())
        var heard: [Float] = []
        let failure = #expect(throws: MediaError.self) {
            while case let part = try read(source, 4_096), !part.isEmpty { heard += part }
        }
        #expect(failure?.code == .damaged && failure?.reason.contains("cut off") == true)
        // All that could be decoded before is heard; the last packet may be torn.
        #expect(heard.count > all.count / 4)
        let sure = max(0, heard.count - 16_384)
        #expect(heard[..<sure] == all[..<sure])
    }

    @Test func `a body may end with its connection where nothing else says where it ends`() throws {
        let server = FileServer(try data("16.flac"), .init(hasRanges: false, hasLength: false))
        let matches = isSame(
            try readAll(FFmpegSource(server.url())),
            try readAll(FFmpegSource(Fixtures.path("16.flac"))))
        #expect(matches)
    }

    @Test func `what comes in chunks with its table of contents last is loaded whole`() throws {
        let behaviour = FileServer.Behaviour(
            hasRanges: false, hasLength: false, isChunked: true)
        try expectSame(data("aac.m4a"), "chunked-aac.m4a", behaviour)
        // Which one begins with, and which has it last.
        for (name, isLast) in [("aac.m4a", true), ("faststart.m4a", false), ("16.flac", false)] {
            let bytes = try [UInt8](data(name))
            #expect(MP4Edits.hasTableLast(bytes) == isLast)
            for count in 0..<60 { _ = MP4Edits.hasTableLast(Array(bytes.prefix(count))) }
        }
    }

    @Test func `a server without parts gives an M4A with its table of contents last`() throws {
        try expectSame(data("aac.m4a"), "plain-aac.m4a", .init(hasRanges: false))
    }

    /// Of what it inflates libavformat says the compressed length.
    @Test func `what is sent compressed and has to be counted is refused by name`() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/gzip")
        process.arguments = ["--stdout", Fixtures.path("cbr.mp3")]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let packed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let server = FileServer(
            packed, .init(hasRanges: false, extraHeader: "Content-Encoding: gzip\r\n"))
        let failure = #expect(throws: MediaError.self) { try FFmpegSource(server.url()) }
        #expect(failure?.reason.contains("compressed (gzip)") == true, "\(failure as Any)")
    }

    @Test func `how much has come of what is loaded whole can be asked`() throws {
        let body = try data("vorbis.ogg")
        let server = FileServer(body, .init(pauseMicroseconds: 5_000))
        let loading = Mutex<[MediaLoading.Progress]>([])
        let isOpen = Atomic(false)
        let url = server.url()
        let watcher = Thread {
            while !isOpen.load(ordering: .relaxed) {
                if let now = MediaLoading.progress(of: url) { loading.withLock { $0.append(now) } }
                usleep(500)
            }
        }
        watcher.start()
        _ = try FFmpegSource(url)
        isOpen.store(true, ordering: .relaxed)
        let seen = loading.withLock { $0 }
        #expect(seen.contains { $0.held > 0 && $0.held < body.count })
        #expect(seen.allSatisfy { $0.whole == Int64(body.count) })
        #expect(MediaLoading.progress(of: url) == nil)
    }

    private func expectSame(
        _ body: Data, _ name: String, _ behaviour: FileServer.Behaviour = .init()
    ) throws {
        let local = try FFmpegSource(Fixtures.write(body, name))
        let server = FileServer(body, behaviour)
        let remote = try FFmpegSource(server.url())
        #expect(remote.format == local.format)
        let linear = try readAll(local)
        let matches = isSame(try readAll(remote), linear, count: linear.count)
        #expect(matches)
        try expectExactSeeks(
            remote, linear, at: [linear.count / 3, linear.count / 2 - 9_000, 0, 100_000])
    }

    // MARK: What is moved

    /// Three minutes: seven seconds again and again.
    private func long(_ name: String) throws -> Data {
        let times = 30
        let ending = String(name.split(separator: ".").last!)
        guard ending != "mp3" else {
            return try (0..<times).reduce(into: Data()) { data, _ in data += try self.data(name) }
        }
        let format = ["opus": "ogg", "m4a": "mp4"][ending] ?? ending
        let manner = ending == "flac" ? ["-f", format] : ["-c", "copy", "-f", format]
        let path = Fixtures.path("long-\(name)")
        Fixtures.run(
            ["-v", "error", "-y", "-stream_loop", "\(times)", "-i", Fixtures.path(name)] + manner
                + [path])
        return try Data(contentsOf: URL(fileURLWithPath: path))
    }

    @Test(arguments: [
        "bare.mp3", "bare-vbr.mp3", "opus.opus", "vorbis.ogg", "aac.m4a", "faststart.m4a",
        "16.flac", "s16.wav",
    ])
    func `a seek in an address moves kilobytes, not the file`(name: String) throws {
        let body = try long(name)
        let server = FileServer(body)
        let source = try FFmpegSource(server.url("/body.\(name)"))
        let opening = server.bytesSent
        // Looking for the container, then all of it once where packets are counted.
        #expect(opening < body.count + 1_500_000)
        let count = try #require(source.format.frameCount)
        var moved: [Int] = []
        for share in [0.7, 0.2, 0.9, 0.5, 0.0, 0.35] {
            let before = server.bytesSent
            try source.seek(toFrame: Int64(share * Double(count)))
            #expect(try read(source, 4_410).count == 8_820)
            moved.append(server.bytesSent - before)
        }
        #expect(moved.max()! < 600_000, "\(moved) of \(body.count)")
    }

    @Test(arguments: ["bare.mp3", "bare-vbr.mp3", "opus.opus", "vorbis.ogg"])
    func `who opens an address that somebody reads does not load it again`(name: String) throws {
        let body = try long(name)
        let server = FileServer(body)
        let url = server.url("/body.\(name)")
        var first: FFmpegSource? = try FFmpegSource(url)
        let opening = server.bytesSent
        let second = try FFmpegSource(url)
        #expect(server.bytesSent - opening < 400_000, "\(server.bytesSent - opening)")
        let count = try #require(second.format.frameCount)
        #expect(count == first?.format.frameCount)
        try second.seek(toFrame: count / 2)
        try first?.seek(toFrame: count / 2)
        let frames = try read(second, 4_410)
        #expect(try first.map { try read($0, 4_410) } == frames)
        // The one that loaded it may go.
        first = nil
        try second.seek(toFrame: count / 2)
        #expect(try read(second, 4_410) == frames)
        #expect(server.bytesSent - opening < 400_000)
    }

    /// What nobody reads any more, or is another file by now, is loaded.
    @Test func `another file at the same address is another, whoever reads the one before`() throws
    {
        let body = try long("bare.mp3")
        let server = FileServer(body)
        let url = server.url("/body.mp3")
        do {
            let first = try FFmpegSource(url)
            var changed = body
            // Of the same length.
            // Not by what is repeated in it.
            let place = body.count / 3 + 1_000
            changed.replaceSubrange(place..., with: body[..<(body.count - place)])
            server.change(to: changed)
            let before = server.bytesSent
            let second = try FFmpegSource(url)
            #expect(server.bytesSent - before >= body.count)
            withExtendedLifetime((first, second)) {}
        }
        let before = server.bytesSent
        _ = try FFmpegSource(url)
        #expect(server.bytesSent - before >= body.count)
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
