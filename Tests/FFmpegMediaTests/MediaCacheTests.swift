import Foundation
import Playout
import Synchronization
import Testing

@testable import FFmpegMedia

@Suite(.timeLimit(.minutes(5))) struct MediaCacheTests {
    private let folder = Fixtures.path("cache-\(UUID().uuidString)")

    private func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
        var generator = SplitMix(seed: seed)
        return Data((0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) })
    }

    private func fingerprint(_ data: Data) throws -> MediaFingerprint {
        let path = Fixtures.path("bytes-\(UUID().uuidString)")
        try data.write(to: URL(fileURLWithPath: path))
        return try MediaFingerprint(of: path)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    private func code(_ body: () throws -> CachedFile) -> MediaError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return (error as? MediaError)?.code
        }
    }

    @Test func `a fingerprint is SHA-256 and the length`() throws {
        // FIPS 180-2, appendix B.1.
        let known = try fingerprint(Data("abc".utf8))
        #expect(known.text == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(known.byteCount == 3)
        let body = bytes(200_000)
        #expect(try MediaFingerprint(of: FileServer(body).url()) == fingerprint(body))
    }

    @Test func `what was fetched once is there, verified and private`() throws {
        let body = bytes(300_000)
        let server = FileServer(body)
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        let wanted = try fingerprint(body)
        #expect(cache.contains(wanted) == nil)
        var last: Int64 = 0
        let file = try cache.fetch(url: server.url(), wanted, fileExtension: "FLAC") { last = $0 }
        #expect(last == 300_000)
        #expect(file.path == folder + "/\(wanted.text).flac")
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(try names() == [wanted.text + ".flac"])
        var status = stat()
        #expect(stat(folder, &status) == 0 && status.st_mode & 0o777 == 0o700)
        let requests = server.requestCount
        let again = try cache.fetch(url: server.url(), wanted)
        #expect(again.path == file.path)
        #expect(server.requestCount == requests)
    }

    @Test func `a broken transfer goes on where it stopped`() throws {
        let body = bytes(500_000)
        let server = FileServer(body, .init(breaksAfter: 200_000))
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        let file = try cache.fetch(url: server.url(), try fingerprint(body))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(server.requestCount == 3)
        #expect(server.bytesSent == 500_000)
    }

    @Test func `a part from an earlier run is used, and thrown away when it is wrong`() throws {
        let body = bytes(500_000)
        let wanted = try fingerprint(body)
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        let part = URL(fileURLWithPath: folder + "/\(wanted.text).part")
        try body.prefix(400_000).write(to: part)
        let server = FileServer(body)
        _ = try cache.fetch(url: server.url(), wanted)
        #expect(server.bytesSent == 100_000)

        let other = bytes(500_000, seed: 2)
        let otherWanted = try fingerprint(other)
        try body.prefix(400_000).write(
            to: URL(fileURLWithPath: folder + "/\(otherWanted.text).part"))
        let file = try cache.fetch(url: FileServer(other).url(), otherWanted)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == other)
    }

    @Test func `a server without ranges is asked from the beginning`() throws {
        let body = bytes(300_000)
        let wanted = try fingerprint(body)
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        try body.prefix(100_000).write(to: URL(fileURLWithPath: folder + "/\(wanted.text).part"))
        let file = try cache.fetch(url: FileServer(body, .init(hasRanges: false)).url(), wanted)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
    }

    @Test func `what is not what was announced never gets its name`() throws {
        let wanted = try fingerprint(bytes(100_000))
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        let forged = FileServer(bytes(100_000, seed: 2))
        #expect(code { try cache.fetch(url: forged.url(), wanted) } == .damaged)
        let longer = FileServer(bytes(100_001))
        #expect(code { try cache.fetch(url: longer.url(), wanted) } == .damaged)
        let endless = FileServer(
            bytes(70_000), .init(hasRanges: false, hasLength: false, isEndless: true))
        #expect(code { try cache.fetch(url: endless.url(), wanted) } == .damaged)
        #expect(code { try cache.fetch(url: forged.url("/gone"), wanted) } == .notFound)
        #expect(try names().allSatisfy { $0.hasSuffix(".part") })
        #expect(cache.contains(wanted) == nil)
    }

    @Test func `a server that keeps breaking off at once is given up`() throws {
        let body = bytes(100_000)
        let server = FileServer(body, .init(breaksAfter: 0))
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        let wanted = try fingerprint(body)
        #expect(code { try cache.fetch(url: server.url(), wanted) } == .network)
    }

    @Test func `the least recently used files go, never one in use`() throws {
        let cache = try MediaCache(folder: folder, limit: 350_000)
        func fetch(_ seed: UInt64) throws -> CachedFile {
            let body = bytes(100_000, seed: seed)
            return try cache.fetch(url: FileServer(body).url(), fingerprint(body))
        }
        let held = try fetch(1)
        let second = try fetch(2).fingerprint
        let third = try fetch(3).fingerprint
        #expect(cache.contains(second) != nil)  // used again: the third is older now
        let fourth = try fetch(4).fingerprint
        #expect(cache.contains(held.fingerprint) != nil)
        #expect(cache.contains(second) != nil)
        #expect(cache.contains(third) == nil)
        #expect(cache.contains(fourth) != nil)
        _ = held
    }

    @Test func `what exceeds the limit is refused before a byte is fetched`() throws {
        let body = bytes(50_000)
        let server = FileServer(body)
        let cache = try MediaCache(folder: folder, limit: 49_999)
        let wanted = try fingerprint(body)
        #expect(code { try cache.fetch(url: server.url(), wanted) } == .tooLarge)
        #expect(server.requestCount == 0)
        #expect(code { try cache.download(url: server.url()) } == .tooLarge)
    }

    @Test func `many who want the same share one transfer`() throws {
        let body = bytes(2_000_000)
        let wanted = try fingerprint(body)
        let server = FileServer(body)
        let paths = Mutex<[String]>([])
        // Each has its own cache object, as separate processes have.
        let caches = try (0..<4).map { _ in try MediaCache(folder: folder, limit: 3_000_000) }
        DispatchQueue.concurrentPerform(iterations: 4) { index in
            let file = try? caches[index].fetch(url: server.url(), wanted)
            paths.withLock { $0.append(file?.path ?? "none") }
        }
        #expect(Set(paths.withLock { $0 }) == [folder + "/\(wanted.text).media"])
        #expect(server.bytesSent == 2_000_000)
    }

    @Test func `a part that someone is receiving is left alone`() throws {
        _ = try MediaCache(folder: folder, limit: 1_000)
        let first = try PartFile(locking: folder + "/x.part")
        #expect(first != nil)
        let second = try PartFile(locking: folder + "/x.part")
        #expect(second == nil)
        withExtendedLifetime(first) {}
    }

    @Test func `a fetch can be cancelled and continued`() throws {
        let body = bytes(1_000_000)
        let wanted = try fingerprint(body)
        let server = FileServer(body)
        let cache = try MediaCache(folder: folder, limit: 3_000_000)
        let cancellation = MediaCancellation()
        let outcome = code {
            try cache.fetch(url: server.url(), wanted, cancellation: cancellation) {
                if $0 > 300_000 { cancellation.cancel() }
            }
        }
        #expect(outcome == .cancelled)
        var first: Int64 = 0
        _ = try cache.fetch(url: server.url(), wanted) { if first == 0 { first = $0 } }
        #expect(first > 300_000)
    }

    @Test func `a leader downloads what has a length, and copies local files`() throws {
        let body = bytes(120_000)
        let cache = try MediaCache(folder: folder, limit: 1_000_000)
        let file = try cache.download(url: FileServer(body).url("/body.mp3?x=1"))
        #expect(try file.fingerprint == fingerprint(body))
        #expect(file.path.hasSuffix(".mp3"))
        let copy = try cache.add(contentsOf: Fixtures.path("cbr.mp3"))
        #expect(try copy.fingerprint == MediaFingerprint(of: Fixtures.path("cbr.mp3")))
        #expect(try FFmpegSource(copy.path).format.frameCount == Int64(Fixtures.frameCount))
        let live = FileServer(body, .init(hasRanges: false, hasLength: false, isEndless: true))
        #expect(code { try cache.download(url: live.url()) } == .unsupported)
        #expect(try names().count == 2)
    }

    @Test func `parts that nobody continued are removed, others stay`() throws {
        _ = try MediaCache(folder: folder, limit: 1_000)
        let old = String(repeating: "a", count: 64) + ".part"
        let recent = String(repeating: "b", count: 64) + ".part"
        for name in [old, recent, "download-1-1.part", "notes.txt"] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -8 * 86_400)],
            ofItemAtPath: folder + "/" + old)
        _ = try MediaCache(folder: folder, limit: 1_000)
        #expect(try names() == [recent, "notes.txt"])
    }

    @Test func `an extension from a peer stays one harmless name`() {
        #expect(MediaCache.suffix("FLAC") == ".flac")
        for bad in ["", "../../x", "a/b", "part", "ünï", "verylongone", "a.b", "m p"] {
            #expect(MediaCache.suffix(bad) == ".media")
        }
    }

    @Test func `a folder that cannot be used says so`() {
        let failure = #expect(throws: MediaError.self) {
            _ = try MediaCache(folder: "/proc/nothing/cache", limit: 1)
        }
        #expect(failure?.code == .notReadable)
    }
}
