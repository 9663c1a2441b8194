import Glibc
import Synchronization
import Testing
import TuttiChance
import TuttiClockSync
import TuttiTiming
import TuttiTrust
import TuttiWire

@testable import TuttiLinuxHost

/// A time service for members, on the loopback interface, and a stranger beside it.
@Suite(.timeLimit(.minutes(1))) struct SealedClockTests {
    private struct House {
        let service: TimeService
        let leader: SharedLeaderTags
        let port: Int

        init(broadcasts: Bool = true) throws {
            leader = SharedLeaderTags(LeaderTags(try key(1)))
            service = try TimeService.start(
                port: 0, priority: 0, broadcasts: broadcasts, tags: leader
            ) {
                SharedClock(
                    map: ClockMap(
                        from: LocalInstant(nanoseconds: 0),
                        to: GroupInstant(nanoseconds: TimeServiceTests.shift)),
                    uncertainty: .zero, estimatedAt: HostClock.now(), epoch: 77, quality: .locked)
            }
            port = service.port
        }

        func room(_ link: Int) throws -> SharedRoomTags {
            SharedRoomTags(try RoomTags(try leader { $0.grant(to: link) }.given()))
        }

        func client(
            _ manner: ClockClient.Manner, into latest: TimeServiceTests.Latest
        ) throws -> ClockClient {
            try ClockClient.start(
                host: "127.0.0.1", port: port, priority: 0, seed: 1, manner: manner
            ) { clock, _ in latest.clock.withLock { $0 = clock } }
        }

        var dropped: [DatagramGate.Reason: Int] { leader { $0.dropped } }
    }

    private static func key(_ term: UInt64) throws -> GroupKey {
        var random = SplitMix64(seed: term)
        let secret = (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        return try GroupKey(term: term, secret: secret)
    }

    private static func error(_ clock: SharedClock) -> Nanoseconds {
        let now = HostClock.now()
        return Nanoseconds(
            clock.map(now).nanoseconds - now.nanoseconds - TimeServiceTests.shift)
    }

    private static func request(_ sequence: UInt32 = 1) -> [UInt8] {
        TimePacket.request(
            TimeRequest(sequence: sequence, t1: LocalInstant(nanoseconds: 1), stamps: .kernel)
        ).encoded
    }

    /// What comes back to `socket`, once the service has seen all that was sent before.
    private func answers(_ socket: ProbeSocket, _ house: House) throws -> [[UInt8]] {
        // A member that asks behind the others: the service takes packets in their order.
        let last = try house.room(-9)
        let sealed = try last { $0.seal(request: Self.request()) }.given()
        let witness = try ProbeSocket()
        try witness.send(sealed, to: "127.0.0.1", port: house.port)
        TimeServiceTests.wait { witness.receive() != nil }
        var answers: [[UInt8]] = []
        while let answer = socket.receive() { answers.append(answer.bytes) }
        house.leader { $0.end(-9) }
        return answers
    }

    @Test func `a member locks to the service, with the kernel's stamps, and the bound holds`()
        throws
    {
        let house = try House()
        defer { house.service.stop() }
        let latest = TimeServiceTests.Latest()
        let tags = try house.room(1)
        let client = try house.client(.asking(tags), into: latest)
        defer { client.stop() }
        TimeServiceTests.wait { latest.value?.quality == .locked }
        let clock = try #require(latest.value)
        #expect(Self.error(clock).magnitude <= clock.uncertainty + Nanoseconds(1))
        TimeServiceTests.wait { client.statistics.stamps == .kernel }
        #expect(client.statistics.ignored == 0)
        #expect(house.dropped.isEmpty)
        #expect(tags { $0.dropped }.isEmpty)
    }

    @Test func `what is silent asks nothing before it has a key, and then at once`() throws {
        let house = try House()
        defer { house.service.stop() }
        let latest = TimeServiceTests.Latest()
        let client = try house.client(.silent, into: latest)
        defer { client.stop() }
        HostClock.sleep(until: HostClock.now() + .milliseconds(50))
        #expect(client.statistics.sent == 0 && house.dropped.isEmpty)
        client.begin(try house.room(1))
        TimeServiceTests.wait { latest.value?.quality == .locked }
        #expect(house.dropped.isEmpty)
        #expect(client.problem == nil)
    }

    @Test func `strangers get no answer, whatever they send, and each is counted`() throws {
        let house = try House()
        defer { house.service.stop() }
        let socket = try ProbeSocket()
        let room = try house.room(1)
        // Captured on the way.
        let captured = try room { $0.seal(request: Self.request()) }.given()
        try socket.send(captured, to: "127.0.0.1", port: house.port)
        let first = try answers(socket, house)
        #expect(first.map(\.count) == [captured.count], "no reply is larger than its request")
        #expect(room { $0.open(reply: first[0], at: HostClock.now()) } != nil)

        try socket.send(Array(Self.request().dropLast()), to: "127.0.0.1", port: house.port)
        try socket.send([], to: "127.0.0.1", port: house.port)
        try socket.send(captured + [0], to: "127.0.0.1", port: house.port)
        #expect(try answers(socket, house).isEmpty)
        // Too short, empty, and longer than any request: it is cut, and its tag does not fit.
        #expect(house.dropped.values.reduce(0, +) == 3)

        for _ in 0..<3 { try socket.send(captured, to: "127.0.0.1", port: house.port) }
        #expect(try answers(socket, house).isEmpty)
        #expect(house.dropped[.replay] == 3 || house.dropped[.replay] == 4)

        let before = house.dropped.values.reduce(0, +)
        let fresh = try room { $0.seal(request: Self.request(2)) }.given()
        for byte in fresh.indices {
            var mutated = fresh
            mutated[byte] ^= 1 << UInt8(byte % 8)
            try socket.send(mutated, to: "127.0.0.1", port: house.port)
        }
        #expect(try answers(socket, house).isEmpty)
        #expect(house.dropped.values.reduce(0, +) == before + fresh.count)

        // Of another household, whose numbers are the same.
        var other = LeaderTags(try Self.key(2))
        var stranger = try RoomTags(try other.grant(to: 1).given())
        let forged = try stranger.seal(request: Self.request()).given()
        try socket.send(forged, to: "127.0.0.1", port: house.port)
        #expect(try answers(socket, house).isEmpty)
        // One request, and five of the witness.
        TimeServiceTests.wait { house.service.answered >= 6 }
        #expect(house.service.answered == 6)
        // The one that was captured before it arrived is still good.
        try socket.send(fresh, to: "127.0.0.1", port: house.port)
        #expect(try answers(socket, house).count == 1)
    }

    /// A room that cannot find the leader's hardware address has no key yet: it learns that somebody
    /// is there, and nothing else.
    @Test func `a request without a tag gets nothing but an empty datagram, and rarely`() throws {
        let house = try House()
        defer { house.service.stop() }
        let socket = try ProbeSocket()
        try socket.send(Self.request(), to: "127.0.0.1", port: house.port)
        #expect(try answers(socket, house) == [[]])
        #expect(house.dropped.isEmpty)
        let begin = HostClock.now()
        for _ in 0..<(3 * KnockAnswer.burst) {
            try socket.send(Self.request(), to: "127.0.0.1", port: house.port)
        }
        let answers = try answers(socket, house)
        let seconds = (HostClock.now() - begin).seconds
        #expect(answers.allSatisfy { $0.isEmpty })
        let most = KnockAnswer.burst + Int(seconds * Double(KnockAnswer.perSecond))
        #expect(answers.count <= most)
        #expect(house.dropped.values.reduce(0, +) == 3 * KnockAnswer.burst - answers.count)
    }

    @Test func `replies that are forged, changed or come again move nothing`() throws {
        let peer = try TimeSocket(port: 0)
        var leader = LeaderTags(try Self.key(1))
        let tags = SharedRoomTags(try RoomTags(try leader.grant(to: 1).given()))
        let client = try ClockClient.start(
            host: "127.0.0.1", port: peer.port, priority: 0, seed: 1, manner: .asking(tags)
        ) { _, _ in }
        defer { client.stop() }
        var arrival: TimeSocket.Arrival<[UInt8]>?
        TimeServiceTests.wait {
            arrival = (try? peer.receiveSealed()) ?? nil
            return arrival != nil
        }
        let asked = try #require(arrival)
        let bytes = try #require(asked.packet)
        let (payload, asker) = try leader.open(request: bytes, at: HostClock.now()).given()
        guard case .request(let request)? = TimePacket(payload.span.bytes) else {
            Issue.record("no request")
            return
        }
        let reply = TimePacket.reply(
            TimeReply(
                sequence: request.sequence, epoch: 5, t1: request.t1,
                t2: GroupInstant(nanoseconds: 1), t3: GroupInstant(nanoseconds: 2),
                stamps: .program, previous: nil))
        let sealed = try leader.seal(reply: reply.encoded, to: asker, at: HostClock.now()).given()
        var forged = sealed
        forged[40] ^= 1
        for bytes in [reply.encoded, forged] { try peer.send(sealed: bytes, to: asked.from) }
        TimeServiceTests.wait { tags { $0.dropped }.values.reduce(0, +) == 2 }
        #expect(client.statistics.answered == 0)
        try peer.send(sealed: sealed, to: asked.from)
        try peer.send(sealed: sealed, to: asked.from)
        TimeServiceTests.wait { tags { $0.dropped[.replay] } == 1 }
        TimeServiceTests.wait { client.statistics.answered == 1 }
        #expect(client.statistics.ignored == 0)
    }

    @Test func `a new key while exchanging keeps the estimate`() throws {
        let house = try House()
        defer { house.service.stop() }
        let latest = TimeServiceTests.Latest()
        let tags = try house.room(1)
        let client = try house.client(.asking(tags), into: latest)
        defer { client.stop() }
        TimeServiceTests.wait { latest.value?.quality == .locked }
        for term in 2...4 as ClosedRange<UInt64> {
            let secret = try Self.key(term).secretBytes
            let grants = try house.leader { leader throws(TrustError) in
                try leader.begin(secret, at: HostClock.now())
            }
            let answered = client.statistics.answered
            // The room has not heard of it.
            TimeServiceTests.wait { client.statistics.answered >= answered + 5 }
            try tags { room throws(TrustError) in
                try room.take(grants[0].grant, at: HostClock.now())
            }
            // More than are under way at once: a key is good until the next but one.
            let later = client.statistics.answered
            TimeServiceTests.wait { client.statistics.answered >= later + 32 }
            #expect(latest.value?.quality == .locked)
        }
        let clock = try #require(latest.value)
        #expect(Self.error(clock).magnitude <= clock.uncertainty + Nanoseconds(1))
        #expect(client.statistics.restarts == 0)
        #expect(house.dropped.isEmpty)
        #expect(tags { $0.dropped }.isEmpty)
    }

    @Test func `beacons that are forged or come again are not heard`() throws {
        let socket = try TimeSocket(
            connectedTo: try SocketAddress.resolve(host: "127.0.0.1", port: 9)[0])
        let here = try #require(socket.address)
        let hearer: BeaconReceiver
        do {
            hearer = try BeaconReceiver(beside: socket, leader: here)
        } catch {
            return  // no multicast on this machine's loopback
        }
        var leader = LeaderTags(try Self.key(1))
        let tags = SharedRoomTags(try RoomTags(try leader.grant(to: 1).given()))
        let beacon = ReferenceBeacon(epoch: 7, number: 3)
        let sealed = try leader.seal(beacon: BeaconPacket.encoded(beacon), at: HostClock.now())
            .given()
        var changed = sealed
        changed[25] ^= 1
        let sender = try ProbeSocket()
        try sender.bind("127.0.0.1", port: 0)
        try sender.join("224.0.0.254", interface: UInt32(1))
        for bytes in [BeaconPacket.encoded(beacon), changed, sealed, sealed] {
            try sender.send(bytes, to: "224.0.0.254", port: MulticastFacts.beaconPort)
        }
        var heard: [ReferenceBeacon] = []
        TimeServiceTests.wait {
            while let one = hearer.receive(tags) { heard.append(one.beacon) }
            return tags { $0.dropped }.values.reduce(0, +) == 3
        }
        #expect(heard == [beacon])
        #expect(tags { $0.dropped[.replay] } == 1)
    }
}

extension Optional {
    /// The value that has to be there, also of a call that changes something.
    fileprivate func given(sourceLocation: SourceLocation = #_sourceLocation) throws -> Wrapped {
        try #require(self, sourceLocation: sourceLocation)
    }
}
