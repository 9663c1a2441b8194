import Foundation
import Logging
import Testing
import TuttiFFmpegMedia
import TuttiGroupControl

@testable import TuttiRoom

extension IntegrationTests {
    /// Somebody writes a file and plays it at once.
    @Suite(.timeLimit(.minutes(2))) struct RewrittenFiles {
        /// Lengths tell the old file from the new one.
        private static let seconds = (old: 20.0, new: 30.0)

        private func withQueue(
            _ body: (TestGroup, [QueueListing.Item], _ rewrite: () throws -> Void) async throws ->
                Void
        ) async throws {
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 60, seed: 81, as: "a.wav")
                let second = try group.folder.writeNoise(
                    seconds: Self.seconds.old, seed: 82, as: "b.wav")
                let other = try group.folder.writeNoise(
                    seconds: Self.seconds.new, seed: 83, as: "c.wav")
                try await group.lead([first, second], roomsToWaitFor: 2)
                group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                let folder = group.folder.path("cache-attic")
                try await until("the room has both files") {
                    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                    return names.count { $0.hasSuffix(".wav") } == 2
                }
                let items = try await group.client().queue().items
                try await body(group, items) {
                    try Data(contentsOf: URL(fileURLWithPath: other))
                        .write(to: URL(fileURLWithPath: second), options: [])
                }
            }
        }

        @Test(arguments: [0, 1])
        func `a file that was written right before it is played is played as it is now`(
            how: Int
        ) async throws {
            try await withQueue { group, items, rewrite in
                try rewrite()
                try await group.perform(how == 0 ? .queue(.play(items[1].id)) : .next)
                // From its very beginning: nobody was told to play the file of before.
                let status = try await group.client().status()
                #expect(status.durationSeconds == Self.seconds.new)
                let playing = try await group.untilStatus("all play it") {
                    $0.index == 1 && $0.phase == .playing
                        && $0.rooms.allSatisfy { $0.state == .playing }
                }
                #expect(playing.durationSeconds == Self.seconds.new)
                #expect(playing.rooms.allSatisfy { $0.detail == "" })
            }
        }

        @Test(arguments: [true, false])
        func `of several files with the same bytes the one that changed is meant`(
            isRewritten: Bool
        ) async throws {
            try await withGroup { group in
                let paths = try ["a.wav", "b.wav", "c.wav"].map {
                    try group.folder.writeNoise(seconds: Self.seconds.old, seed: 86, as: $0)
                }
                let other = try group.folder.writeNoise(
                    seconds: Self.seconds.new, seed: 87, as: "d.wav")
                try await group.lead(paths)
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                func queue() async throws -> [QueueListing.Item] { try await client.queue().items }
                try await until("all have been read") {
                    try await queue().allSatisfy { $0.state == .known }
                }
                // What comes behind the first is looked at too.
                for changed in [1, 0] {
                    let file = URL(fileURLWithPath: paths[changed])
                    let before = try await queue()
                    if isRewritten {
                        try Data(contentsOf: URL(fileURLWithPath: other)).write(
                            to: file, options: [])
                    } else if changed == 1 {
                        try FileManager.default.removeItem(at: file)
                    } else {
                        // The one that plays goes on without its name.
                        break
                    }
                    try await until("it is seen") { try await queue()[changed] != before[changed] }
                    let now = try await queue()
                    #expect(now.indices.filter { now[$0] != before[$0] } == [changed])
                    if isRewritten {
                        #expect(now[changed].durationSeconds == Self.seconds.new)
                    } else {
                        #expect(now[changed].reason?.isEmpty == false)
                    }
                }
                let status = try await client.status()
                #expect(status.rooms.allSatisfy { $0.detail == "" })
            }
        }

        @Test func `a file that was put back is played where it is asked for`() async throws {
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 60, seed: 88, as: "a.wav")
                let second = try group.folder.writeNoise(seconds: 20, seed: 89, as: "b.wav")
                try await group.lead([first, second])
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                func item() async throws -> QueueListing.Item { try await client.queue().items[1] }
                try await until("both have been read") { try await item().state == .known }
                try FileManager.default.moveItem(atPath: second, toPath: second + ".away")
                try await until("it is missed") { try await item().state == .unplayable }
                let id = try await item().id
                await #expect(throws: RoomError.self) {
                    try await group.perform(.queue(.play(id)))
                }
                try FileManager.default.moveItem(atPath: second + ".away", toPath: second)
                try await group.perform(.queue(.play(id)))
                let status = try await group.untilStatus("it plays") {
                    $0.index == 1 && $0.phase == .playing
                }
                #expect(status.durationSeconds == 20)
                #expect(try await item().state == .known)
            }
        }

        @Test func `a room says of an edited file that it was changed`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = try folder.writeNoise(seconds: 1, seed: 84, as: "a.wav")
            let media = MediaService(logger: .init(label: "media"))
            let library = SessionAssets(
                cache: .init(folder: folder.path("cache"), limit: 1 << 30), pieces: media.pieces,
                logger: .init(label: "media"))
            let asset = try library.describe(
                AssetList.Item(location: path, isMissed: true), .init())
            library.insert(asset)
            let files = NodeFiles(library, media, library.cache, .open)
            #expect(files.objection(to: asset.descriptor) == nil)
            _ = try folder.writeNoise(seconds: 2, seed: 85, as: "a.wav")
            let objection = try #require(files.objection(to: asset.descriptor))
            #expect(asset.descriptor.words(for: objection).contains("its file was changed"))
        }
    }
}
