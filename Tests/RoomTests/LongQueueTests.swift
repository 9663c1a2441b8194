import Foundation
import Testing
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

/// A room that plays a long queue: its machine and a real cache, with a clock that does not wait.
@Suite(.timeLimit(.minutes(5))) struct LongQueueTests {
    /// A leader's media service without a network, one thousandth of the size: 20 kB for an item, and
    /// 200 kB for the cache.
    private struct Items: ByteServer {
        static let size = 20_000

        func bytes(of number: Int) -> [UInt8] {
            let name = Array("\(number)".utf8)
            return name + [UInt8](repeating: 0, count: Self.size - name.count)
        }

        func describe(_ number: Int) throws -> AssetDescriptor {
            var hasher = PieceHasher(fileSize: Int64(Self.size))
            bytes(of: number).withUnsafeBytes { hasher.update($0) }
            let (hash, pieces) = hasher.finish()
            return try AssetDescriptor(
                hash: ContentHash(bytes: hash), byteCount: Int64(Self.size), sampleRate: 48_000,
                frameCount: 5_000, title: "\(number)", fileExtension: "wav",
                piecesRoot: ContentHash(bytes: pieces.root))
        }

        private final class Answer: ByteAnswer {
            private var bytes: [UInt8]

            init(_ bytes: [UInt8]) { self.bytes = bytes }

            func next() -> [UInt8] {
                defer { bytes = [] }
                return bytes
            }
        }

        func answer(
            _ range: Range<Int64>, of url: String, _ cancellation: MediaCancellation
        ) -> any ByteAnswer {
            let name = url.split(separator: "/").first { Int($0) != nil } ?? ""
            let bytes = bytes(of: Int(name) ?? 0)
            if !url.hasSuffix("/pieces") {
                return Answer(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
            }
            var hasher = PieceHasher(fileSize: Int64(Self.size))
            bytes.withUnsafeBytes { hasher.update($0) }
            return Answer(hasher.finish().pieces.bytes)
        }
    }

    /// The shell of a room, as far as files go.
    private struct Shell {
        var machine: RoomMachine
        let cache: MediaCache
        let items = Items()
        var files: [ContentHash: CachedFile] = [:]
        var now = LocalInstant(nanoseconds: 0)
        var applied: [UInt64] = []
        var refused: [String] = []

        mutating func receive(_ input: RoomInput) throws {
            now = now + .milliseconds(1)
            for effect in machine.receive(input, at: now) { try perform(effect) }
            files = files.filter { machine.needed.contains($0.key) }
        }

        private mutating func perform(_ effect: RoomEffect) throws {
            switch effect {
            case .fetch(let asset):
                let print = MediaFingerprint(
                    hash: asset.hash.bytes, byteCount: asset.byteCount,
                    piecesRoot: asset.piecesRoot?.bytes)
                files[asset.hash] = try cache.fetch(
                    IncomingFile(url: "/\(asset.title)", print, server: items),
                    fileExtension: "wav")
                try receive(.fetched(asset.hash, .done))
            case .prepare(let order):
                #expect(files[order.asset.hash]?.isUntouched == true, "\(order.asset.title)")
                try receive(.prepared(order.id, .ready(latency: .zero)))
            case .apply(let commit): applied.append(commit.id)
            case .send(.notReady(_, let reason)): refused.append(reason)
            default: break
            }
        }
    }

    private func openFiles() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    @Test func `ten thousand items go through a small cache, and each leaves nothing open`()
        throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let limit: Int64 = 200_000
        var most = 0
        let path = folder.path("cache")
        var shell = Shell(
            machine: RoomMachine(
                RoomConfiguration(
                    room: try RoomID("attic"), instance: 1, outputLatency: .zero, hasOutput: true),
                at: LocalInstant(nanoseconds: 0)),
            cache: MediaCache(folder: path, limit: limit) { _ in })
        let queue = try (0..<SessionState.longestQueue).map { try shell.items.describe($0) }
        _ = shell.machine.advance(to: LocalInstant(nanoseconds: 0))
        try shell.receive(.connected)
        try shell.receive(
            .received(
                .welcome(
                    Welcome(
                        leaderName: "leader", timePort: 1, mediaPort: 1, term: 1,
                        groupClockEpoch: 1))))
        try shell.receive(.clock(.locked))
        var state = SessionState(
            term: 1, sequence: 0, queue: queue, index: 0, change: nil, phase: .preparing)
        try shell.receive(.received(.state(state)))
        let before = try openFiles()
        for (index, asset) in queue.enumerated() {
            let id = UInt64(index + 1)
            let change = RateChange(
                itemFrame: 0, instant: GroupInstant(nanoseconds: Int64(index) * 100_000_000),
                rate: 1)
            try shell.receive(
                .received(
                    .prepare(
                        Preparation(id: id, asset: asset, itemFrame: 0, rate: 1, change: nil))))
            try shell.receive(
                .received(
                    .commit(
                        Commit(
                            id: id, index: index, hash: asset.hash, change: change,
                            following: false))))
            state.sequence += 1
            (state.index, state.change, state.phase) = (index, change, .playing)
            try shell.receive(.received(.progress(state.progress)))
            most = max(most, shell.files.count)
            if index.isMultiple(of: 500) {
                let names = try FileManager.default.contentsOfDirectory(atPath: path)
                let bytes = names.filter { $0.hasSuffix(".wav") }.count * Items.size
                #expect(bytes <= Int(limit), "\(names.count) files")
                #expect(names.count <= 2 * Int(limit) / Items.size)
                #expect(try openFiles() <= before + 4, "at item \(index)")
            }
        }
        #expect(most <= 3, "the one that ends, the one that plays and the next")
        #expect(shell.applied == Array(1...UInt64(queue.count)))
        #expect(shell.refused == [])
    }
}
