import NIOCore
import Synchronization
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiTiming
import TuttiWire

@testable import TuttiRoom

/// A number that several tasks count with.
final class Counter: Sendable {
    private let number = Mutex(0)
    var value: Int { number.withLock { $0 } }
    @discardableResult
    func add(_ count: Int) -> Int {
        number.withLock { number in
            number += count
            return number
        }
    }
    func raise(to count: Int) { number.withLock { $0 = max($0, count) } }
}

@Suite struct `How fast a link is read` {
    @Test func `a burst passes, then so many a second, and many that flood share what there is`() {
        var pace = MessagePace(burst: 100, perSecond: 50)
        #expect(pace.allowed(at: .uptimeNanoseconds(0), crowd: 0) == 100)
        pace.spend(100)
        #expect(pace.allowed(at: .uptimeNanoseconds(0), crowd: 1) == 0)
        #expect(pace.allowed(at: .uptimeNanoseconds(1_000_000_000), crowd: 1) == 50)
        pace.spend(50)
        let crowd = Int(MessagePace.together) / 5
        #expect(pace.allowed(at: .uptimeNanoseconds(2_000_000_000), crowd: crowd) == 5)
        pace.spend(5)
        #expect(pace.allowed(at: .uptimeNanoseconds(3_000_000_000), crowd: 1_000_000) == 2)
        #expect(pace.allowed(at: .uptimeNanoseconds(900_000_000_000), crowd: 1) == 100)
    }

    /// Each is prepared and answered for.
    @Test func `a room that plays items of five milliseconds is never held back`() {
        var pace = MessagePace.toLeader
        for item in 0..<10_000 {
            let now = NIODeadline.uptimeNanoseconds(UInt64(item) * 5_000_000)
            // And one report a second.
            let count = item % 200 == 0 ? 2 : 1
            guard pace.allowed(at: now, crowd: 0) >= count else {
                Issue.record("held back at item \(item)")
                return
            }
            pace.spend(count)
        }
    }
}

extension IntegrationTests.Hostile {
    /// A request that costs the asker a few bytes and the leader a reply.
    private static let question = FrameEncoder.frame(MessageCodec.encode(.syncStatus))

    @Test(.timeLimit(.minutes(1)))
    func `a link that floods is slowed down, and others are answered meanwhile`() async throws {
        try await withGroup { group in
            let asset = try group.folder.writeNoise(seconds: 60, seed: 31, as: "a.wav")
            try await group.lead([asset])
            let before = try await group.untilPlaying(["leader"])
            let replies = Counter()
            let flood = try await RawConnection.connect(to: group.address.port, counting: replies)
            let many = [[UInt8]](repeating: Self.question, count: 5_000).flatMap { $0 }
            for _ in 0..<20 { flood.writeAndFlush(ByteBuffer(bytes: many), promise: nil) }
            try await until("the burst is answered") { replies.value > 0 }
            for _ in 0..<5 {
                let status = try await group.client().status()
                #expect(status.rooms.map(\.dropouts) == before.rooms.map(\.dropouts))
            }
            try? await flood.close()
            try await group.untilPlaying(["leader"])
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `who asks and does not read holds one reply, and harms nobody`() async throws {
        try await withGroup { group in
            let asset = try group.folder.writeNoise(seconds: 60, seed: 32, as: "a.wav")
            try await group.lead([asset])
            try await group.untilPlaying(["leader"])
            let deaf = try await RawConnection.connect(
                to: group.address.port, reads: false, receiveBuffer: 4_096)
            let many = [[UInt8]](repeating: Self.question, count: 2_000).flatMap { $0 }
            deaf.writeAndFlush(ByteBuffer(bytes: many), promise: nil)
            // The group is there for others.
            for _ in 0..<20 { _ = try await group.client().status(hasPoints: true) }
            try await group.untilPlaying(["leader"])
            try? await deaf.close()
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `clients that asked once and stay do not lock out a command`() async throws {
        try await withGroup { group in
            let asset = try group.folder.writeNoise(seconds: 60, seed: 33, as: "a.wav")
            try await group.lead([asset])
            try await group.untilPlaying(["leader"])
            var idle: [any Channel] = []
            for _ in 0..<ConnectionPlaces.Limits().clients + 40 {
                let channel = try await RawConnection.connect(to: group.address.port)
                try? await channel.writeAndFlush(ByteBuffer(bytes: Self.question))
                idle.append(channel)
            }
            for _ in 0..<3 { try await group.perform(.volume(room: nil, percent: 50)) }
            for channel in idle { try? await channel.close() }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `offsets by the thousand are written as the last of them, and the room ends at once`()
        async throws
    {
        try await withGroup { group in
            let asset = try group.folder.writeNoise(seconds: 60, seed: 34, as: "a.wav")
            try await group.lead([asset])
            try await group.untilPlaying(["leader"])
            let replies = Counter()
            let flood = try await RawConnection.connect(to: group.address.port, counting: replies)
            let room = try RoomID("leader")
            var bytes: [UInt8] = []
            for number in 0..<100 {
                let offset = try LatencyOffset(microseconds: number % 2 == 0 ? number : -number)
                bytes += FrameEncoder.frame(
                    MessageCodec.encode(.command(.latencyOffset(room: room, offset))))
            }
            try await flood.writeAndFlush(ByteBuffer(bytes: bytes))
            try await group.untilStatus("the last counts") {
                $0.rooms.first?.sync?.latencyOffsetMicroseconds == -99
            }
            try? await flood.close()
            await group.stopNodes()
            let store = RoomStore(
                folder: StateFolder(path: group.folder.path("state-leader")), room: room,
                ownBoot: 1, logger: LogBook().logger)
            #expect(
                store.offset(of: "\(OutputSpecification.virtual(VirtualCardOptions()))")?.delay
                    == .microseconds(-99))
        }
    }
}
