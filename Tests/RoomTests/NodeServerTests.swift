import Foundation
import NIOCore
import Testing
import TuttiLinuxHost

@testable import TuttiRoom

extension IntegrationTests {
    /// One port, two kinds of visitors.
    @Suite(.timeLimit(.minutes(1))) struct Door {
        /// Answers with its name and whatever comes.
        private static func echo(_ name: String) -> NodeServer.Service {
            { channel, _ in
                let bytes = try? await channel.asyncChannel(
                    of: NIOAsyncChannel<ByteBuffer, ByteBuffer>.self)
                try? await bytes?.executeThenClose { inbound, outbound in
                    try await outbound.write(ByteBuffer(string: name))
                    for try await part in inbound { try await outbound.write(part) }
                }
            }
        }

        private func withPort(
            _ limits: ConnectionPlaces.Limits = .init(),
            links: @escaping NodeServer.Service = echo("link"),
            _ body: (Int) async throws -> Void
        ) async throws {
            let door = try await NodeServer.open(0, limits: limits)
            let node = RunningNode {
                try await door.run(links: links, media: Self.echo("media"))
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

        /// Switches and access points let marked packets go first; media do not count among them.
        @Test func `what is said to a leader is marked as control, unless that is off`()
            async throws
        {
            let mark = Int(PacketMarks.assuredForwarding41)
            try await withGroup { group in
                try await group.lead([], output: .none)
                defer { PacketMarks.areSet = true }
                for areSet in [true, false] {
                    PacketMarks.areSet = areSet
                    let link = try await connect(
                        to: group.address, timeout: .seconds(10), limit: 65_536, .open)
                    try await link.executeThenClose { _, _ in
                        let seen = try await link.channel.getOption(IPOption.typeOfService).get()
                        #expect(seen == (areSet ? mark : 0))
                    }
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

        @Test func `a crowd that says nothing locks nobody out`() async throws {
            try await withPort(.init(strangers: 8)) { port in
                var crowd: [any Channel] = []
                for _ in 0..<40 { crowd.append(try await RawConnection.connect(to: port)) }
                for _ in 0..<3 {
                    try await RawConnection.open(to: port) { connection in
                        try await connection.send([0])
                        #expect(try await connection.read(5) == Data("link".utf8) + [0])
                    }
                }
                try await until("the crowd is no more than its places") {
                    crowd.count { $0.isActive } <= 8
                }
            }
        }

        @Test func `clients that asked once and stay do not lock out the next`() async throws {
            let asClient: NodeServer.Service = { channel, visitor in
                guard visitor.becomes(.client) else { return }
                await Self.echo("link")(channel, visitor)
            }
            try await withPort(.init(clients: 4, localClients: 2), links: asClient) { port in
                let idle = try await RawConnection.crowd(of: 40, at: port, saying: "\0")
                try await RawConnection.open(to: port) { connection in
                    try await connection.send([0])
                    #expect(try await connection.read(5) == Data("link".utf8) + [0])
                }
                try await until("those idle longest have gone") {
                    idle.count { $0.isActive } <= 6
                }
            }
        }

        @Test func `without files it waits before it accepts, says so once, and goes on after`()
            async throws
        {
            let said = Counter()
            let door = try await NodeServer.open(0) { _ in said.add(1) }
            let node = RunningNode {
                try await door.run(links: Self.echo("link"), media: Self.echo("media"))
            }
            for _ in 0..<3 {
                // As the system says it when a connection cannot be accepted.
                door.channel.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
                let option = door.channel.getOption(.autoRead)
                #expect(try await option.get() == false, "the socket is not waited for")
                try await RawConnection.open(to: door.port) { connection in
                    try await connection.send([0])
                    #expect(try await connection.read(5) == Data("link".utf8) + [0])
                }
            }
            #expect(said.value == 1)
            _ = await node.stop()
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
            let door = try await NodeServer.open(0)
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
            #expect(ContinuousClock.now - begin < NodeServer.firstWordLimit)
        }
    }
}

extension NodeServer {
    func run(links: @escaping Service, media: @escaping Service) async throws {
        serve(by: Handlers(links: links, media: media))
        try await run()
    }
}
