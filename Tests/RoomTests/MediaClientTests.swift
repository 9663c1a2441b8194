import Foundation
import Logging
import NIOCore
import Synchronization
import Testing
import TuttiFFmpegMedia
import TuttiPlayout

@testable import TuttiRoom

extension IntegrationTests {
    /// How a room gets parts of an asset that it does not have.
    @Suite(.timeLimit(.minutes(1))) struct MediaClients {
        private static let contents = RandomBytes.make(count: 700_001, seed: 52)
        private static let path = "/asset/" + Media.hash
        /// Of an answer with the first four bytes.
        private static let head =
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/9\r\n"

        private func service(
            in folder: TemporaryFolder, port: Int = 0
        ) async throws -> (port: Int, node: RunningNode) {
            let service = MediaService(logger: Logger(label: "media"))
            service.share(
                hash: Media.hash, path: try folder.write(Data(Self.contents), as: "asset.bin"))
            return try await service.open(port: port)
        }

        private func ask(
            _ client: MediaClient, _ range: Range<Int64>, at port: Int, path: String = path,
            _ cancellation: MediaCancellation = MediaCancellation()
        ) async throws -> [UInt8] {
            try await blocking { _ throws(MediaError) in
                try client.bytes(range, of: "http://127.0.0.1:\(port)\(path)", cancellation)
            }
        }

        @Test func `parts come as they were asked for, also from a leader that came back`()
            async throws
        {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let client = MediaClient()
            let (port, first) = try await service(in: folder)
            for range in [0..<131_072, 600_000..<700_001, 5..<6] as [Range<Int64>] {
                let bytes = try await ask(client, range, at: port)
                #expect(
                    bytes == Array(Self.contents[Int(range.lowerBound)..<Int(range.upperBound)]))
            }
            _ = await first.stop()
            // The connection that was kept is dead, which no reader hears of.
            let (_, second) = try await service(in: folder, port: port)
            #expect(try await ask(client, 7..<9, at: port) == Array(Self.contents[7..<9]))
            _ = await second.stop()
        }

        @Test func `the hashes of its pieces are behind the address of an asset`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let (port, node) = try await service(in: folder)
            let pieces = try MediaFingerprint.measure(folder.path("asset.bin")).pieces
            // Eleven pieces of 64 KiB.
            #expect(pieces.bytes.count == 11 * 32)
            let client = MediaClient()
            for _ in 0..<2 {
                let list = try await ask(client, 0..<352, at: port, path: Self.path + "/pieces")
                #expect(list == pieces.bytes)
            }
            _ = await node.stop()
        }

        @Test func `lists that are not kept are computed again`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let lists = PieceLists(limit: 64)
            var paths: [String] = []
            for number in 0..<4 {
                let path = try folder.write(Data([UInt8(number)]), as: "\(number)")
                lists.keep(try MediaFingerprint.measure(path).pieces, of: "\(number)")
                paths.append(path)
            }
            let first = try MediaFingerprint.measure(paths[0]).pieces.bytes
            #expect(await lists.list(of: "0", at: paths[0]) == first)
            try FileManager.default.removeItem(atPath: paths[3])
            #expect(await lists.list(of: "3", at: paths[3]) != nil, "it is kept")
            #expect(await lists.list(of: "1", at: paths[3]) == nil, "that one is not")
        }

        @Test
        func `a connection serves one reader after the other, and two at once take two at most`()
            async throws
        {
            // A connection that a slow machine tried twice is not used twice.
            let used = Mutex(0)
            let body = [UInt8](repeating: 7, count: 4)
            let server = try await RawConnection.answeringServer(
                Self.head + "Content-Length: 4\r\n\r\n\u{7}\u{7}\u{7}\u{7}"
            ) { used.withLock { $0 += 1 } }
            let port = server.localAddress!.port!
            let client = MediaClient()
            for _ in 0..<3 { #expect(try await ask(client, 0..<4, at: port) == body) }
            #expect(used.withLock { $0 } == 1)
            async let one = ask(client, 0..<4, at: port)
            async let other = ask(client, 0..<4, at: port)
            let both = try await [one, other]
            #expect(both == [body, body])
            #expect(used.withLock { $0 } <= 2)
            try await server.close()
        }

        /// Longer than the attempts of a fetch would last.
        @Test func `a reader whose place others have waits for it, and that is no failure`()
            async throws
        {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let long = try folder.write(Data(count: 60_000_000), as: "long.bin")
            let service = MediaService(logger: Logger(label: "media"))
            let asset = try folder.write(Data(Self.contents), as: "asset.bin")
            service.share(hash: Media.hash, path: asset)
            let other = String(Media.hash.reversed())
            service.share(hash: other, path: long)
            let (port, node) = try await service.open(limits: ConnectionPlaces.Limits(media: 1))
            // Something is on its way to it, and it takes its time.
            let holder = try await RawConnection.connect(to: port, reads: false)
            try await holder.writeAndFlush(
                ByteBuffer(string: "GET /asset/\(other) HTTP/1.1\r\nHost: x\r\n\r\n"))
            try await Task.sleep(for: .milliseconds(300))
            let print = try MediaFingerprint(of: asset)
            let cache = MediaCache(folder: folder.path("cache"), limit: 2_000_000)
            async let file = blocking { cancellation throws(MediaError) in
                try cache.fetch(
                    IncomingFile(
                        url: "http://127.0.0.1:\(port)\(Self.path)", print, server: MediaClient()),
                    cancellation: cancellation)
            }
            try await Task.sleep(for: .seconds(2))
            try await holder.close()
            #expect(try await file.fingerprint == print)
            // Who does not want it any more does not wait.
            let second = try await RawConnection.connect(to: port, reads: false)
            try await second.writeAndFlush(
                ByteBuffer(string: "GET /asset/\(other) HTTP/1.1\r\nHost: x\r\n\r\n"))
            try await Task.sleep(for: .milliseconds(300))
            let cancellation = MediaCancellation()
            let cancelled = Task {
                try await ask(MediaClient(), 0..<9, at: port, cancellation)
            }
            try await Task.sleep(for: .milliseconds(500))
            cancellation.cancel()
            let error = await #expect(throws: MediaError.self) { try await cancelled.value }
            #expect(error?.code == .cancelled)
            try await second.close()
            _ = await node.stop()
        }

        @Test(arguments: [
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmore",
            head + "Content-Length: 3\r\n\r\nfew",
            head + "Content-Length: 99999999\r\n\r\nendless",
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\nmuch",
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-7/9\r\nContent-Length: 4\r\n\r\nelse",
            "gibberish\r\n\r\n",
        ])
        func `another answer is an error that says so`(answer: String) async throws {
            let server = try await RawConnection.answeringServer(answer)
            let port = server.localAddress!.port!
            let error = await #expect(throws: MediaError.self) {
                try await ask(MediaClient(), 0..<4, at: port)
            }
            #expect(error?.code == .network && error?.subject.hasSuffix(Self.path) == true)
            try await server.close()
        }

        @Test(arguments: [
            (404, MediaError.Code.notFound), (410, .notFound), (416, .damaged), (301, .notReadable),
            (302, .notReadable), (303, .notReadable), (307, .notReadable), (308, .notReadable),
        ])
        func `what a server says of itself is told apart, and nobody else is asked`(
            status: Int, code: MediaError.Code
        ) async throws {
            let isAsked = Mutex(false)
            let other = try await RawConnection.answeringServer(
                Self.head + "Content-Length: 4\r\n\r\nmore"
            ) { isAsked.withLock { $0 = true } }
            let address = "http://127.0.0.1:\(other.localAddress!.port!)\(Self.path)"
            let server = try await RawConnection.answeringServer(
                "HTTP/1.1 \(status) So\r\nLocation: \(address)\r\nContent-Length: 0\r\n\r\n")
            let port = server.localAddress!.port!
            let error = await #expect(throws: MediaError.self) {
                try await ask(MediaClient(), 0..<4, at: port)
            }
            #expect(error?.code == code)
            // Nor by who fetches all of it.
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let cache = MediaCache(folder: folder.path("cache"), limit: 1_000)
            let print = MediaFingerprint(hash: [UInt8](repeating: 10, count: 32), byteCount: 4)
            let fetched = await #expect(throws: MediaError.self) {
                try await blocking { cancellation throws(MediaError) in
                    try cache.fetch(
                        IncomingFile(
                            url: "http://127.0.0.1:\(port)\(Self.path)", print,
                            server: MediaClient()),
                        cancellation: cancellation)
                }
            }
            #expect(fetched?.code == code)
            #expect(!isAsked.withLock { $0 })
            for server in [server, other] { try await server.close() }
        }

        @Test func `a leader that dies in the middle of a part is one that does not answer`()
            async throws
        {
            let server = try await RawConnection.answeringServer(
                Self.head + "Content-Length: 4\r\n\r\nab", closes: true)
            let port = server.localAddress!.port!
            let error = await #expect(throws: MediaError.self) {
                try await ask(MediaClient(), 0..<4, at: port)
            }
            #expect(error?.code == .network)
            try await server.close()
        }

        @Test func `who is not interested any more does not wait for a silent server`() async throws
        {
            let server = try await RawConnection.silentServer()
            let cancellation = MediaCancellation()
            let port = server.localAddress!.port!
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { cancellation.cancel() }
            let error = await #expect(throws: MediaError.self) {
                try await ask(MediaClient(), 0..<4, at: port, cancellation)
            }
            #expect(error?.code == .cancelled)
            try await server.close()
        }

        @Test(arguments: ["https://host/a", "http:///a", "http://host:0/a", "/tmp/a", ""])
        func `an address of something else is refused`(url: String) {
            let error = #expect(throws: MediaError.self) {
                _ = try MediaClient().bytes(0..<4, of: url, MediaCancellation())
            }
            #expect(error?.code == .unsupported)
        }
    }
}
