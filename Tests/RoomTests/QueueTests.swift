import Foundation
import NIOCore
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiPlayout

@testable import TuttiRoom

extension IntegrationTests {
    /// A queue that is read while it is played.
    @Suite struct Queueing {
        @Test(.timeLimit(.minutes(1)))
        func `what cannot be played is left out, and the node says how much that was`()
            async throws
        {
            try await withGroup { group in
                let good = try group.folder.writeNoise(seconds: 1, seed: 61, as: "good.wav")
                let text = try group.folder.write(Data("Dear diary,\n".utf8), as: "diary.txt")
                let empty = try group.folder.write(Data(), as: "empty.flac")
                let leader = LeaderNode(
                    group.configuration("leader", .virtual(VirtualCardOptions())),
                    assets: [text, good, empty, group.folder.path("missing.flac")],
                    roomsToWaitFor: 1, loops: false)
                try await leader.run()
                #expect(leader.missedItems == (3, 4))
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a folder with a cover plays, and nothing of it is missed`() async throws {
            try await withGroup { group in
                try FileManager.default.createDirectory(
                    atPath: group.folder.path("album"), withIntermediateDirectories: true)
                _ = try group.folder.writeNoise(seconds: 1, seed: 62, as: "album/1.wav")
                for name in ["cover.jpg", "a.cue", ".nomedia"] {
                    _ = try group.folder.write(Data("x".utf8), as: "album/\(name)")
                }
                let leader = LeaderNode(
                    group.configuration("leader", .virtual(VirtualCardOptions())),
                    assets: [group.folder.path("album")], roomsToWaitFor: 1, loops: false)
                try await leader.run()
                #expect(leader.missedItems == (0, 1))
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `several items of which none can be played are one error`() async throws {
            try await withGroup { group in
                let text = try group.folder.write(Data("Dear diary,\n".utf8), as: "diary.txt")
                let leader = LeaderNode(
                    group.configuration("leader"), assets: [text, group.folder.path("no.flac")],
                    roomsToWaitFor: 1, loops: false)
                let error = await #expect(throws: RoomError.self) { try await leader.run() }
                #expect(error?.code == .badAsset)
                #expect(error?.description.contains("none of 2 items") == true)
                #expect(error?.description.contains(text) == true)
                #expect(leader.address == nil)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `an address plays at once, and nobody says that it was changed`() async throws {
            try await withGroup { group in
                let (addresses, server) = try await group.serveNoise(
                    1, seconds: 20, firstSeed: 640)
                let book = LogBook()
                try await group.lead(addresses) { $0.logger = book.logger }
                try await group.untilPlaying(["leader"])
                #expect(book.entries("a room cannot play").isEmpty, "\(book.all)")
                _ = await server.stop()
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `an item that nobody has read is read when somebody goes to it`() async throws {
            try await withGroup { group in
                let (addresses, server) = try await group.serveNoise(
                    6, seconds: 20, firstSeed: 640)
                try await group.lead(addresses)
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                try await until("two addresses behind it are read") {
                    try await client.queue().items.count { $0.state == .known } >= 3
                }
                let last = try #require(try await client.queue().items.last)
                #expect(last.state == .unread)
                let effect = try await client.perform(.queue(.play(last.id)))
                #expect(effect.phase == .playing || effect.phase == .preparing)
                try await group.untilStatus("it plays") {
                    $0.phase == .playing && $0.index == 5
                        && $0.rooms.allSatisfy { $0.state == .playing }
                }
                _ = await server.stop()
            }
        }

        /// A server that takes the connection and says nothing.
        @Test(.timeLimit(.minutes(1)))
        func `the first item plays while the second is still being read`() async throws {
            let server = try await RawConnection.silentServer()
            let slow = "http://127.0.0.1:\(server.localAddress?.port ?? 0)/slow.wav"
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 1, seed: 63, as: "first.wav")
                try await group.lead([first, slow])
                try await group.untilStatus("the second is waited for") {
                    $0.detail == "the next item is still being read" && $0.count == 2
                }
            }
            try await server.close()
        }

        @Test(.timeLimit(.minutes(1)))
        func `a file that is written anew goes on as what it is, then without it`() async throws {
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 40, seed: 64, as: "first.wav")
                let second = try group.folder.writeNoise(seconds: 40, seed: 65, as: "second.wav")
                try await group.lead([first, second], roomsToWaitFor: 2)
                group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                _ = try group.folder.writeNoise(seconds: 50, seed: 66, as: "first.wav")
                try await group.untilStatus("the new bytes play") { status in
                    status.phase == .playing && status.durationSeconds == 50
                        && status.rooms.allSatisfy { $0.state == .playing }
                }
                _ = try group.folder.write(Data("no sound".utf8), as: "first.wav")
                try await group.untilStatus("both play the next") { status in
                    status.title == "second" && status.phase == .playing
                        && status.rooms.allSatisfy { $0.state == .playing }
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a name that is no UTF-8 plays, and is shown as it was meant`() async throws {
            try await withGroup { group in
                let plain = try group.folder.writeNoise(seconds: 20, seed: 67, as: "plain.wav")
                let name = Array("caf".utf8) + [0xE9] + Array("? #1.wav".utf8)
                let path = String(fileName: Array(group.folder.path("").utf8) + name)
                #expect(rename(plain, path.cFileName) == 0)
                try await group.lead([path], roomsToWaitFor: 2)
                group.follow("attic")
                let status = try await group.untilPlaying(["attic", "leader"])
                #expect(status.title == "café? #1")
            }
        }
    }
}
