import Foundation
import Synchronization
import Testing
import TuttiGroupControl

@testable import TuttiRoom

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

        private final class Told: Sendable {
            let subjects = Mutex<[String]>([])

            func take() -> [String] {
                subjects.withLock { subjects in
                    defer { subjects = [] }
                    return subjects
                }
            }
        }

        /// From the leader's machine as from another one.
        @Test(arguments: [false, true])
        func `what is not there is left out, and the others are added`(sends: Bool) async throws {
            try await withGroup { group in
                let song = try group.folder.writeNoise(seconds: 30, seed: 79, as: "song.wav")
                try await group.lead([])
                let client = GroupClient(address: group.address)
                let told = Told()
                let tell: @Sendable (AdditionNews) -> Void = { news in
                    guard case .leftOut(let subject, _, true) = news else { return }
                    told.subjects.withLock { $0.append(subject) }
                }
                func add(_ assets: [String]) async throws {
                    if sends {
                        try await client.addSending(assets, at: .end, news: tell)
                    } else {
                        try await client.add(assets, at: .end, news: tell)
                    }
                }
                try await add(["/no/such.flac", song, "/no/other.flac"])
                try await until("it is added") { try await client.queue().count == 1 }
                #expect(told.take().map { $0.hasSuffix("such.flac") } == [true, false])

                // What is all there was is said once, by the error.
                let error = await #expect(throws: RoomError.self) {
                    try await add(["/no/such.flac"])
                }
                #expect(error?.description.contains("such.flac: ") == true)
                #expect(told.take().isEmpty)
                let both = await #expect(throws: RoomError.self) {
                    try await add(["/no/such.flac", "/no/other.flac"])
                }
                #expect(both?.description.contains("none of 2") == true)
                #expect(told.take().count == 2)
                #expect(try await client.queue().count == 1)
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

        /// The file of each is on the leader's machine: nobody else could say why.
        @Test func `what is left out of what was added is listed with its reason`() async throws {
            try await withGroup { group in
                let song = try group.folder.writeNoise(seconds: 30, seed: 76, as: "song.wav")
                let empty = group.folder.path("empty")
                try FileManager.default.createDirectory(
                    atPath: empty, withIntermediateDirectories: true)
                let broken = try group.folder.write(Data([0, 1, 2]), as: "broken.m3u")
                let list =
                    "<playlist><trackList><track><location>file:///etc/hostname</location></track>"
                    + "<track><location>http://127.0.0.1:1/a.flac</location></track></trackList></playlist>"
                let server = try await ScriptedNode.open { _, _, channel in
                    channel.say(
                        "HTTP/1.1 200 OK\r\nContent-Length: \(list.utf8.count)\r\n\r\n" + list,
                        closes: true)
                }
                let host = try #require(server.url.components(separatedBy: "/asset").first)
                try await group.lead([song])
                try await group.untilPlaying(["leader"])
                let client = try await group.client()
                #expect(try await client.queue().leftOutCount == 0)
                try await client.add(QueueAddition(locations: [empty, broken], place: .end))
                try await until("both are said") { try await client.queue().leftOutCount == 2 }
                let listing = try await client.queue()
                #expect(listing.count == 1 && listing.coming == 0)
                #expect(listing.leftOut[0].contains("empty: is a folder without anything to play"))
                #expect(listing.leftOut[1].contains("broken.m3u: is called a playlist and is none"))
                // A playlist that was fetched has no say over the files of whoever fetches it.
                try await client.add(
                    QueueAddition(locations: [host + "/list.xspf"], place: .end))
                try await until("the foreign path is said") {
                    try await client.queue().leftOutCount == 3
                }
                let last = try await client.queue()
                #expect(
                    last.leftOut[2].contains("/etc/hostname: is a path in a playlist of another"))
                try await server.close()
            }
        }

        @Test func `an address without a machine is refused`() async throws {
            try await withGroup { group in
                try await group.lead([])
                let client = try await group.client()
                for address in ["http://", "https:///a.flac", "HTTP://:80/", "http://me@/x"] {
                    let error = await #expect(throws: RoomError.self) {
                        try await client.add(QueueAddition(locations: [address], place: .end))
                    }
                    #expect(error?.description.contains("names no machine") == true)
                }
            }
        }

        /// Who looks right after a request sees that it is not through.
        @Test func `a listing says that more is coming until all that was given is listed`()
            async throws
        {
            try await withGroup { group in
                let songs = try (0..<3).map {
                    try group.folder.writeNoise(seconds: 2, seed: 80 + UInt64($0), as: "\($0).wav")
                }
                try await group.lead([])
                let client = try await group.client()
                for round in 1...20 {
                    for song in songs {
                        try await client.add(QueueAddition(locations: [song], place: .end))
                    }
                    var listing = try await client.queue(first: 0, count: 0)
                    while listing.coming > 0 {
                        listing = try await client.queue(first: 0, count: 0)
                    }
                    #expect(listing.count == 3 * round)
                }
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
