import Foundation
import Logging
import Testing
import TuttiGroupControl
import TuttiTiming

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

/// What fills a leader's queue, without a leader.
@Suite(.timeLimit(.minutes(2))) struct AssetReaderTests {
    static func reader(_ arguments: [String], in folder: TemporaryFolder) -> AssetReader {
        var logger = Logger(label: "reader")
        logger.logLevel = .critical
        let media = MediaService(logger: logger)
        let cache = MediaCache(folder: folder.path("cache"), limit: 1 << 20)
        let library = SessionAssets(cache: cache, pieces: media.pieces, logger: logger)
        return AssetReader(arguments, library, media, logger: logger)
    }

    /// What is listed last is read while the list ends: whoever looks in between must not find that
    /// there is nothing left.
    @Test func `that nothing can be played is an error at every try`() async throws {
        let folder = try TemporaryFolder()
        let texts = try (0..<3).map {
            try folder.write(Data("Dear diary,\n".utf8), as: "\($0).txt")
        }
        for _ in 0..<300 {
            let reader = Self.reader(texts, in: folder)
            let running = Task { await reader.run() }
            await #expect(throws: RoomError.self) { try await reader.begin() }
            running.cancel()
            await running.value
        }
    }

    /// A session of many evenings.
    @Test func `items that were removed make room for others`() async throws {
        let folder = try TemporaryFolder()
        let most = SessionState.longestQueue
        let names = (0..<most).map { "http://127.0.0.1:1/\($0).flac" }
        let list = try folder.write(Data(names.joined(separator: "\n").utf8), as: "all.m3u")
        let reader = Self.reader([], in: folder)
        let (told, tell) = AsyncStream.makeStream(of: [LeaderInput].self)
        // Nobody wants any of them read.
        reader.follow { _, _ in
            []
        } tell: {
            tell.yield($0)
        }
        let running = Task { await reader.run() }
        var inputs = told.makeAsyncIterator()
        var listed: Set<QueueEntry.ID> = []
        for round in 1...3 {
            reader.add([.location(list)], at: .end)
            var fresh: [QueueEntry.ID] = []
            while fresh.count < most {
                for case .listed(let entries, _, _) in await inputs.next() ?? [] {
                    fresh += entries.map(\.id)
                }
            }
            #expect(fresh.count == most)
            #expect(listed.isDisjoint(with: fresh), "no identity is used twice")
            listed.formUnion(fresh)
            #expect(listed.count == round * most)
            reader.forget(fresh)
        }
        running.cancel()
        await running.value
    }
}
