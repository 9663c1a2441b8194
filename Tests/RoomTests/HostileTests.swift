import NIOCore
import Synchronization
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom
import TuttiWire

extension IntegrationTests {
    /// Whatever comes in at the control port, the group plays on.
    @Suite struct Hostile {
        @Test(.timeLimit(.minutes(1)))
        func `strange bytes and silence at the control port do not disturb the group`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 21, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("attic")
                let before = try await group.untilPlaying(["attic", "leader"])
                let port = group.address.port

                let silent = try await RawConnection.connect(to: port)
                let hello = try MessageBytes.hello(room: "x", instance: 1)
                var strange: [[UInt8]] = [
                    [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 0], [0x7F, 0xFF, 0xFF, 0xFF] + hello,
                    // One byte more than a leader takes.
                    FrameEncoder.frame(
                        [UInt8](repeating: 0, count: FrameDecoder.leaderLimit + 1)),
                    Array("GET / HTTP/1.1\r\n\r\n".utf8),
                    hello + [0, 0, 0, 2, 0xFF, 0xFF],
                ]
                for place in stride(from: 4, to: hello.count, by: 3) {
                    strange.append(hello.enumerated().map { $0 == place ? ~$1 : $1 })
                }
                for seed in 1...8 as ClosedRange<UInt64> {
                    strange.append(RandomBytes.make(count: 2_000, seed: seed))
                    strange.append(FrameEncoder.frame(RandomBytes.make(count: 200, seed: seed)))
                }
                // They stay open until the leader has answered somebody after them.
                var open: [any Channel] = []
                for bytes in strange {
                    let channel = try await RawConnection.connect(to: port)
                    try? await channel.writeAndFlush(ByteBuffer(bytes: bytes))
                    open.append(channel)
                }
                _ = try await group.client().status()
                for channel in open { try? await channel.close() }
                // What is half said stays open until the leader has had enough.
                let half = try await RawConnection.connect(to: port)
                try await half.writeAndFlush(ByteBuffer(bytes: hello.dropLast()))

                let after = try await group.untilStatus("only the two are in, playing") {
                    $0.rooms.map(\.name) == ["attic", "leader"]
                        && $0.rooms.allSatisfy { $0.state == .playing }
                        && $0.positionSeconds > before.positionSeconds
                }
                #expect(after.rooms.map(\.dropouts) == before.rooms.map(\.dropouts))
                try await until("silent and half said connections are closed") {
                    !silent.isActive && !half.isActive
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a message that is too long is refused before it has come`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 5, seed: 22, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 2, output: .none)
                try await RawConnection.open(to: group.address.port) { connection in
                    try await connection.send([0x7F, 0xFF, 0xFF, 0xFF])
                    let answer = try await connection.readToEnd()
                    #expect(answer.readableBytes == 0)
                }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a leader that does not answer is left, and asked again on another connection`()
            async throws
        {
            let taken = Mutex<[any Channel]>([])
            let server = try await RawConnection.silentServer { channel in
                taken.withLock { $0.append(channel) }
            }
            let address = HostPort(host: "127.0.0.1", port: server.localAddress?.port ?? 0)
            try await withGroup { group in
                group.follow("attic", of: address, output: .none)
                // A connection is handed over before it is active.
                try await until("asked again") {
                    taken.withLock { $0.dropFirst().contains(where: \.isActive) }
                }
                try await until("the first connection is closed") {
                    taken.withLock { !$0[0].isActive }
                }
                // The room may ask on one connection and stay on another, and may be between two
                // just now.
                var held = 0
                for _ in 0..<40 {
                    try await Task.sleep(for: .milliseconds(25))
                    held += taken.withLock { $0.dropFirst().contains(where: \.isActive) } ? 1 : 0
                }
                #expect(held > 20, "the end of the first is not taken for that of another")
            }
            try await server.close()
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room that stops reading is let go and the others hear nothing of it`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 23, as: "a.wav")
                try await group.lead([asset])
                let deaf = try await RawConnection.connect(to: group.address.port, reads: false)
                try await deaf.writeAndFlush(
                    ByteBuffer(bytes: try MessageBytes.hello(room: "deaf", instance: 1)))
                try await group.untilStatus("deaf is in") { $0.rooms.count == 2 }
                for percent in 0..<300 {
                    try await group.perform(.volume(room: nil, percent: percent % 100))
                }
                let after = try await group.untilStatus("the leader plays") {
                    $0.rooms.last?.state == .playing
                }
                #expect(after.rooms.last?.dropouts == 0)
                try? await deaf.close()
                try await group.untilPlaying(["leader"])
            }
        }
    }
}
