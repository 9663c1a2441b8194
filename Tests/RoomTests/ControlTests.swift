import NIOCore
import NIOPosix
import Synchronization
import Testing
import TuttiGroupControl
import TuttiTiming
import TuttiWire

@testable import TuttiRoom

/// The connection of a control client, with a leader that does what the test says.
@Suite(.timeLimit(.minutes(1))) struct ControlTests {
    /// Answers by a script; counts who came and what was asked.
    private final class ScriptedLeader: Sendable {
        typealias Script = @Sendable (ControlRequest, _ connection: Int) -> [ControlReply]?

        struct Seen {
            /// Connections on which something was asked, in the order of their first questions.
            var spoken: [any Channel] = []
            var requests: [ControlRequest] = []
        }
        let seen = Mutex(Seen())
        private let channel = Mutex<(any Channel)?>(nil)

        /// - Parameter script: `nil` closes the connection.
        func begin(_ script: @escaping Script) async throws -> HostPort {
            let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try EnvelopeCodec.add(to: channel, limit: FrameDecoder.leaderLimit)
                        try channel.pipeline.syncOperations.addHandler(
                            Answering { script($0, self.noted($0, from: channel)) })
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            channel.withLock { $0 = server }
            return HostPort(host: "127.0.0.1", port: server.localAddress?.port ?? 0)
        }

        /// An attempt to connect beside another that was slow says nothing, and does not count.
        private func noted(_ request: ControlRequest, from channel: any Channel) -> Int {
            seen.withLock { seen in
                seen.requests.append(request)
                if let place = seen.spoken.firstIndex(where: { $0 === channel }) {
                    return place + 1
                }
                seen.spoken.append(channel)
                return seen.spoken.count
            }
        }

        func end() async throws { try await channel.withLock { $0 }?.close() }
    }

    private final class Answering: ChannelInboundHandler, Sendable {
        typealias InboundIn = Envelope
        typealias OutboundOut = Envelope
        private let answer: @Sendable (ControlRequest) -> [ControlReply]?

        init(_ answer: @escaping @Sendable (ControlRequest) -> [ControlReply]?) {
            self.answer = answer
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .request(let request) = unwrapInboundIn(data) else { return }
            guard let replies = answer(request) else { return context.close(promise: nil) }
            for reply in replies { context.write(wrapOutboundOut(.reply(reply)), promise: nil) }
            context.flush()
        }
    }

    private static func status(_ title: String) -> GroupStatus {
        GroupStatus(
            leader: "leader", phase: .playing, title: title, index: 0, count: 1,
            positionSeconds: 0, durationSeconds: 10, rate: 1, rooms: [])
    }

    private static func event(_ sequence: UInt64) -> ControlReply {
        .event(GroupEvent(sequence: sequence, status: status("event")))
    }

    private static let done = ControlReply.done(CommandEffect(phase: .playing, title: "done"))

    @Test func `questions, commands and events share one connection`() async throws {
        let leader = ScriptedLeader()
        let address = try await leader.begin { request, _ in
            switch request {
            case .watch: [Self.event(1)]
            // Events come in between and are no answers.
            case .command: [Self.event(2), Self.done, Self.event(3)]
            default: [Self.event(4), .status(Self.status("answer"))]
            }
        }
        let client = GroupClient(address: address)
        var events = client.events().makeAsyncIterator()
        #expect(try await events.next()?.sequence == 1)
        for _ in 0..<20 {
            #expect(try await client.perform(.play).title == "done")
            #expect(try await client.status().title == "answer")
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<20 {
                group.addTask {
                    number % 2 == 0
                        ? try await client.perform(.play).title : try await client.status().title
                }
            }
            var titles: [String: Int] = [:]
            for try await title in group { titles[title, default: 0] += 1 }
            #expect(titles == ["done": 10, "answer": 10])
        }
        #expect(leader.seen.withLock { $0.spoken.count } == 1)
        try await leader.end()
    }

    @Test func `who listens later begins with the present state too`() async throws {
        let leader = ScriptedLeader()
        let address = try await leader.begin { request, _ in
            if case .watch = request { [Self.event(7)] } else { [Self.done] }
        }
        let client = GroupClient(address: address)
        var first = client.events().makeAsyncIterator()
        #expect(try await first.next()?.sequence == 7)
        var second = client.events().makeAsyncIterator()
        #expect(try await second.next()?.sequence == 7)
        #expect(leader.seen.withLock { $0.requests.count } == 1, "it watches once")
        try await leader.end()
    }

    @Test func `a leader that came back is asked again, and a command is not given twice`()
        async throws
    {
        let leader = ScriptedLeader()
        let closesAt = Mutex(Set<Int>())
        let address = try await leader.begin { request, connection in
            if closesAt.withLock({ $0.contains(connection) }) { return nil }
            if case .command = request { return [Self.done] }
            return [.status(Self.status("answer"))]
        }
        let client = GroupClient(address: address)
        #expect(try await client.status().title == "answer")
        closesAt.withLock { _ = $0.insert(1) }
        #expect(try await client.status().title == "answer")
        #expect(leader.seen.withLock { $0.spoken.count } == 2)
        closesAt.withLock { _ = $0.insert(2) }
        let error = await #expect(throws: RoomError.self) { try await client.perform(.next) }
        #expect(error?.code == .unreachable)
        let commands = leader.seen.withLock { seen in
            seen.requests.count { if case .command = $0 { true } else { false } }
        }
        #expect(commands == 1)
        #expect(try await client.perform(.next).title == "done", "the next one is another matter")
        try await leader.end()
    }

    @Test func `a question that is given up does not shift the answers`() async throws {
        let leader = ScriptedLeader()
        let held = Mutex(true)
        let address = try await leader.begin { request, _ in
            switch request {
            case .queue: []
            case .status where held.withLock { $0 }: []
            case .syncStatus:
                [
                    .status(Self.status("first")), .status(Self.status("second")),
                    .status(Self.status("third")),
                ]
            default: [Self.done]
            }
        }
        let connection = ControlConnection(to: address, within: .seconds(10), .many, .open)
        let first = Task { try await connection.ask(.status, within: .seconds(10)) }
        while leader.seen.withLock({ $0.requests.isEmpty }) { await Task.yield() }
        let second = Task { try await connection.ask(.status, within: .seconds(10)) }
        while leader.seen.withLock({ $0.requests.count < 2 }) { await Task.yield() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let third = try await connection.ask(.syncStatus, within: .seconds(10))
        #expect(third == .status(Self.status("third")))
        #expect(try await second.value == .status(Self.status("second")))
        try await leader.end()
    }

    @Test func `whoever listens hears that the leader is gone`() async throws {
        let leader = ScriptedLeader()
        let address = try await leader.begin { request, _ in
            if case .watch = request { [Self.event(1)] } else { nil }
        }
        let client = GroupClient(address: address)
        var events = client.events().makeAsyncIterator()
        _ = try await events.next()
        await #expect(throws: RoomError.self) { try await client.perform(.play) }
        await #expect(throws: RoomError.self) { while try await events.next() != nil {} }
        try await leader.end()
    }
}

extension IntegrationTests {
    /// The same group, steered in the process of its leader and over the network.
    @Suite struct Controlling {
        enum Way: CaseIterable {
            case inTheLeader, inARoom, overTheNetwork
        }

        @Test(.timeLimit(.minutes(1)), arguments: Way.allCases)
        func `a command is answered with what it did, and when that is heard`(_ way: Way)
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 71, as: "a.wav")
                try await group.lead([asset])
                group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                let control: any GroupControlling =
                    switch way {
                    case .inTheLeader: try #require(group.control(in: "leader"))
                    case .inARoom: try #require(group.control(in: "attic"))
                    case .overTheNetwork: GroupClient(address: group.address)
                    }
                var events = control.events().makeAsyncIterator()
                let first = try #require(try await events.next())
                #expect(first.status.phase == .playing)

                let sought = try await control.perform(.seek(seconds: 20))
                #expect(sought.phase == .playing && sought.title == "a")
                #expect(sought.positionSeconds == 20)
                let instant = try #require(sought.instant)
                let delay = try #require(sought.delay)
                // From the instant on the line is that of the seek.
                let status = try await control.status()
                #expect(status.positionSeconds >= 20 - delay.seconds)
                #expect(status.positionSeconds < 40)

                let paused = try await control.perform(.pause)
                #expect(paused.phase == .paused)
                let pausedAt = try #require(paused.instant)
                #expect(pausedAt > instant)
                // What sounded from the one instant to the other.
                let played = try #require(paused.positionSeconds) - 20
                #expect(abs(played - (pausedAt - instant).seconds) < 0.001)

                let louder = try await control.perform(.volume(room: nil, percent: 40))
                #expect(louder.groupVolume == 40 && louder.instant == nil && louder.rooms.isEmpty)
                let again = try await control.perform(.volumeBy(room: nil, percent: 5))
                #expect(again.groupVolume == 45)
                let one = try await control.perform(
                    .volume(room: RoomID("leader"), percent: 70))
                #expect(one.rooms.map(\.volume) == [70] && one.groupVolume == nil)

                let nowhere = try RoomID("nowhere")
                let error = await #expect(throws: RoomError.self) {
                    try await control.perform(.volume(room: nowhere, percent: 1))
                }
                #expect(error?.code == .refused)
                #expect(try await control.queue().items.map(\.title) == ["a"])

                var last = first
                while last.status.phase != .paused {
                    let next = try #require(try await events.next())
                    #expect(next.sequence > last.sequence)
                    last = next
                }
                let stopped = try await control.perform(.stop)
                #expect(stopped.phase == .stopped && stopped.instant == nil)
            }
        }
    }
}
