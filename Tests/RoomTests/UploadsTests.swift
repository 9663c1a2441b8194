import Foundation
import Glibc
import NIOCore
import Synchronization
import Testing
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

@testable import TuttiRoom

/// What a leader keeps of the files of other machines.
@Suite(.timeLimit(.minutes(1))) struct UploadsTests {
    private final class Hand: Sendable {
        let now = Mutex(LocalInstant(nanoseconds: 0))
        func pass(_ time: Nanoseconds) { now.withLock { $0 = $0 + time } }
    }

    private let folder: TemporaryFolder
    private let hand = Hand()

    init() throws { folder = try TemporaryFolder() }

    private func uploads(limit: Int64 = 1_000_000) -> Uploads {
        let hand = hand
        return Uploads(base: folder.path("cache"), limit: limit) { hand.now.withLock { $0 } }
    }

    /// The identity of these bytes.
    private func id(of bytes: [UInt8]) throws -> String {
        let path = try folder.write(Data(bytes), as: UUID().uuidString)
        return try MediaFingerprint.measure(path).0.text
    }

    @discardableResult
    private func send(
        _ bytes: [UInt8], to uploads: Uploads, name: String = "song.flac", as id: String? = nil
    ) throws -> String {
        let id = try id ?? self.id(of: bytes)
        let arrival = try uploads.begin(id, name: name, size: Int64(bytes.count))
        for start in stride(from: 0, to: bytes.count, by: 1_000) {
            let part = bytes[start..<min(bytes.count, start + 1_000)]
            try uploads.take(ByteBuffer(bytes: part), of: arrival)
        }
        try uploads.finish(arrival)
        return id
    }

    private func noise(_ count: Int, _ seed: UInt8) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(seed) &* 7) }
    }

    @Test func `what was sent is there under its name, until its item has left the queue`() throws {
        let uploads = uploads()
        let bytes = noise(70_001, 1)
        let id = try send(bytes, to: uploads, name: "Prélude: 1.flac")
        let path = try #require(uploads.path(of: id))
        #expect(path.hasSuffix("/Prélude: 1.flac"))
        #expect(try Data(contentsOf: URL(filePath: path)) == Data(bytes))
        uploads.use(path)
        uploads.use(path)
        uploads.release(path)
        hand.pass(Uploads.patience * 2)
        try uploads.check(try self.id(of: [1]), size: 1)
        #expect(uploads.contains(id), "one of two items is there still")
        uploads.release(path)
        #expect(!uploads.contains(id))
        #expect(access(path, F_OK) != 0)
    }

    /// Where it is kept says nothing to whoever sent it.
    @Test func `in a log it has the name that it was sent with`() throws {
        let uploads = uploads()
        let id = try send(noise(10, 12), to: uploads, name: "Über song.flac")
        let path = try #require(uploads.path(of: id))
        #expect(AssetName.known(path) == "Über song.flac")
        for other in ["/music/uploads-1/song.flac", "a.flac", "http://nas.local/uploads-1/\(id)/x"]
        {
            #expect(AssetName.known(other) == other)
        }
    }

    @Test func `what nobody puts into the queue goes after a while`() throws {
        let uploads = uploads()
        let id = try send(noise(100, 2), to: uploads)
        hand.pass(Uploads.patience / 2)
        #expect(uploads.contains(id))
        hand.pass(Uploads.patience + Nanoseconds(1))
        try uploads.check(try self.id(of: [1]), size: 1)
        #expect(!uploads.contains(id))
    }

    @Test func `other bytes than were announced are thrown away, and the right ones taken`() throws
    {
        let uploads = uploads()
        let id = try id(of: noise(5_000, 3))
        for wrong in [noise(5_000, 4), noise(4_999, 3), []] {
            if wrong.count == 5_000 {
                #expect(throws: Uploads.Refusal.self) { try send(wrong, to: uploads, as: id) }
            } else {
                let arrival = try uploads.begin(id, name: "x", size: 5_000)
                try uploads.take(ByteBuffer(bytes: wrong), of: arrival)
                #expect(throws: Uploads.Refusal.self) { try uploads.finish(arrival) }
            }
            #expect(!uploads.contains(id))
        }
        let arrival = try uploads.begin(id, name: "x", size: 5_000)
        #expect(throws: Uploads.Refusal.self) {
            try uploads.take(ByteBuffer(bytes: noise(5_001, 3)), of: arrival)
        }
        uploads.abandon(arrival)
        try send(noise(5_000, 3), to: uploads)
        #expect(uploads.contains(id))
    }

    @Test func `all together stay below the limit, what is on its way included`() throws {
        let uploads = uploads(limit: 10_000)
        try send(noise(4_000, 5), to: uploads)
        let arrival = try uploads.begin(try id(of: noise(5_000, 6)), name: "b", size: 5_000)
        let refusal = #expect(throws: Uploads.Refusal.self) {
            try send(noise(1_001, 7), to: uploads)
        }
        #expect(refusal?.status == 507 && refusal?.reason.contains("--cache-uploads-mb") == true)
        try send(noise(1_000, 8), to: uploads)
        uploads.abandon(arrival)
        try send(noise(1_001, 7), to: uploads)
    }

    @Test(arguments: [
        "", "/", "..", ".", "../../etc/passwd", "a\u{0}b", "\u{1B}[2Jx",
        String(repeating: "é", count: 300),
    ])
    func `a name is never a way to another folder`(name: String) throws {
        let uploads = uploads()
        let id = try send(noise(10, 9), to: uploads, name: name)
        let path = try #require(uploads.path(of: id))
        let parts = path.dropFirst(folder.path("cache").count).split(separator: "/")
        #expect(parts.count == 3 && parts[0].hasPrefix("uploads-") && parts[1] == id)
        #expect(!path.contains("..") && access(path.cFileName, F_OK) == 0)
        #expect(path.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    }

    @Test(arguments: ["", "abc", "../x", String(repeating: "A", count: 64)])
    func `what is no identity is refused`(id: String) throws {
        let refusal = #expect(throws: Uploads.Refusal.self) {
            try uploads().begin(id, name: "x", size: 1)
        }
        #expect(refusal?.status == 400)
    }

    @Test func `a leader's folder goes with it, and one that was left behind with the next`() throws
    {
        var uploads: Uploads? = uploads()
        let id = try send(noise(10, 10), to: #require(uploads))
        let path = try #require(uploads?.path(of: id))
        // As after a power cut.
        let left = folder.path("cache/uploads-gone")
        try FileManager.default.createDirectory(
            atPath: left + "/x", withIntermediateDirectories: true)
        try Data([1]).write(to: URL(filePath: left + "/x/y"))
        let second = self.uploads()
        try send(noise(10, 11), to: second)
        #expect(access(left, F_OK) != 0)
        #expect(access(path, F_OK) == 0, "the first leader is there still")
        uploads = nil
        #expect(access(path, F_OK) != 0)
    }

    @Test func `what was cleared away is sent again, into a folder that is made again`() throws {
        let uploads = uploads()
        let first = try send(noise(10, 12), to: uploads)
        try FileManager.default.removeItem(atPath: folder.path("cache"))
        #expect(!uploads.contains(first))
        for bytes in [noise(10, 12), noise(10, 13)] {
            let id = try send(bytes, to: uploads)
            #expect(access(try #require(uploads.path(of: id)), F_OK) == 0)
        }
    }

    @Test func `a file that is here is not written over by whoever sends it too`() throws {
        let uploads = uploads()
        let bytes = noise(5_000, 14)
        let path = try #require(uploads.path(of: try send(bytes, to: uploads)))
        let refusal = #expect(throws: Uploads.Refusal.self) { try send(bytes, to: uploads) }
        #expect(refusal?.status == 409)
        #expect(try Data(contentsOf: URL(filePath: path)) == Data(bytes))
    }

    @Test(arguments: [
        UploadReference(id: "ab"), UploadReference(id: "ab", title: "A & B = 100 % ü?#"),
        UploadReference(id: "ab", title: "", span: CueSpan(first: 0, end: 75)),
        UploadReference(id: "ab", span: CueSpan(first: 18_074, end: nil)),
    ])
    func `what names a file that was sent is read as it was written`(reference: UploadReference) {
        var expected = reference
        // Nothing is no title.
        if expected.title?.isEmpty == true { expected.title = nil }
        var read = UploadReference(reference.text)
        if read?.title?.isEmpty == true { read?.title = nil }
        #expect(read == expected)
    }

    @Test(arguments: [
        "http://x", "/etc/passwd", "upload:ab?first=-1", "upload:ab?first=5&end=5", "upload:ab?x=1",
        "upload:ab?first=99999999999999999&end=3", "upload:ab?first", "upload:ab?first=450000001",
    ])
    func `what is no such name is none`(text: String) { #expect(UploadReference(text) == nil) }
}

extension IntegrationTests {
    /// Files that another machine adds. Here the other machine is this one, and asks as it would.
    @Suite struct Sending {
        private static func folders(_ group: TestGroup) throws -> [String] {
            try FileManager.default
                .contentsOfDirectory(atPath: group.folder.path("cache-leader"))
                .filter { $0.hasPrefix("uploads-") }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a file that was sent is played, and gone when it has left the queue`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 30, seed: 81, as: "a b ü.wav")
                try await group.lead([])
                let uploader = Uploader(
                    address: group.address, timeout: .seconds(10), credentials: .open)
                let last = Mutex((sent: Int64(0), whole: Int64(0)))
                let id = try await uploader.send(asset) { sent, whole in
                    last.withLock { $0 = (sent, whole) }
                }
                let location = UploadReference(id: id).text
                let size = try FileManager.default.attributesOfItem(atPath: asset)[.size] as? Int64
                #expect(last.withLock { $0.sent } == size)
                // It is there, and is not sent once more.
                last.withLock { $0 = (0, 0) }
                #expect(
                    try await uploader.send(asset) { sent, whole in
                        last.withLock { $0 = (sent, whole) }
                    } == id)
                #expect(last.withLock { $0.sent } == 0)
                try FileManager.default.removeItem(atPath: asset)
                let client = GroupClient(address: group.address)
                try await client.add(QueueAddition(locations: [location], place: .end))
                try await group.untilStatus("it plays") {
                    $0.phase == .playing && $0.title == "a b ü" && $0.rooms[0].state == .playing
                }
                let item = try #require(try await client.queue().items.first)
                try await client.perform(.queue(.remove([item.id])))
                let uploads = group.folder.path("cache-leader")
                try await until("the file is gone") {
                    let names = try FileManager.default.subpathsOfDirectory(atPath: uploads)
                    return !names.contains { $0.hasSuffix("ü.wav") }
                }
                let error = await #expect(throws: RoomError.self) {
                    try await client.add(QueueAddition(locations: [location], place: .end))
                }
                #expect(error?.description.contains("send it again") == true)
                _ = try await uploader.send(
                    try group.folder.writeNoise(seconds: 1, seed: 86, as: "b.wav")
                ) { _, _ in }
                #expect(try Self.folders(group).count == 1)
                await group.stopNodes()
                #expect(try Self.folders(group).isEmpty, "a leader that ends leaves nothing")
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `files with the same bytes are called as each was sent`() async throws {
            try await withGroup { group in
                let first = try group.folder.writeNoise(seconds: 2, seed: 83, as: "one.wav")
                let second = group.folder.path("two.wav")
                try FileManager.default.copyItem(atPath: first, toPath: second)
                try await group.lead([])
                let client = try await group.client()
                try await client.addSending([first, second], at: .end) { _ in }
                try await until("both are read") {
                    try await client.queue().items.count { $0.state == .known } == 2
                }
                #expect(try await client.queue().items.map(\.title) == ["one", "two"])
            }
        }

        /// The folder is that of the leader before, and so is whoever looks after it.
        @Test(.timeLimit(.minutes(2)))
        func `after a hand-over a file stays while it is listed, whoever leads, and then goes`()
            async throws
        {
            try await withGroup { group in
                let assets = try (0..<3).map {
                    try group.folder.writeNoise(seconds: 60, seed: 90 + UInt64($0), as: "\($0).wav")
                }
                try await group.lead([])
                group.follow("attic")
                let client = try await group.client()
                try await client.addSending(assets, at: .end) { _ in }
                try await group.untilPlaying(["attic", "leader"])
                try await until("all is read") {
                    try await client.queue().items.count { $0.state == .known } == 3
                }
                func sent() throws -> [String] {
                    let folder = group.folder.path("cache-leader")
                    // What goes while the folder is walked through is no error of the walk.
                    let paths = try #require(FileManager.default.enumerator(atPath: folder))
                    return paths.compactMap { $0 as? String }
                        .filter { $0.hasPrefix("uploads-") && $0.hasSuffix(".wav") }
                        .map { String($0.suffix(5)) }.sorted()
                }
                #expect(try sent() == ["0.wav", "1.wav", "2.wav"])
                func remove(_ place: Int) async throws {
                    let own = try await group.client()
                    let item = try await own.queue().items[place].id
                    try await own.perform(.queue(.remove([item])))
                }
                try await until("the lead is handed over") {
                    (try? await group.perform(.handOver(to: RoomID("attic")))) != nil
                }
                try await group.goOver(to: "attic")
                try await remove(1)
                try await until("what was removed is gone") { try sent() == ["0.wav", "2.wav"] }
                // Under the next leader, and when the lead is back, too.
                try await group.perform(.handOver(to: RoomID("leader")))
                try await group.goOver(to: "leader")
                #expect(try sent() == ["0.wav", "2.wav"])
                try await remove(1)
                try await until("what was removed is gone") { try sent() == ["0.wav"] }
            }
        }

        /// The tracks of a sheet stay parts of one file, and what a playlist says of names arrives.
        @Test(.timeLimit(.minutes(1)))
        func `a cue sheet and a playlist are sent as what they name`() async throws {
            try await withGroup { group in
                let folder = group.folder
                _ = try folder.writeNoise(seconds: 30, seed: 83, as: "album.wav")
                let cue = """
                    FILE "album.wav" WAVE
                    TRACK 01 AUDIO
                    TITLE "One & only"
                    INDEX 01 00:00:00
                    TRACK 02 AUDIO
                    INDEX 01 00:20:00
                    """
                let sheet = try folder.write(Data(cue.utf8), as: "album.cue")
                _ = try folder.writeNoise(seconds: 5, seed: 84, as: "song.wav")
                let list = try folder.write(
                    Data("#EXTM3U\n#EXTINF:5,Me – Süß\nsong.wav\n".utf8), as: "list.m3u")
                try await group.lead([])
                let client = GroupClient(address: group.address)
                try await client.addSending([sheet, list], at: .end) { _ in }
                try await until("all is read") {
                    try await client.queue().items.count { $0.state == .known } == 3
                }
                let items = try await client.queue().items
                #expect(items.map(\.title) == ["One & only", "Track 02", "Me – Süß"])
                #expect(items.map(\.durationSeconds) == [20, 10, 5])
                try await group.untilPlaying(["leader"])
            }
        }

        /// What others send may name files of the leader's machine; nobody hears them.
        @Test(.timeLimit(.minutes(1)), arguments: ["x.m3u", "x.cue", "x.xspf", "x.flac"])
        func `what was sent is no playlist of the leader's files`(name: String) async throws {
            try await withGroup { group in
                let own = try group.folder.writeNoise(seconds: 5, seed: 85, as: "own.wav")
                let text = "#EXTM3U\n\(own)\n"
                let sent = try group.folder.write(Data(text.utf8), as: name)
                try await group.lead([])
                let id = try await Uploader(
                    address: group.address, timeout: .seconds(10), credentials: .open
                )
                .send(sent) { _, _ in }
                let client = GroupClient(address: group.address)
                try await client.add(
                    QueueAddition(locations: [UploadReference(id: id).text], place: .end))
                try await until("it is left out") {
                    try await client.queue().items.map(\.state) == [.unplayable]
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a file that is too large is refused with what can be done`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 30, seed: 82, as: "large.wav")
                try await group.lead([]) { $0.uploadLimitBytes = 1_000_000 }
                let uploader = Uploader(
                    address: group.address, timeout: .seconds(10), credentials: .open)
                let error = await #expect(throws: RoomError.self) {
                    try await uploader.send(asset) { _, _ in }
                }
                #expect(error?.code == .refused)
                #expect(error?.description.contains("large.wav") == true)
                #expect(error?.description.contains("--cache-uploads-mb") == true)
            }
        }
    }
}
