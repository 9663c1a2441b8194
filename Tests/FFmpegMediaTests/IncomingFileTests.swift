import Foundation
import Synchronization
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// A file that is played while it is fetched.
@Suite(.timeLimit(.minutes(5))) struct IncomingFileTests {
    private let folder = Fixtures.path("arriving-\(UUID().uuidString)")

    /// A server, a cache that fetches from it on a thread of its own and gets only the beginning, and
    /// the file on its way.
    private final class Transfer: Sendable {
        let server: FileServer
        let file: IncomingFile
        private let held: HeldRanges
        private let ended = DispatchSemaphore(value: 0)

        /// - Parameters:
        ///   - held: where that beginning ends; the first parts are 128 KiB.
        ///   - holdsEach: readers that ask get no more either.
        init(
            _ body: Data, _ print: MediaFingerprint, _ server: FileServer? = nil,
            held begin: Int64 = 1, holdsEach: Bool = false, in folder: String,
            limit: Int64 = 1 << 30, path: String = "/body.bin"
        ) throws {
            let server = server ?? FileServer(body)
            let held = HeldRanges(from: begin, holdsEach: holdsEach)
            let url = server.url(path)
            let file = try IncomingFile(url: url, print, server: held)
            let cache = MediaCache(folder: folder, limit: limit, memoryLimit: limit)
            (self.server, self.held, self.file) = (server, held, file)
            Thread.detachNewThread { [self] in
                do throws(MediaError) {
                    _ = try cache.fetch(file)
                } catch {
                    file.abandon(error)
                }
                ended.signal()
            }
        }

        func finish() {
            held.release()
            ended.wait()
        }
    }

    private func transfer(
        of name: String, held: Int64 = 1, holdsEach: Bool = false,
        _ behaviour: FileServer.Behaviour = FileServer.Behaviour()
    ) throws -> Transfer {
        let body = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path(name)))
        return try Transfer(
            body, MediaFingerprint(of: body), FileServer(body, behaviour), held: held,
            holdsEach: holdsEach, in: folder)
    }

    /// Containers that number their packets; FLAC is found by looking.
    @Test(arguments: ["s16.wav", "16.flac", "24.flac", "alac.m4a", "pcm.aiff", "pcm.caf"])
    func `the middle is played when only the beginning is there`(name: String) throws {
        let linear = try readAll(FFmpegSource(Fixtures.path(name)))
        let transfer = try transfer(of: name)
        let source = try FFmpegSource(transfer.file)
        #expect(source.format.frameCount == Int64(linear.count / 2))
        for target in [linear.count / 4, linear.count / 2 - 4_000, 100] {
            try source.seek(toFrame: Int64(target))
            let matches = isSame(try read(source, 3_000), linear, from: 2 * target)
            #expect(matches, "at \(target)")
        }
        #expect(transfer.file.held < transfer.file.fingerprint.byteCount, "not all was there")
        transfer.finish()
        #expect(transfer.file.held == transfer.file.fingerprint.byteCount)
        try source.seek(toFrame: 0)
        let isWhole = isSame(try readAll(source), linear, count: linear.count)
        #expect(isWhole)
    }

    private func unfetched(_ name: String) throws -> (file: IncomingFile, parts: Parts) {
        let path = Fixtures.path(name)
        let parts = Parts(try Data(contentsOf: URL(fileURLWithPath: path)))
        let file = try IncomingFile(
            url: "http://127.0.0.1:1/body.bin", MediaFingerprint(of: path), server: parts,
            mayAskFirst: true)
        return (file, parts)
    }

    /// A room that has just joined looks for its place while the path is still being measured.
    @Test(
        .timeLimit(.minutes(5)),
        arguments: ["s16.wav", "24.flac", "alac.m4a", "pcm.aiff", "pcm.caf"])
    func `the middle is played before the fetch begins`(name: String) throws {
        let linear = try readAll(FFmpegSource(Fixtures.path(name)))
        let (file, parts) = try unfetched(name)
        let source = try FFmpegSource(file, frameCount: Int64(linear.count / 2))
        let target = linear.count / 4
        try source.seek(toFrame: Int64(target))
        let matches = isSame(try read(source, 3_000), linear, from: 2 * target)
        #expect(matches)
        #expect(file.held == 0)
        // Each part is asked for once, or again when others came between: no part for each packet.
        #expect(Int64(parts.byteCount) < 2 * file.fingerprint.byteCount, "\(parts.requests)")
    }

    @Test func `who reads everything waits for the fetch`() throws {
        let (file, parts) = try unfetched("s16.wav")
        file.needsAll()
        let cancellation = MediaCancellation()
        let (isReading, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let wasRead = Mutex(false)
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 100)
            isReading.signal()
            bytes.withUnsafeMutableBufferPointer { bytes in
                if (try? file.read(at: 500_000, into: bytes, cancellation)) != nil {
                    wasRead.withLock { $0 = true }
                }
            }
            isDone.signal()
        }
        isReading.wait()
        usleep(100_000)
        // Under way, with remains that may not be read yet: that is no reason to ask either.
        file.begins(in: nil, holding: 0)
        file.reaches(600_000)
        usleep(100_000)
        cancellation.cancel()
        #expect(isDone.wait(timeout: .now() + 30) == .success)
        #expect(parts.requests.isEmpty)
        #expect(!wasRead.withLock { $0 })
    }

    @Test func `not much is asked for before the fetch begins`() throws {
        let size: Int64 = 16 << 20
        let parts = Parts(Data(count: Int(size)))
        let print = MediaFingerprint(of: Data(count: Int(size)))
        let file = try IncomingFile(
            url: "http://127.0.0.1:1/body.bin", print, server: parts, mayAskFirst: true)
        let cancellation = MediaCancellation()
        let isDone = DispatchSemaphore(value: 0)
        // The beginning of a file with a large picture, say.
        Thread.detachNewThread {
            _ = file.beginning(Int(size), cancellation)
            isDone.signal()
        }
        #expect(isDone.wait(timeout: .now() + 0.5) == .timedOut)
        #expect(parts.byteCount <= 4 << 20 && file.hasBytes)
        // Once it is, there is no limit any more.
        file.begins(in: nil, holding: 0)
        #expect(isDone.wait(timeout: .now() + 30) == .success)
        #expect(parts.byteCount == Int(size))
    }

    /// Two minutes, of which a part takes a fifth of the bytes a second of the rest: where something
    /// is in it, its length does not tell.
    private func longItem(
        quiet: String
    ) throws -> (path: String, print: MediaFingerprint, frames: Int64) {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/long.flac"
        Fixtures.run(
            ["-v", "error", "-y", "-f", "lavfi", "-i", "anoisesrc=d=120:r=48000:a=0.5:seed=1"]
                + ["-af", "volume=enable='\(quiet)':volume=0.0002", "-ac", "2"]
                + ["-sample_fmt", "s16", path])
        let frames = try FFmpegSource(path).format.frameCount ?? 0
        return (path, try MediaFingerprint(of: path), frames)
    }

    /// Each part takes a round trip and fills the path on which the clock is being measured.
    @Test(arguments: ["between(t,30,90)", "lt(t,60)", "gt(t,60)"])
    func `a place in a FLAC file is found in a few parts`(quiet: String) throws {
        let (path, print, frames) = try longItem(quiet: quiet)
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let there = try FFmpegSource(path)
        var counts: [Int] = []
        for place in [0.01, 0.1, 0.24, 0.26, 0.5, 0.55, 0.6, 0.7, 0.8, 0.99] {
            let parts = Parts(body)
            let file = try IncomingFile(
                url: "http://127.0.0.1:1/body.bin", print, server: parts, mayAskFirst: true)
            let source = try FFmpegSource(file, frameCount: frames)
            let target = Int64(Double(frames) * place)
            try source.seek(toFrame: target)
            try there.seek(toFrame: target)
            #expect(try read(source, 3_000) == read(there, 3_000), "at \(place)")
            counts.append(parts.requests.count)
        }
        // The beginning, and two to four parts more. FFmpeg's own way takes 58, 119 and 59 for these ten
        // places.
        #expect(counts.reduce(0, +) <= 45, "\(counts)")
    }

    @Test func `who has found a place gets no more than it needs before the fetch begins`() throws {
        let (path, print, frames) = try longItem(quiet: "between(t,30,90)")
        let parts = Parts(try Data(contentsOf: URL(fileURLWithPath: path)))
        let pace = FetchPace(byteCount: print.byteCount, seconds: 120)
        let file = try IncomingFile(
            url: "http://127.0.0.1:1/body.bin", print, pace: pace, server: parts, mayAskFirst: true)
        // Longer than the longest stall of a machine that runs tests.
        let wanted = 1_920_000
        let (isFound, isFilled, isDone) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let found = Mutex((bytes: 0, at: ContinuousClock.now))
        let count = Mutex(0)
        Thread.detachNewThread {
            defer { isDone.signal() }
            // Where a second is longer than on average.
            guard let source = try? FFmpegSource(file, frameCount: frames),
                (try? source.seek(toFrame: frames / 10)) != nil
            else { return }
            found.withLock { $0 = (parts.byteCount, .now) }
            isFound.signal()
            while count.withLock({ $0 < wanted }), (try? read(source, 4_800).count) == 9_600 {
                let count = count.withLock {
                    $0 += 4_800
                    return $0
                }
                if count == 24_000 { isFilled.signal() }
            }
        }
        #expect(isFound.wait(timeout: .now() + 30) == .success)
        #expect(isFilled.wait(timeout: .now() + 30) == .success, "a voice needs half a second")
        #expect(isDone.wait(timeout: .now() + 0.5) == .timedOut)
        let (before, since) = found.withLock { $0 }
        let ahead = Double(parts.byteCount - before)
        let seconds = 1.5 + (ContinuousClock.now - since) / .seconds(1)
        #expect(ahead <= seconds * pace.second + 196_608, "\(ahead) bytes in \(seconds) s")
        #expect(count.withLock { $0 } < wanted)
        // Who opens it beside that one looks for a place of its own.
        let other = try FFmpegSource(file, frameCount: frames)
        try other.seek(toFrame: frames * 3 / 4)
        #expect(try read(other, 3_000).count == 6_000)
        file.begins(in: nil, holding: 0)
        #expect(isDone.wait(timeout: .now() + 30) == .success)
        #expect(count.withLock { $0 } == wanted)
    }

    @Test func `reading ahead keeps up with the line, and starts anew with each place`() {
        let start = ContinuousClock.now
        // 100 kB that play for a second.
        var ahead = ReadAhead(FetchPace(byteCount: 100_000_000, seconds: 1_000))
        ahead.asked(1_000_000)
        #expect(!ahead.isEnough(at: start), "it looks for a place")
        ahead.foundPlace(at: start)
        ahead.asked(149_000)
        #expect(!ahead.isEnough(at: start))
        ahead.asked(1_000)
        #expect(ahead.isEnough(at: start))
        #expect(!ahead.isEnough(at: start + .seconds(1)))
        ahead.asked(100_000)
        #expect(ahead.isEnough(at: start + .seconds(1)))
        ahead.looksForPlace()
        #expect(!ahead.isEnough(at: start))
        ahead.foundPlace(at: start)
        #expect(!ahead.isEnough(at: start))
        var unlimited = ReadAhead(.unlimited)
        unlimited.foundPlace(at: start)
        unlimited.asked(.max / 2)
        #expect(!unlimited.isEnough(at: start))
    }

    /// Of all kinds, those too whose packets must be counted first.
    @Test(arguments: Fixtures.names)
    func `whoever follows the fetch hears the same`(name: String) throws {
        let linear = try readAll(FFmpegSource(Fixtures.path(name)))
        let transfer = try transfer(
            of: name, held: .max, FileServer.Behaviour(pauseMicroseconds: 1_000))
        let source = try FFmpegSource(transfer.file)
        let all = try readAll(source)
        let isWhole = all.count == linear.count && isSame(all, linear)
        #expect(isWhole)
        transfer.finish()
    }

    @Test func `whoever follows the fetch of a joined file hears the same`() throws {
        let data = try Fixtures.data("cbr.mp3") + Data(count: 5_000) + Fixtures.data("low.mp3")
        let linear = try readAll(FFmpegSource(Fixtures.write(data, "joined-arriving.mp3")))
        let transfer = try transfer(
            of: "joined-arriving.mp3", FileServer.Behaviour(pauseMicroseconds: 1_000))
        let source = try FFmpegSource(transfer.file)
        let all = try readAll(source)
        let isWhole = all.count == linear.count && isSame(all, linear)
        #expect(isWhole)
        try expectExactSeeks(source, linear, at: [100_000, 400_000, 0])
        transfer.finish()
    }

    @Test func `what the fetch fails at is what the reader says`() throws {
        let body = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("16.flac")))
        let print = try MediaFingerprint(of: Fixtures.path("16.flac"))
        func failure(_ transfer: Transfer) -> MediaError.Code? {
            do {
                _ = try FFmpegSource(transfer.file)
                return nil
            } catch {
                return error.code
            }
        }
        let small = try Transfer(body, print, in: folder, limit: 1_000)
        #expect(failure(small) == .tooLarge)
        small.finish()
        let lost = try Transfer(body, print, in: folder, path: "/nothing")
        #expect(failure(lost) == .notFound)
        lost.finish()
    }

    /// A transfer whose server stopped halfway, for good.
    private func broken() throws -> (
        path: String, body: Data, file: IncomingFile, cache: MediaCache, error: MediaError
    ) {
        let path = Fixtures.path("s16.wav")
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let server = FileServer(body, FileServer.Behaviour(stopsAt: body.count / 2))
        let file = try IncomingFile(url: server.url(), MediaFingerprint(of: path))
        let cache = MediaCache(folder: folder, limit: 1 << 30)
        let error = try #require(throws: MediaError.self) {
            try cache.fetch(file)
        }
        return (path, body, file, cache, error)
    }

    /// The leader dies: rooms play on as far as the bytes go.
    @Test func `what is there is played when the rest will not come`() throws {
        let (path, _, file, _, error) = try broken()
        #expect(error.code == .network && file.held == 524_288, "four parts of the half")
        file.abandon(error)
        let source = try FFmpegSource(file, frameCount: Int64(Fixtures.frameCount))
        let linear = try readAll(FFmpegSource(path))
        let isThere = isSame(try read(source, 120_000), linear)
        #expect(isThere)
        #expect(throws: MediaError.self) { try readAll(source) }
    }

    @Test func `a fetch that failed is begun anew while somebody still reads what it left`() throws
    {
        let (path, body, file, cache, _) = try broken()
        let source = try FFmpegSource(file, frameCount: Int64(Fixtures.frameCount))
        let whole = try cache.fetch(url: FileServer(body).url(), file.fingerprint)
        #expect(try Data(contentsOf: URL(fileURLWithPath: whole.path)) == body)
        let isThere = isSame(
            try read(source, 100_000), try readAll(FFmpegSource(path)), count: 200_000)
        #expect(isThere)
    }

    @Test func `what nobody can verify is no comfort when the rest will not come`() throws {
        let path = Fixtures.path("s16.wav")
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let print = try MediaFingerprint(of: path).withoutPieces
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try body.prefix(100_000).write(
            to: URL(fileURLWithPath: folder + "/\(print.text).part"))
        let server = FileServer(body, FileServer.Behaviour(stopsAt: 300_000))
        let file = try IncomingFile(url: server.url(), print)
        let cache = MediaCache(folder: folder, limit: 1 << 30)
        let error = try #require(throws: MediaError.self) {
            try cache.fetch(file)
        }
        file.abandon(error)
        #expect(throws: MediaError.self) { try FFmpegSource(file) }
    }

    @Test func `without hashes of pieces a reader waits for all of it`() throws {
        let body = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("16.flac")))
        let transfer = try Transfer(
            body, MediaFingerprint(of: body).withoutPieces, in: folder)
        let isOpen = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            if (try? FFmpegSource(transfer.file)) != nil { isOpen.signal() }
        }
        #expect(isOpen.wait(timeout: .now() + 0.3) == .timedOut)
        transfer.finish()
        #expect(isOpen.wait(timeout: .now() + 30) == .success)
    }

    /// The leader comes back, on another port: the reader that waited meanwhile hears nothing of it.
    @Test func `a transfer that broke off goes on from another server`() throws {
        let (path, body, file, cache, _) = try broken()
        let source = try FFmpegSource(file, frameCount: Int64(Fixtures.frameCount))
        Thread.detachNewThread {
            usleep(200_000)
            let second = FileServer(body)
            try? file.move(to: second.url())
            _ = try? cache.fetch(file)
        }
        let linear = try readAll(FFmpegSource(path))
        let all = try readAll(source)
        let isWhole = all.count == linear.count && isSame(all, linear)
        #expect(isWhole)
    }

    @Test func `pieces that are right of a file that is not end it with an error`() throws {
        let body = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("16.flac")))
        let real = MediaFingerprint(of: body)
        let other = MediaFingerprint(
            hash: real.hash.reversed(), byteCount: real.byteCount, piecesRoot: real.piecesRoot)
        let transfer = try Transfer(body, other, in: folder)
        let source = try FFmpegSource(transfer.file)
        _ = try read(source, 100)
        transfer.finish()
        #expect(transfer.file.failure?.code == .damaged)
        var said: MediaError.Code?
        do { _ = try readAll(source) } catch { said = (error as? MediaError)?.code }
        #expect(said == .damaged)
    }

    /// A source that gives other bytes from the sixth piece on: by the fetch, and by parts.
    @Test(arguments: [false, true])
    func `what is right is heard, then the error, and nothing else`(isAsked: Bool) throws {
        let body = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("s16.wav")))
        let first = 5 * 65_536
        var forged = body
        for place in first..<body.count { forged[place] ^= 0x55 }
        let file: IncomingFile
        if isAsked {
            file = try IncomingFile(
                url: "http://127.0.0.1:1/body.bin", MediaFingerprint(of: body),
                server: Parts(forged, announcing: body), mayAskFirst: true)
        } else {
            let server = FileServer(forged, announcing: body)
            let transfer = try Transfer(
                body, MediaFingerprint(of: body), server, held: .max, in: folder)
            transfer.finish()
            file = transfer.file
            #expect(file.failure?.code == .damaged)
            let left = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(left == [], "what came from a source that lies goes")
        }
        let source = try FFmpegSource(file, frameCount: Int64(Fixtures.frameCount))
        let linear = try readAll(FFmpegSource(Fixtures.path("s16.wav")))
        // Four whole parts of it, less a block of the reader and what the header takes.
        let isRight = isSame(try read(source, 60_000), linear)
        #expect(isRight)
        var rest: [Float] = []
        var said: MediaError.Code?
        do {
            while case let more = try read(source, 1_000), !more.isEmpty { rest += more }
        } catch { said = (error as? MediaError)?.code }
        #expect(said == .damaged)
        let isAllRight = isSame(rest, linear, from: 120_000)
        #expect(isAllRight)
    }

    @Test func `a list of hashes that was not announced is not believed`() throws {
        let body = try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("16.flac")))
        var forged = body
        forged[70_000] ^= 1
        // Both its bytes and its list are of the other file.
        let file = try IncomingFile(
            url: "http://127.0.0.1:1/body.bin", MediaFingerprint(of: body), server: Parts(forged),
            mayAskFirst: true)
        var said: MediaError.Code?
        do { _ = try FFmpegSource(file) } catch { said = error.code }
        #expect(said == .damaged)
        #expect(!file.hasBytes)
    }

    @Test func `a disk that loses what it took is replaced by the server`() throws {
        let name = "s16.wav"
        let transfer = try transfer(of: name)
        let linear = try readAll(FFmpegSource(Fixtures.path(name)))
        let source = try FFmpegSource(transfer.file, frameCount: Int64(Fixtures.frameCount))
        _ = try read(source, 100)
        let part = folder + "/\(transfer.file.fingerprint.text).part"
        #expect(truncate(part, 0) == 0)
        try source.seek(toFrame: 20_000)
        let isSound = isSame(try read(source, 10_000), linear, from: 40_000)
        #expect(isSound)
        transfer.finish()
        #expect(transfer.file.failure == nil)
        try source.seek(toFrame: 0)
        let isWhole = isSame(try readAll(source), linear, count: linear.count)
        #expect(isWhole, "the hole that was left on the disk is not taken for it")
    }

    @Test func `a reader that waits is let go when it is cancelled`() throws {
        let transfer = try transfer(of: "cbr.mp3", held: 0, holdsEach: true)
        let cancellation = MediaCancellation()
        Thread.detachNewThread {
            usleep(100_000)
            cancellation.cancel()
        }
        var said: MediaError.Code?
        do throws(MediaError) {
            // Its packets must be counted, and most of them do not come.
            _ = try FFmpegSource(transfer.file, cancellation: cancellation)
        } catch {
            said = error.code
        }
        #expect(said == .cancelled)
        transfer.finish()
    }

    /// What another fetch left may be anything until its hash is known.
    @Test func `the remains of an earlier transfer are not read before they are verified`() throws {
        let path = Fixtures.path("s16.wav")
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let print = try MediaFingerprint(of: path)
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try Data(repeating: 7, count: 200_000).write(
            to: URL(fileURLWithPath: folder + "/\(print.text).part"))
        let transfer = try Transfer(body, print, held: .max, in: folder)
        let source = try FFmpegSource(transfer.file)
        let linear = try readAll(FFmpegSource(path))
        let isSound = isSame(try read(source, 10_000), linear)
        #expect(isSound)
        transfer.finish()
        let isWhole = isSame(try readAll(source), linear, from: 20_000)
        #expect(isWhole)
        #expect(try MediaFingerprint(of: folder + "/\(print.text).media") == print)
    }

    @Test func `a fetch that nobody waits for takes its time, and none when somebody does`() throws
    {
        // A second and a half of the pace, and of a path that is a thousand times as fast.
        let body = Data(repeating: 1, count: 375_000)
        let server = FileServer(body)
        let path = folder + "-bytes"
        try body.write(to: URL(fileURLWithPath: path))
        let print = try MediaFingerprint(of: path)
        func seconds(isAwaited: Bool) throws -> Double {
            let file = try IncomingFile(
                url: server.url(), print, pace: FetchPace(byteCount: 375_000, seconds: 1_000))
            let cache = MediaCache(folder: folder + "-\(isAwaited)", limit: 1 << 30)
            let done = DispatchSemaphore(value: 0)
            if isAwaited {
                Thread.detachNewThread {
                    while done.wait(timeout: .now()) != .success { file.wait() }
                }
            }
            let start = ContinuousClock.now
            _ = try cache.fetch(file)
            let taken = ContinuousClock.now - start
            done.signal()
            return Double(taken.components.attoseconds) * 1e-18 + Double(taken.components.seconds)
        }
        let (alone, awaited) = (try seconds(isAwaited: false), try seconds(isAwaited: true))
        // The last block is not waited after, and it may hurry by a quarter of a second.
        #expect(alone > 0.8, "\(alone)")
        #expect(awaited < alone, "\(awaited), \(alone)")
    }

    @Test func `a pace follows what is played, and grows`() {
        let disc = FetchPace(byteCount: 26_000_000, seconds: 180)
        #expect(disc.rate(after: .seconds(1)) == 4 * 26_000_000.0 / 180)
        #expect(disc.rate(after: .seconds(5)) == 4 * disc.rate(after: .zero))
        let voice = FetchPace(byteCount: 1_000_000, seconds: 600)
        #expect(voice.rate(after: .zero) == 250_000)
        #expect(FetchPace(byteCount: 5, seconds: 0).rate(after: .zero).isFinite)
        #expect(FetchPace.unlimited.rate(after: .zero) == .infinity)
    }
}
