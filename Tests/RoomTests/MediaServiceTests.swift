import Foundation
import Glibc
import Logging
import NIOCore
import Testing

@testable import TuttiRoom

extension IntegrationTests {
    /// The media service as a room, a stranger and a hostile neighbour see it.
    @Suite struct Media {
        /// Larger than all socket buffers on the way together, so that a stalled reader stalls us.
        static let contents = {
            let part = RandomBytes.make(count: 100_003, seed: 51)
            return (0..<240).reduce(into: Data()) { data, _ in data.append(contentsOf: part) }
        }()
        static let hash = String(repeating: "0a", count: 32)

        private func withService(
            _ body: (_ port: Int, _ folder: TemporaryFolder) async throws -> Void
        ) async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let service = MediaService(logger: Logger(label: "media"))
            service.share(
                hash: Self.hash, path: try folder.write(Self.contents, as: "asset.bin"))
            let (port, running) = try await service.open()
            do {
                try await body(port, folder)
            } catch {
                _ = await running.stop()
                throw error
            }
            _ = await running.stop()
        }

        @Test(.timeLimit(.minutes(1)))
        func `one connection gets the whole, parts and heads, one after the other`() async throws {
            try await withService { port, _ in
                try await RawConnection.open(to: port) { connection in
                    let path = "/asset/\(Self.hash)"
                    let whole = try await connection.request("GET", path)
                    #expect(whole.status == 200)
                    #expect(whole.headers["accept-ranges"] == "bytes")
                    #expect(whole.body == Self.contents)

                    let head = try await connection.request("HEAD", path)
                    #expect(head.status == 200)
                    #expect(head.headers["content-length"] == "\(Self.contents.count)")

                    let size = Self.contents.count
                    for (header, range) in [
                        ("bytes=0-0", 0..<1), ("bytes=1000-299999", 1_000..<300_000),
                        ("bytes=\(size - 5)-", size - 5..<size), ("bytes=-7", size - 7..<size),
                    ] {
                        let part = try await connection.request(
                            "GET", path, headers: ["Range": header])
                        #expect(part.status == 206)
                        #expect(part.body == Self.contents[range])
                        #expect(
                            part.headers["content-range"]
                                == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
                    }
                    let beyond = try await connection.request(
                        "GET", path, headers: ["Range": "bytes=\(size)-"])
                    #expect(beyond.status == 416)
                    let post = try await connection.request("DELETE", path)
                    #expect(post.status == 405)
                }
            }
        }

        @Test(
            .timeLimit(.minutes(1)),
            arguments: [
                "/", "/asset/", "/asset/../secret", "/asset/..%2fsecret", "/asset//etc/passwd",
                "/asset/\(hash)/../../../../etc/passwd", "/asset/\(hash)x", "/etc/passwd",
                "/asset/\(hash.uppercased())", "//asset/\(hash)", "/asset/%00",
            ])
        func `only what was shared can be read, and under its own name`(
            path: String
        ) async throws {
            try await withService { port, folder in
                _ = try folder.write(Data("secret".utf8), as: "secret")
                try await RawConnection.open(to: port) { connection in
                    for method in ["GET", "HEAD"] {
                        let bad = try await connection.request(method, path)
                        #expect(bad.status == 404)
                    }
                    let good = try await connection.request("HEAD", "/asset/\(Self.hash)")
                    #expect(good.status == 200, "the connection goes on")
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a shared file that was written anew is refused, and holds nothing open`()
            async throws
        {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = try folder.write(Self.contents, as: "asset.bin")
            let service = MediaService(logger: Logger(label: "media"))
            service.share(hash: Self.hash, path: path, identity: FileIdentity(path: path))
            try FileManager.default.removeItem(atPath: path)
            _ = try folder.write(Self.contents, as: "asset.bin")
            let (port, running) = try await service.open()
            let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            try await RawConnection.open(to: port) { connection in
                for _ in 0..<100 {
                    let answer = try await connection.request("GET", "/asset/\(Self.hash)")
                    #expect(answer.status == 410)
                }
            }
            let after = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            #expect(after - before < 50)
            _ = await running.stop()
        }

        @Test(.timeLimit(.minutes(1)))
        func `what is held is served when its name is gone, and not when it was written to`()
            async throws
        {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = try folder.write(Self.contents, as: "asset.bin")
            let service = MediaService(logger: Logger(label: "media"))
            service.share(hash: Self.hash, path: path, identity: FileIdentity(path: path))
            service.hold([Self.hash])
            try FileManager.default.removeItem(atPath: path)
            let (port, running) = try await service.open()
            try await RawConnection.open(to: port) { connection in
                let answer = try await connection.request("GET", "/asset/\(Self.hash)")
                #expect(answer.status == 200 && answer.body == Self.contents)
                service.hold([])
                let gone = try await connection.request("GET", "/asset/\(Self.hash)")
                #expect(gone.status == 410)
            }
            _ = try folder.write(Self.contents, as: "asset.bin")
            service.share(hash: Self.hash, path: path, identity: FileIdentity(path: path))
            service.hold([Self.hash])
            let writer = try FileHandle(forWritingTo: URL(filePath: path))
            try writer.seek(toOffset: 10)
            try writer.write(contentsOf: Data([0xAA, 0xBB]))
            try writer.close()
            try await RawConnection.open(to: port) { connection in
                let answer = try await connection.request("GET", "/asset/\(Self.hash)")
                #expect(answer.status == 410)
            }
            _ = await running.stop()
        }

        /// Its head asks for one thing, which is answered before its body has come.
        @Test(.timeLimit(.minutes(1)))
        func `a request that becomes nonsense behind its answer gets no second one`() async throws {
            try await withService { port, _ in
                try await RawConnection.open(to: port) { connection in
                    let answer = try await connection.request(
                        "GET", "/", headers: ["Transfer-Encoding": "chunked"])
                    #expect(answer.status == 404)
                    try await connection.send("no number\r\n".utf8)
                    let rest = try await connection.readToEnd()
                    #expect(rest.readableBytes == 0, "\(String(buffer: rest))")
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a shared file that is gone is gone, not an error of the service`() async throws {
            try await withService { port, folder in
                try FileManager.default.removeItem(atPath: folder.path("asset.bin"))
                try await RawConnection.open(to: port) { connection in
                    let path = "/asset/\(Self.hash)"
                    let gone = try await connection.request("GET", path)
                    #expect(gone.status == 410)
                    let unknown = try await connection.request("GET", "/")
                    #expect(unknown.status == 404)
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a client that stops reading holds up neither others nor the end`() async throws {
            try await withService { port, _ in
                let path = "/asset/\(Self.hash)"
                try await RawConnection.open(to: port, reads: false) { stalled in
                    try await stalled.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
                    try await RawConnection.open(to: port) { other in
                        let whole = try await other.request("GET", path)
                        #expect(whole.body.count == Self.contents.count)
                    }
                }
            }
            // The same again, with the service ending while the client stalls.
            var stalled: (any Channel)?
            try await withService { port, _ in
                let channel = try await RawConnection.connect(to: port, reads: false)
                let request = "GET /asset/\(Self.hash) HTTP/1.1\r\nHost: a\r\n\r\n"
                try await channel.writeAndFlush(ByteBuffer(string: request))
                stalled = channel
            }
            try? await stalled?.close()
        }

        @Test(.timeLimit(.minutes(1)))
        func `a reader is served with a chunk at a time, not with memory`() async throws {
            try await withService { port, _ in
                // Eight chunks: one is held, and this process works with memory for other things.
                let allowance = 8 * 128 * 1024
                let before = try OwnMemory.present
                let most = try await withCheckedThrowingContinuation { continuation in
                    Thread {
                        continuation.resume(
                            with: Result {
                                try OwnMemory.most(
                                    whileReading: Self.contents.count,
                                    of: "/asset/\(Self.hash)", at: port)
                            })
                    }.start()
                }
                #expect(most - before < allowance)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `bytes that are no HTTP end their own connection only`() async throws {
            try await withService { port, _ in
                for seed in 1...8 as ClosedRange<UInt64> {
                    try await RawConnection.open(to: port) { connection in
                        try await connection.send(RandomBytes.make(count: 3_000, seed: seed))
                        // It may be closed by now.
                        try? await connection.send("\r\n\r\n".utf8)
                        _ = try await connection.readToEnd()
                    }
                }
                try await RawConnection.open(to: port) { connection in
                    let head = try await connection.request("HEAD", "/asset/\(Self.hash)")
                    #expect(head.status == 200)
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `more connections than allowed are closed, and room is made again`() async throws {
            try await withService { port, _ in
                let crowd = try await RawConnection.crowd(
                    of: MediaService.connectionsMax + 8, at: port, saying: "HEAD")
                try await until("the surplus is closed") {
                    crowd.count { !$0.isActive } >= 8
                }
                #expect(crowd.count { $0.isActive } <= MediaService.connectionsMax)
                for channel in crowd { try? await channel.close() }
                try await until("a newcomer is served") {
                    do {
                        try await RawConnection.open(to: port) { connection in
                            _ = try await connection.request("HEAD", "/asset/\(Self.hash)")
                        }
                        return true
                    } catch { return false }
                }
            }
        }
    }
}

extension MediaService {
    /// Serves at a port of its own, where nobody serves links.
    func open(
        port: Int = 0, limits: ConnectionPlaces.Limits = .init()
    ) async throws -> (port: Int, node: RunningNode) {
        let door = try await NodeServer.open(port, limits: limits)
        return (
            door.port,
            RunningNode {
                try await door.run(
                    links: { channel, _ in try? await channel.close() },
                    media: { await self.serve($0, $1) })
            }
        )
    }
}

/// Memory that only this process has.
private enum OwnMemory {
    /// Bytes that are present, `RssAnon` of `/proc/self/status`.
    static var present: Int {
        get throws {
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            let lines = status.split(separator: "\n")
            let line = try #require(lines.first { $0.hasPrefix("RssAnon:") })
            let words = line.split(whereSeparator: \.isWhitespace)
            let kilobytes = try #require(words.dropFirst().first)
            return try #require(Int(kilobytes)) * 1024
        }
    }

    /// Reads an answer and forgets it, on the calling thread, and looks at the memory meanwhile.
    static func most(whileReading count: Int, of path: String, at port: Int) throws -> Int {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(socket >= 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let isConnected = withUnsafeBytes(of: &address) { address in
            connect(
                socket, address.baseAddress!.assumingMemoryBound(to: sockaddr.self),
                socklen_t(address.count))
        }
        try #require(isConnected == 0)
        let request = Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        try #require(send(socket, request, request.count, 0) == request.count)
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        var received = 0
        var most = try present
        while received < count {
            let part = recv(socket, &buffer, buffer.count, 0)
            try #require(part > 0, "the answer ended early")
            received += part
            most = max(most, try present)
        }
        return most
    }
}

/// Bytes from a seed.
enum RandomBytes {
    static func make(count: Int, seed: UInt64) -> [UInt8] {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        return (0..<count).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
    }
}
