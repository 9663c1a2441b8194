import Foundation
import Synchronization
import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

@Suite(.timeLimit(.minutes(5))) struct MediaCacheTests {
    private let folder = Fixtures.path("cache-\(UUID().uuidString)")

    private func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
        var generator = SplitMix64(seed: seed)
        return Data((0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) })
    }

    private func fingerprint(_ data: Data) throws -> MediaFingerprint {
        let path = Fixtures.path("bytes-\(UUID().uuidString)")
        try data.write(to: URL(fileURLWithPath: path))
        return try MediaFingerprint(of: path)
    }

    /// Without the notes.
    private func names() throws -> [String] { try allNames().filter { !$0.hasSuffix(".seen") } }

    private func allNames() throws -> [String] {
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
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let wanted = try fingerprint(body)
        #expect(cache.contains(wanted) == nil)
        var last: Int64 = 0
        let file = try cache.fetch(url: server.url(), wanted, fileExtension: "FLAC") { last = $0 }
        #expect(last == 300_000)
        #expect(file.path == folder + "/\(wanted.text).flac")
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(try names() == [wanted.text + ".flac"])
        #expect(try allNames().count == 2, "and what is noted of it")
        var status = stat()
        #expect(stat(folder, &status) == 0 && status.st_mode & 0o777 == 0o700)
        let requests = server.requestCount
        let again = try cache.fetch(url: server.url(), wanted)
        #expect(again.path == file.path)
        #expect(server.requestCount == requests)
    }

    /// Each second request breaks off.
    private final class Breaking: PartServer {
        private let count = Atomic<Int>(0)

        func bytes(
            _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
        ) throws(MediaError) -> [UInt8] {
            if count.add(1, ordering: .relaxed).newValue.isMultiple(of: 2) {
                throw MediaError(.network, operation: "read", subject: url, reason: "broke off")
            }
            return try StreamedRanges().bytes(range, of: url, cancellation)
        }
    }

    @Test func `a broken transfer goes on where it stopped`() throws {
        let body = bytes(500_000)
        let server = FileServer(body)
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let file = try cache.fetch(url: server.url(), fingerprint(body), server: Breaking())
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(server.bytesSent == 500_000)
    }

    @Test(arguments: [true, false])
    func `a part from an earlier run is used as far as it is right`(hasPieces: Bool) throws {
        func wanted(_ body: Data) -> MediaFingerprint {
            let print = MediaFingerprint(of: body)
            return hasPieces ? print : print.withoutPieces
        }
        func leave(_ left: Data, of body: Data) throws {
            try left.write(
                to: URL(fileURLWithPath: folder + "/\(wanted(body).text).part"))
        }
        let body = bytes(500_000)
        let cache = MediaCache(folder: folder, limit: 2_000_000)
        try leave(body.prefix(400_000), of: body)
        let server = FileServer(body)
        _ = try cache.fetch(url: server.url(), wanted(body))
        // Six whole pieces of 64 KiB; without their hashes, all of it.
        #expect(server.bytesSent == (hasPieces ? 500_000 - 393_216 : 100_000))

        let other = bytes(500_000, seed: 2)
        try leave(other.prefix(150_000) + body.suffix(250_000), of: other)
        let second = FileServer(other)
        let file = try cache.fetch(url: second.url(), wanted(other))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == other)
        if hasPieces { #expect(second.bytesSent == 500_000 - 131_072) }
        let longer = bytes(500_000, seed: 3)
        try leave(longer + Data([1, 2, 3]), of: longer)
        let third = try cache.fetch(url: FileServer(longer).url(), wanted(longer))
        #expect(try Data(contentsOf: URL(fileURLWithPath: third.path)) == longer)
    }

    @Test(arguments: [true, false])
    func `what is not what was announced never gets its name, and what is does`(
        hasPieces: Bool
    ) throws {
        let body = bytes(300_000)
        let print = MediaFingerprint(of: body)
        let wanted = hasPieces ? print : print.withoutPieces
        var other = body
        other[200_000] ^= 1
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let forged = FileServer(other, announcing: body)
        #expect(code { try cache.fetch(url: forged.url(), wanted) } == .damaged)
        #expect(try names() == [], "nor does anything of it stay")
        #expect(code { try cache.fetch(url: forged.url("/gone"), wanted) } == .notFound)
        #expect(try names() == [], "nor an empty part")
        #expect(cache.contains(wanted) == nil)
        let file = try cache.fetch(url: FileServer(body).url(), wanted)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
    }

    /// However it was done, and whoever looks.
    @Test(arguments: ["in place", "another file", "times as before", "shorter"])
    func `a finished file that became another one is not played`(how: String) throws {
        let body = bytes(300_000)
        let wanted = try fingerprint(body)
        let server = FileServer(body)
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let path = try cache.fetch(url: server.url(), wanted).path
        let held = try #require(cache.contains(wanted))
        #expect(held.isUntouched)
        var status = stat()
        #expect(stat(path, &status) == 0)
        let forged = how == "shorter" ? body.dropLast(1) : Data(body.reversed())
        if how == "another file" {
            try forged.write(to: URL(fileURLWithPath: path), options: .atomic)
        } else {
            let file = try #require(FileHandle(forWritingAtPath: path))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: forged)
            try file.close()
        }
        if how == "times as before" {
            let times = [status.st_atim, status.st_mtim]
            #expect(utimensat(AT_FDCWD, path, times, 0) == 0)
        }
        #expect(!held.isUntouched)
        let requests = server.requestCount
        // Another process, and this one.
        #expect(MediaCache(folder: folder, limit: 1_000_000).contains(wanted) == nil)
        #expect(cache.contains(wanted) == nil)
        let again = try cache.fetch(url: server.url(), wanted)
        #expect(try Data(contentsOf: URL(fileURLWithPath: again.path)) == body)
        #expect(server.requestCount > requests)
    }

    @Test func `a finished file that was touched and is right is believed again`() throws {
        let body = bytes(300_000)
        let wanted = try fingerprint(body)
        let server = FileServer(body)
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let path = try cache.fetch(url: server.url(), wanted).path
        try body.write(to: URL(fileURLWithPath: path), options: .atomic)
        #expect(cache.contains(wanted)?.path == path)
        // A file that is there without a note, as an earlier version left it.
        unlink(folder + "/\(wanted.text).seen")
        #expect(MediaCache(folder: folder, limit: 1_000_000).contains(wanted)?.path == path)
        #expect(try allNames().count == 2)
    }

    @Test func `a server that keeps breaking off at once is given up`() throws {
        let body = bytes(100_000)
        let server = FileServer(body, .init(breaksAfter: 0))
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let wanted = try fingerprint(body)
        #expect(code { try cache.fetch(url: server.url(), wanted) } == .network)
        #expect(try names() == [])
    }

    @Test func `the least recently used files go, never one in use`() throws {
        let cache = MediaCache(folder: folder, limit: 350_000)
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

    @Test func `what exceeds the limit of the disk is held in memory`() throws {
        let body = bytes(50_000)
        let server = FileServer(body)
        let cache = MediaCache(folder: folder, limit: 49_999)
        let file = try cache.fetch(url: server.url(), try fingerprint(body))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(!file.path.hasPrefix(folder))
    }

    @Test func `what exceeds every limit is refused before a byte is fetched`() throws {
        let body = bytes(50_000)
        let server = FileServer(body)
        let cache = MediaCache(folder: folder, limit: 49_999, memoryLimit: 49_999)
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
        let caches = (0..<4).map { _ in MediaCache(folder: folder, limit: 3_000_000) }
        DispatchQueue.concurrentPerform(iterations: 4) { index in
            let file = try? caches[index].fetch(url: server.url(), wanted)
            paths.withLock { $0.append(file?.path ?? "none") }
        }
        #expect(Set(paths.withLock { $0 }) == [folder + "/\(wanted.text).media"])
        #expect(server.bytesSent == 2_000_000)
    }

    @Test func `a part that someone is receiving is left alone`() throws {
        _ = MediaCache(folder: folder, limit: 1_000)
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
        let cache = MediaCache(folder: folder, limit: 3_000_000)
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
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let file = try cache.download(url: FileServer(body).url("/body.mp3?x=1"))
        #expect(try file.fingerprint == fingerprint(body).withoutPieces)
        #expect(file.path.hasSuffix(".mp3"))
        let copy = try cache.add(contentsOf: Fixtures.path("cbr.mp3"))
        let original = try MediaFingerprint(of: Fixtures.path("cbr.mp3"))
        #expect(copy.fingerprint == original.withoutPieces)
        #expect(try FFmpegSource(copy.path).format.frameCount == Int64(Fixtures.frameCount))
        // Without a word of how long it is, what never ends ends at the limit.
        let live = FileServer(body, .init(hasRanges: false, hasLength: false, isEndless: true))
        #expect(code { try cache.download(url: live.url()) } == .tooLarge)
        #expect(try names().count == 2)
    }

    @Test func `parts that nobody continued are removed, others stay`() throws {
        _ = MediaCache(folder: folder, limit: 1_000)
        let old = String(repeating: "a", count: 64) + ".part"
        let recent = String(repeating: "b", count: 64) + ".part"
        let empty = String(repeating: "c", count: 64) + ".part"
        _ = FileManager.default.createFile(atPath: folder + "/" + empty, contents: nil)
        for name in [old, recent, "download-1-1.part", "notes.txt", "aa.seen"] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -2 * 3_600)],
            ofItemAtPath: folder + "/" + old)
        _ = MediaCache(folder: folder, limit: 1_000)
        #expect(try allNames() == [recent, "notes.txt"])
    }

    /// A file that is rewritten on the leader: nobody will ask for what it was.
    @Test(arguments: ["gone", "another"])
    func `what came of a file that the server has no more does not stay`(how: String) throws {
        let body = bytes(500_000)
        let wanted = MediaFingerprint(of: body)
        let cache = MediaCache(folder: folder, limit: 2_000_000)
        try body.prefix(400_000).write(
            to: URL(fileURLWithPath: folder + "/\(wanted.text).part"))
        if how == "gone" {
            let server = FileServer(body)
            #expect(code { try cache.fetch(url: server.url("/gone"), wanted) } == .notFound)
        } else {
            let server = FileServer(Data(body.reversed()), announcing: body)
            #expect(code { try cache.fetch(url: server.url(), wanted) } == .damaged)
        }
        #expect(try allNames() == [])
    }

    @Test func `a part is removed on request, unless somebody fetches it`() throws {
        let wanted = MediaFingerprint(of: bytes(500_000))
        let cache = MediaCache(folder: folder, limit: 2_000_000)
        let path = folder + "/\(wanted.text).part"
        let part = try #require(try PartFile(locking: path))
        try part.append([1, 2, 3])
        cache.removePart(of: wanted)
        #expect(FileManager.default.fileExists(atPath: path))
        withExtendedLifetime(part) {}
        let other = MediaFingerprint(of: bytes(500_000, seed: 2))
        let left = folder + "/\(other.text).part"
        try Data([1]).write(to: URL(fileURLWithPath: left))
        cache.removePart(of: other)
        #expect(!FileManager.default.fileExists(atPath: left))
    }

    @Test func `an extension from a peer stays one harmless name`() {
        #expect(MediaCache.suffix("FLAC") == ".flac")
        for bad in ["", "../../x", "a/b", "part", "seen", "ünï", "verylongone", "a.b", "m p"] {
            #expect(MediaCache.suffix(bad) == ".media")
        }
    }

    // MARK: Without a disk

    @Test func `a folder that cannot be used is said, and memory takes its place`() throws {
        let body = bytes(300_000)
        let wanted = try fingerprint(body)
        let said = Mutex<[String]>([])
        let cache = MediaCache(
            folder: "/proc/nothing/cache", limit: 1_000_000, memoryLimit: 700_000
        ) { warning in said.withLock { $0.append(warning) } }
        #expect(said.withLock { $0.count } == 1)
        let server = FileServer(body)
        let file = try cache.fetch(url: server.url(), wanted)
        let path = file.path
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == body)
        // One more fits beside it, a third one does not, until the first is given back.
        let second = try cache.fetch(url: server.url(), wanted)
        #expect(code { try cache.fetch(url: server.url(), wanted) } == .tooLarge)
        withExtendedLifetime(second) {}
        #expect(said.withLock { $0.count } == 1, "once")
        #expect(said.withLock { $0[0] }.contains("/proc/nothing/cache"))
    }

    @Test func `memory is given back`() throws {
        let body = bytes(300_000)
        let cache = MediaCache(folder: "/proc/nothing", limit: 1_000_000, memoryLimit: 300_000)
        for _ in 0..<3 { _ = try cache.fetch(url: FileServer(body).url(), fingerprint(body)) }
    }

    @Test func `a folder that goes away is made again`() throws {
        let body = bytes(300_000)
        let wanted = try fingerprint(body)
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let file = try cache.fetch(url: FileServer(body).url(), wanted)
        try FileManager.default.removeItem(atPath: folder)
        #expect(!file.isUntouched && cache.contains(wanted) == nil)
        let again = try cache.fetch(url: FileServer(body).url(), wanted)
        #expect(again.path == file.path && again.isUntouched)
        #expect(try Data(contentsOf: URL(fileURLWithPath: again.path)) == body)
    }

    /// The rest of it is in a file that nobody finds any more, and is heard all the same.
    @Test func `a folder that goes away during a fetch is no loss`() throws {
        let body = bytes(600_000)
        let wanted = try fingerprint(body)
        let cache = MediaCache(folder: folder, limit: 1_000_000)
        let file = try cache.fetch(url: FileServer(body).url(), wanted) { held in
            if held == 131_072 { try? FileManager.default.removeItem(atPath: self.folder) }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(file.isUntouched)
        let again = try cache.fetch(url: FileServer(body).url(), wanted)
        #expect(again.path == folder + "/\(wanted.text).media")
    }

    /// What a full disk does to a process: the limit for its files is one that needs no privilege.
    @Test func `a disk that takes no more is left for memory, with what came`() throws {
        let body = bytes(600_000)
        let grants = MemoryBudget(limit: 1_000_000)
        _ = MediaCache(folder: folder, limit: 1_000_000)
        let part = try #require(try PartFile(locking: folder + "/x.part"))
        try part.append(Array(body.prefix(200_000)))
        let isMoved = part.moveToMemory(try #require(grants.grant(600_000)))
        #expect(isMoved && part.byteCount == 200_000 && part.isInMemory)
        #expect(try names() == [])
        try part.append(Array(body.suffix(400_000)))
        let file = try part.finish(as: folder + "/never", MediaFingerprint(of: body))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        #expect(part.hash() == MediaFingerprint(of: body).hash)
        #expect(grants.grant(600_000) == nil)
    }

    @Test func `what does not fit beside what is in use is held in memory`() throws {
        let (first, second) = (bytes(300_000), bytes(300_000, seed: 2))
        let said = Mutex<[String]>([])
        let cache = MediaCache(folder: folder, limit: 500_000, memoryLimit: 300_000) { warning in
            said.withLock { $0.append(warning) }
        }
        let one = try cache.fetch(url: FileServer(first).url(), fingerprint(first))
        let two = try cache.fetch(url: FileServer(second).url(), fingerprint(second))
        #expect(one.isUntouched)
        #expect(try names().count == 1)
        #expect(try Data(contentsOf: URL(fileURLWithPath: two.path)) == second)
        #expect(said.withLock { $0 }.count == 1)
        #expect(said.withLock { $0[0] }.contains("limit of 0.5 MB"))
    }
}
