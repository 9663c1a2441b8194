import Foundation
import Testing
import TuttiGroupControl
import TuttiRoom

/// A queue that is changed by clients while it plays, and what they are told of it.
extension IntegrationTests {
    @Suite struct LivingQueue {
        @Test func `a leader without anything plays what is added, and goes on with more`()
            async throws
        {
            try await withGroup { group in
                try await group.lead([])
                let client = try await group.client()
                #expect(try await client.queue().items.isEmpty)
                let song = try group.folder.writeNoise(seconds: 30, seed: 71, as: "song.wav")
                try await client.add(QueueAddition(locations: [song], place: .end))
                try await group.untilPlaying(["leader"])
                let other = try group.folder.writeNoise(seconds: 30, seed: 72, as: "other.wav")
                try await client.add(QueueAddition(locations: [other], place: .next))
                try await group.untilStatus("two items") { $0.count == 2 }
                let items = try await client.queue().items
                try await client.perform(.queue(.play(items[1].id)))
                try await group.untilStatus("the second item") {
                    $0.phase == .playing && $0.index == 1
                }
                try await client.perform(.queue(.remove(items.map(\.id))))
                let status = try await group.untilStatus("silence") { $0.phase == .stopped }
                #expect(status.count == 0)
            }
        }

        @Test func `a bad file is listed with its reason and the others play`() async throws {
            try await withGroup { group in
                let song = try group.folder.writeNoise(seconds: 30, seed: 73, as: "song.wav")
                let bad = try group.folder.write(Data("nothing".utf8), as: "bad.flac")
                try await group.lead([song])
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                try await client.add(QueueAddition(locations: [bad, song], place: .end))
                try await until("all of it was read") {
                    try await client.queue().items.map(\.state) == [.known, .unplayable, .known]
                }
                let listing = try await client.queue()
                #expect(listing.items[1].reason?.isEmpty == false)
                #expect(listing.current == 0)
            }
        }

        @Test func `a file that is not there is refused with its name, and changes nothing`()
            async throws
        {
            try await withGroup { group in
                let song = try group.folder.writeNoise(seconds: 30, seed: 74, as: "song.wav")
                try await group.lead([song])
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                let before = try await client.queue()
                for locations in [["/no/such.flac"], [song, "/no/such.flac"], []] {
                    let error = await #expect(throws: RoomError.self) {
                        try await client.add(QueueAddition(locations: locations, place: .end))
                    }
                    #expect(error?.code == .refused)
                    if !locations.isEmpty { #expect("\(error!)".contains("/no/such.flac")) }
                }
                await #expect(throws: RoomError.self) {
                    try await client.perform(.queue(.play(999)))
                }
                #expect(try await client.queue() == before)
            }
        }

        /// The first event is the present state; each that follows is newer and whole.
        @Test func `who watches is told of each change over one connection`() async throws {
            try await withGroup { group in
                let song = try group.folder.writeNoise(seconds: 30, seed: 75, as: "song.wav")
                try await group.lead([song])
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                var sequences: [UInt64] = []
                var isPaused = false
                for try await event in client.events() {
                    if sequences.isEmpty {
                        #expect(event.status.phase == .playing && event.status.title == "song")
                        try await client.perform(.pause)
                    }
                    sequences.append(event.sequence)
                    if event.status.phase == .paused {
                        isPaused = true
                        break
                    }
                    guard sequences.count < 100 else { break }
                }
                #expect(isPaused)
                #expect(sequences == sequences.sorted() && Set(sequences).count == sequences.count)
            }
        }

        @Test func `who watches is told that the leader has gone`() async throws {
            try await withGroup { group in
                let leader = try await group.lead([])
                let client = try await group.client()
                var count = 0
                await #expect(throws: RoomError.self) {
                    for try await _ in client.events() {
                        if count == 0 { _ = await leader.stop() }
                        count += 1
                    }
                }
                #expect(count >= 1)
            }
        }
    }
}
