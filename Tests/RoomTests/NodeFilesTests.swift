import Foundation
import Logging
import Synchronization
import Testing
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout

@testable import TuttiRoom

extension IntegrationTests {
    /// What a node that took over the lead hands out of files that only the leader before has.
    @Suite(.timeLimit(.minutes(1))) struct NodesFiles {
        private static let contents = RandomBytes.make(count: 6_000_001, seed: 71)
        private static let logger = Logger(label: "media")

        /// So long that its fetch may take its time.
        private func asset(of path: String) throws -> AssetDescriptor {
            let print = try MediaFingerprint(of: path)
            return try AssetDescriptor(
                hash: ContentHash(bytes: print.hash), byteCount: print.byteCount,
                sampleRate: 16_000, frameCount: 16_000 * 36_000, title: "long",
                fileExtension: "bin",
                piecesRoot: print.piecesRoot.map { try ContentHash(bytes: $0) })
        }

        /// A node that leads after the one at this port, and hands out this asset.
        private func leader(
            after port: Int, of asset: AssetDescriptor, in folder: TemporaryFolder,
            as name: String
        ) async throws -> (files: NodeFiles, port: Int, node: RunningNode) {
            let cache = MediaCache(folder: folder.path(name), limit: 1 << 30)
            let media = MediaService(logger: Self.logger)
            let files = NodeFiles(
                SessionAssets(cache: cache, pieces: media.pieces, logger: Self.logger), media,
                cache, .open)
            files.lead(after: Holders(predecessor: HostPort(host: "127.0.0.1", port: port)))
            media.provide { $0 == asset.hash.hex ? await files.fetch(asset) : nil }
            let (port, node) = try await media.open()
            return (files, port, node)
        }

        /// The leader before, which has the file; what it sends instead of it.
        private func source(
            _ bytes: [UInt8], as asset: AssetDescriptor, in folder: TemporaryFolder
        ) async throws -> (port: Int, node: RunningNode) {
            let media = MediaService(logger: Self.logger)
            media.share(
                hash: asset.hash.hex, path: try folder.write(Data(bytes), as: "source.bin"))
            return try await media.open()
        }

        private func ask(
            _ range: Range<Int>, of asset: AssetDescriptor, at port: Int
        ) async throws -> [UInt8] {
            try await blocking(on: DispatchQueue(label: "test")) { _ throws(MediaError) in
                try MediaClient().bytes(
                    Int64(range.lowerBound)..<Int64(range.upperBound),
                    of: "http://127.0.0.1:\(port)/asset/\(asset.hash.hex)", MediaCancellation())
            }
        }

        private func isWhole(in folder: TemporaryFolder, _ name: String) -> Bool {
            let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path(name))
            return names?.contains { $0.hasSuffix(".bin") } ?? false
        }

        @Test func `any part is handed on before the rest is here, also by two in a row`()
            async throws
        {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let asset = try asset(of: folder.write(Data(Self.contents), as: "a.bin"))
            let (first, source) = try await source(Self.contents, as: asset, in: folder)
            let second = try await leader(after: first, of: asset, in: folder, as: "second")
            let third = try await leader(after: second.port, of: asset, in: folder, as: "third")
            let size = Self.contents.count
            for range in [0..<100_000, size - 70_000..<size, 3_000_001..<3_100_000] {
                #expect(
                    try await ask(range, of: asset, at: third.port) == Array(Self.contents[range]))
            }
            #expect(!isWhole(in: folder, "second") && !isWhole(in: folder, "third"))
            // Its own room has the same file on its way, once.
            let own = try await second.files.file(of: asset, nil)
            let lent = try #require(await second.files.fetch(asset))
            #expect(own.incoming === lent)
            #expect(try await ask(0..<size, of: asset, at: third.port) == Self.contents)
            try await until("both have all of it") {
                isWhole(in: folder, "second") && isWhole(in: folder, "third")
            }
            try await until("it is shared as a file") { await second.files.fetch(asset) == nil }
            #expect(try await ask(5..<9, of: asset, at: second.port) == Array(Self.contents[5..<9]))
            for node in [third.node, second.node, source] { _ = await node.stop() }
        }

        /// A room that follows the node at this port, and has fetched an asset from it.
        private func room(
            following port: Int, with asset: AssetDescriptor, in folder: TemporaryFolder
        ) async throws -> (port: Int, node: RunningNode) {
            let cache = MediaCache(folder: folder.path("room"), limit: 1 << 30)
            let media = MediaService(logger: Self.logger)
            let files = NodeFiles(
                SessionAssets(cache: cache, pieces: media.pieces, logger: Self.logger), media,
                cache, .open)
            let finder = LeaderFinder(fixed: nil, name: nil, logger: Self.logger)
            finder.connected(
                to: LeaderFinder.Found(
                    address: HostPort(host: "127.0.0.1", port: port), at: HostClock.now()))
            files.follow(finder)
            let welcome = Welcome(
                leaderName: "a", timePort: 0, mediaPort: UInt16(port), term: 1,
                groupClockEpoch: 1)
            let file = try await files.file(of: asset, welcome)
            if let incoming = file.incoming {
                _ = try await files.complete(incoming, of: asset, welcome)
            }
            return try await media.open()
        }

        @Test func `what a lost leader had comes from a room that has it`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let asset = try asset(of: folder.write(Data(Self.contents), as: "a.bin"))
            let (first, source) = try await source(Self.contents, as: asset, in: folder)
            let room = try await room(following: first, with: asset, in: folder)
            _ = await source.stop()

            let next = try await leader(after: first, of: asset, in: folder, as: "next")
            let rooms = Mutex<[HostPort]>([])
            next.files.lead(
                after: Holders(
                    predecessor: HostPort(host: "127.0.0.1", port: first), isLost: true,
                    rooms: { rooms.withLock { $0 } }))
            // Nobody has it that it knows of: at first it may be slow, then it is lost.
            #expect(await !next.files.isLost(asset))
            try await until("it is lost") { await next.files.isLost(asset) }
            rooms.withLock { $0 = [HostPort(host: "127.0.0.1", port: room.port)] }
            #expect(await !next.files.isLost(asset))
            let range = 2_000_000..<2_300_000
            #expect(try await ask(range, of: asset, at: next.port) == Array(Self.contents[range]))
            try await until("all of it is there") { isWhole(in: folder, "next") }
            #expect(await !next.files.isLost(asset))
            for node in [next.node, room.node] { _ = await node.stop() }
        }

        /// Two nodes that have led one after the other would ask each other for ever.
        @Test func `who is asked whether it has something does not go and ask others`() async throws
        {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let asset = try asset(of: folder.write(Data(Self.contents), as: "a.bin"))
            let media = MediaService(logger: Self.logger)
            let asked = Mutex(0)
            media.provide { _ in
                asked.withLock { $0 += 1 }
                return nil
            }
            let (port, node) = try await media.open()
            let place = HostPort(host: "127.0.0.1", port: port)
            let has = try await blocking { cancellation throws(MediaError) in
                MediaClient().has(place.address(of: asset), within: .seconds(10), cancellation)
            }
            #expect(!has && asked.withLock { $0 } == 0)
            _ = await node.stop()
        }

        @Test func `wrong bytes are not handed on`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let asset = try asset(of: folder.write(Data(Self.contents), as: "a.bin"))
            var wrong = Self.contents
            wrong[500_000] ^= 1
            let (first, source) = try await source(wrong, as: asset, in: folder)
            let next = try await leader(after: first, of: asset, in: folder, as: "next")
            await #expect(throws: MediaError.self) {
                try await ask(450_000..<550_000, of: asset, at: next.port)
            }
            for node in [next.node, source] { _ = await node.stop() }
        }

        @Test func `what is given up by the node's own room comes again for others`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let asset = try asset(of: folder.write(Data(Self.contents), as: "a.bin"))
            let (first, source) = try await source(Self.contents, as: asset, in: folder)
            let next = try await leader(after: first, of: asset, in: folder, as: "next")
            let own = try await next.files.file(of: asset, nil)
            own.incoming?.cancellation.cancel()
            let range = 2_000_000..<2_300_000
            #expect(try await ask(range, of: asset, at: next.port) == Array(Self.contents[range]))
            for node in [next.node, source] { _ = await node.stop() }
        }

        @Test func `a leader before that is gone is said so, and soon`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let asset = try asset(of: folder.write(Data(Self.contents), as: "a.bin"))
            let (first, source) = try await source(Self.contents, as: asset, in: folder)
            _ = await source.stop()
            let next = try await leader(after: first, of: asset, in: folder, as: "next")
            await #expect(throws: MediaError.self) {
                try await ask(0..<9, of: asset, at: next.port)
            }
            _ = await next.node.stop()
        }
    }
}
