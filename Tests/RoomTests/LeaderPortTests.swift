import Foundation
import NIOCore
import Testing

@testable import Room

extension IntegrationTests {
    /// One port, two kinds of visitors.
    @Suite(.timeLimit(.minutes(1))) struct Door {
        /// Answers with its name and whatever comes.
        private static func echo(_ name: String) -> LeaderPort.Service {
            { channel in
                let bytes = try? await channel.asyncChannel(
                    of: NIOAsyncChannel<ByteBuffer, ByteBuffer>.self)
                try? await bytes?.executeThenClose { inbound, outbound in
                    try await outbound.write(ByteBuffer(string: name))
                    for try await part in inbound { try await outbound.write(part) }
                }
            }
        }

        private func withPort(_ body: (Int) async throws -> Void) async throws {
            let door = try await LeaderPort.open(0)
            let node = RunningNode {
                try await door.run(links: Self.echo("link"), media: Self.echo("media"))
            }
            do {
                try await body(door.port)
            } catch {
                _ = await node.stop()
                throw error
            }
            _ = await node.stop()
        }

        @Test(arguments: [("link", [0, 0, 0, 9]), ("media", Array("GET /".utf8))])
        func `the first byte chooses, and nothing is lost`(
            _ name: String, _ word: [UInt8]
        ) async throws {
            try await withPort { port in
                try await RawConnection.open(to: port) { connection in
                    for byte in word { try await connection.send([byte]) }
                    let answer = try await connection.read(name.utf8.count + word.count)
                    #expect(answer == Data(name.utf8) + Data(word))
                }
            }
        }

        @Test func `who says nothing for long is cut off, and holds up nobody`() async throws {
            try await withPort { port in
                let silent = try await RawConnection.connect(to: port)
                try await RawConnection.open(to: port) { connection in
                    try await connection.send([0])
                    #expect(try await connection.read(5) == Data("link".utf8) + [0])
                }
                try await until("the silent one is cut off") { !silent.isActive }
            }
        }

        @Test func `who leaves without a word, or after half of one, leaves nothing behind`()
            async throws
        {
            try await withPort { port in
                for word in [[], [0], Array("G".utf8)] as [[UInt8]] {
                    let visitor = try await RawConnection.connect(to: port)
                    if !word.isEmpty { try await visitor.writeAndFlush(ByteBuffer(bytes: word)) }
                    try await visitor.close()
                }
                try await RawConnection.open(to: port) { connection in
                    try await connection.send([0])
                    #expect(try await connection.read(5) == Data("link".utf8) + [0])
                }
            }
        }

        @Test func `a silent visitor does not hold up the end`() async throws {
            let door = try await LeaderPort.open(0)
            let node = RunningNode {
                try await door.run(links: Self.echo("link"), media: Self.echo("media"))
            }
            let silent = try await RawConnection.connect(to: door.port)
            // Another is served: the silent one is accepted by now.
            try await RawConnection.open(to: door.port) { connection in
                try await connection.send([0])
                #expect(try await connection.read(5) == Data("link".utf8) + [0])
            }
            #expect(silent.isActive)
            let begin = ContinuousClock.now
            _ = await node.stop()
            // It would be cut off only after this.
            #expect(ContinuousClock.now - begin < LeaderPort.firstWordLimit)
        }
    }
}
