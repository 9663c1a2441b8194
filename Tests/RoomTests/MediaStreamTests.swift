import Foundation
import Logging
import NIOCore
import Synchronization
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

extension IntegrationTests {
    /// How a whole asset comes from another node, whatever happens on the way.
    @Suite(.timeLimit(.minutes(1))) struct MediaStreams {
        private static let contents = RandomBytes.make(count: 300_001, seed: 53)
        private static let size = contents.count
        /// Who says nothing for so long does not answer; the tests below are silent on purpose.
        private static let patience = MediaClient.Patience(
            answer: .milliseconds(500), least: 4, keptAnswer: .milliseconds(500))

        private func stream(
            _ url: String, _ size: Int = size, _ client: MediaClient = MediaClient(patience),
            _ cancellation: MediaCancellation = MediaCancellation()
        ) -> ServedStream {
            ServedStream(0..<Int64(size), at: client, cancellation) { url }
        }

        private func take(
            _ url: String, _ size: Int = size, _ client: MediaClient = MediaClient(patience),
            _ cancellation: MediaCancellation = MediaCancellation()
        ) async throws -> [UInt8] {
            try await blocking { _ throws(MediaError) in
                let stream = stream(url, size, client, cancellation)
                var all: [UInt8] = []
                while case let bytes = try stream.take(70_000), !bytes.isEmpty { all += bytes }
                return all
            }
        }

        @Test func `a whole asset comes in one answer`() async throws {
            let node = try await ScriptedNode.open { _, begin, channel in
                channel.say(ScriptedNode.head(from: begin, of: Self.size), Self.contents)
            }
            #expect(try await take(node.url) == Self.contents)
            #expect(node.begins == [0])
            try await node.close()
        }

        @Test(arguments: [true, false])
        func `what breaks off goes on with the very byte behind the last one`(
            closes: Bool
        ) async throws {
            // Some leaders close, others are gone without a word.
            let node = try await ScriptedNode.open { _, begin, channel in
                channel.say(
                    ScriptedNode.head(from: begin, of: Self.size),
                    Self.contents[begin..<min(Self.size, begin + 100_003)], closes: closes)
            }
            #expect(try await take(node.url) == Self.contents)
            #expect(node.begins == [0, 100_003, 200_006])
            try await node.close()
        }

        @Test func `a leader that always breaks off at once is given up`() async throws {
            let node = try await ScriptedNode.open { _, begin, channel in
                channel.say(ScriptedNode.head(from: begin, of: Self.size), closes: true)
            }
            let error = await #expect(throws: MediaError.self) { try await take(node.url) }
            #expect(error?.code == .network)
            #expect(node.begins == [0, 0, 0])
            try await node.close()
        }

        @Test(arguments: [5, 300_000, 300_002, 99_999_999])
        func `an answer of another length than was asked for is none`(length: Int) async throws {
            let node = try await ScriptedNode.open { _, begin, channel in
                channel.say(
                    ScriptedNode.head(from: begin, of: Self.size, length: length), Self.contents)
            }
            let error = await #expect(throws: MediaError.self) { try await take(node.url) }
            #expect(error?.code == .network)
            try await node.close()
        }

        @Test func `what is sent beyond the length is never handed out`() async throws {
            let node = try await ScriptedNode.open { _, begin, channel in
                channel.say(
                    ScriptedNode.head(from: begin, of: Self.size), Self.contents[begin...] + [1, 2])
            }
            let client = MediaClient(Self.patience)
            for _ in 0..<3 {
                #expect(try await take(node.url, Self.size, client) == Self.contents)
            }
            try await node.close()
        }

        /// One that says a byte each 60 ms.
        private func slowNode(_ part: [UInt8]) async throws -> ScriptedNode {
            try await ScriptedNode.open { _, begin, channel in
                channel.say(ScriptedNode.head(from: begin, of: part.count))
                for (number, byte) in part[begin...].enumerated() {
                    channel.eventLoop.scheduleTask(in: .milliseconds(60 * Int64(number + 1))) {
                        channel.say("", [byte])
                    }
                }
            }
        }

        @Test func `a leader that is slow is waited for as long as enough comes`() async throws {
            // Longer in all than it may be silent.
            let part = Array(Self.contents.prefix(12))
            let node = try await slowNode(part)
            #expect(try await take(node.url, part.count) == part)
            #expect(node.begins == [0])
            try await node.close()
        }

        @Test func `who says a byte now and then does not keep a reader`() async throws {
            let part = Array(Self.contents.prefix(100))
            let node = try await slowNode(part)
            let client = MediaClient(
                MediaClient.Patience(answer: .milliseconds(500), least: 65_536))
            let error = await #expect(throws: MediaError.self) {
                try await take(node.url, part.count, client)
            }
            #expect(error?.code == .network)
            #expect(node.begins.count == 3, "it was asked again for the rest")
            try await node.close()
        }

        @Test func `a leader that sends elsewhere is not followed`() async throws {
            let other = try await ScriptedNode.open { _, begin, channel in
                channel.say(ScriptedNode.head(from: begin, of: Self.size), Self.contents)
            }
            let node = try await ScriptedNode.open { [url = other.url] _, begin, channel in
                guard begin > 0 else {
                    return channel.say(
                        ScriptedNode.head(from: 0, of: Self.size), Self.contents.prefix(9),
                        closes: true)
                }
                channel.say(
                    "HTTP/1.1 307 Temporary Redirect\r\nLocation: \(url)\r\nContent-Length: 0\r\n\r\n"
                )
            }
            // In the middle as at the beginning.
            let error = await #expect(throws: MediaError.self) { try await take(node.url) }
            #expect(error?.code == .notReadable)
            #expect(other.begins.isEmpty && node.begins == [0, 9])
            for node in [node, other] { try await node.close() }
        }

        @Test func `a leader that has no place is asked again when it said`() async throws {
            let asked = Mutex<[ContinuousClock.Instant]>([])
            let node = try await ScriptedNode.open { number, begin, channel in
                asked.withLock { $0.append(.now) }
                guard number > 1 else {
                    return channel.say(MediaService.noPlace, closes: true)
                }
                channel.say(ScriptedNode.head(from: begin, of: Self.size), Self.contents)
            }
            #expect(try await take(node.url) == Self.contents)
            let times = asked.withLock { $0 }
            #expect(times.count == 2 && times[1] - times[0] >= .seconds(1))
            try await node.close()
        }

        @Test func `whoever does not want it any more is let go in the middle`() async throws {
            let cancellation = MediaCancellation()
            let node = try await ScriptedNode.open { _, begin, channel in
                channel.say(ScriptedNode.head(from: begin, of: Self.size), [1, 2, 3])
                channel.eventLoop.scheduleTask(in: .milliseconds(100)) { cancellation.cancel() }
            }
            let error = await #expect(throws: MediaError.self) {
                try await take(node.url, Self.size, MediaClient(), cancellation)
            }
            #expect(error?.code == .cancelled)
            #expect(node.begins == [0])
            try await node.close()
        }

        @Test func `a reader that takes nothing gets no more than the system holds for it`()
            async throws
        {
            let size = 16_000_000
            let chunk = ByteBuffer(repeating: 7, count: 65_536)
            let sendBuffer = 65_536
            let sent = Counter()
            let node = try await ScriptedNode.open(sendBuffer: sendBuffer) { _, begin, channel in
                channel.say(ScriptedNode.head(from: begin, of: size))
                @Sendable func send(_ left: Int) {
                    guard left > 0 else { return }
                    let part = chunk.getSlice(at: 0, length: min(left, chunk.readableBytes))!
                    channel.writeAndFlush(part).whenSuccess {
                        sent.add(part.readableBytes)
                        send(left - part.readableBytes)
                    }
                }
                send(size)
            }
            let all = try await blocking { [url = node.url] _ throws(MediaError) in
                let stream = stream(url, size, MediaClient())
                var count = try stream.take(1).count
                // Until nothing moves any more.
                var before = -1
                while case let now = sent.value, now != before {
                    before = now
                    usleep(200_000)
                }
                // Linux allows twice of what it is told for a buffer; a chunk is on its way.
                let held = 2 * (sendBuffer + MediaClient.receiveBuffer) + MediaClient.readSize
                #expect(before <= held + chunk.readableBytes, "\(before)")
                while case let bytes = try stream.take(1_000_000), !bytes.isEmpty {
                    count += bytes.count
                }
                return count
            }
            #expect(all == size)
            try await node.close()
        }

        /// The real service, a real cache, and a path that breaks between them.
        @Test func `a fetch from a service goes on where the service came back`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let contents = RandomBytes.make(count: 3_000_001, seed: 54)
            let path = try folder.write(Data(contents), as: "asset.bin")
            let (print, _) = try MediaFingerprint.measure(path)
            let service = MediaService(logger: Logger(label: "media"))
            service.share(hash: Media.hash, path: path)
            let (port, first) = try await service.open()
            let url = "http://127.0.0.1:\(port)/asset/" + Media.hash
            let reached = Mutex<[Int64]>([])
            let half: Int64 = 1_500_000
            let cache = MediaCache(folder: folder.path("cache"), limit: 10_000_000)
            let (isHalf, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            async let file = blocking { cancellation throws(MediaError) in
                try cache.fetch(
                    IncomingFile(url: url, print, server: MediaClient()),
                    cancellation: cancellation
                ) { held in
                    let before = reached.withLock { reached in
                        defer { reached.append(held) }
                        return reached.last ?? 0
                    }
                    guard before < half, held >= half else { return }
                    isHalf.signal()
                    goesOn.wait()
                }
            }
            try await blocking { _ throws(MediaError) in isHalf.wait() }
            _ = await first.stop()
            let (_, second) = try await service.open(port: port)
            goesOn.signal()
            let held = try await file
            #expect(try Data(contentsOf: URL(fileURLWithPath: held.path)) == Data(contents))
            let steps = reached.withLock { $0 }
            #expect(steps == steps.sorted(), "nothing came twice")
            _ = await second.stop()
        }
    }
}
