import Foundation
import Logging
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiSecureLinks
import TuttiTiming
import TuttiTrust
import TuttiWire

@testable import TuttiRoom
@testable import TuttiSimulation
@testable import tutti

extension EndToEndTests {
    /// Beside the node of a member that plays, somebody has links with its key to the leader and to
    /// another room, and asks for the time. When the member is removed, its node goes by its own
    /// will; the others do not, and are put out.
    @Test(.enabled(if: canHouse, obstacle))
    func `who is removed and holds on to its links is out, and the others play on`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 3, rooms: 0...1) { house, file in
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["follow", "--leader", leader] + Self.room(1), on: 1)
                try house.start(
                    ["follow", "--leader", leader, "--name", "bath", "--output", "virtual"], on: 2)
                try house.start(["lead", file, "--wait-for", "3"] + Self.room(0), on: 0)
                try Self.playing(house, leader, rooms: 3)
                let former = try FormerMember(house, host: 2)
                try former.checkIsServed()
                sleep(2)
                try Self.command(house, ["household", "remove", "host 2"], leader)
                try former.checkIsOut()
                try Self.playing(house, leader, rooms: 2)
                sleep(4)
                try former.checkIsOut()
                try house.end()
            }
        }
        let hearing = try #require(
            Hearing(recordings, names: Array(Self.names[..<2])), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        expectTogether(hearing, rooms: [0, 1])
    }
}

/// Somebody with a member's key who uses it as long as it is good for anything.
private struct FormerMember {
    /// A link on which something is asked.
    private struct Held {
        let address: String
        let spoken: LinkProtocol
        let question: [UInt8]
        let link: HeldLink

        var name: String { "\(spoken) at \(address)" }
    }

    private let network: HostNetwork
    private let leader: String
    private let identity: LinkIdentity
    /// It says there that it is a room.
    private let asRoom: HeldLink
    /// To the leader, and to another room.
    private let held: [Held]
    private let tags: SharedRoomTags

    private static let questions: [(LinkProtocol, [UInt8])] = [
        (.control, FrameEncoder.frame(MessageCodec.encode(.request(.status)))),
        (
            .media,
            Array(
                "GET /asset/\(String(repeating: "ab", count: 32)) HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
        ),
    ]
    /// Questions for the time, ten milliseconds apart.
    private static let times = 30

    init(_ house: House, host: Int) throws {
        let network = house.network(of: host)
        let credentials = try Credentials.household(in: house.state(of: host), name: "host \(host)")
        guard let identity = credentials.keeper?.identity else { throw CommandError("no key") }
        func link(_ address: String, _ spoken: LinkProtocol) throws -> HeldLink {
            try HeldLink(connected: try network.connect(to: address), as: identity, spoken)
        }
        (self.network, self.identity, leader) = (network, identity, house.hosts[0].address)
        asRoom = try link(leader, .control)
        let hello = Hello(
            room: try RoomID("cellar"), instance: 7, outputLatency: .zero, hasOutput: false)
        asRoom.say(MessageCodec.encode(.toLeader(.hello(hello))))
        let answer = try MessageCodec.decode(asRoom.message())
        guard case .toRoom(.welcome(let welcome)) = answer, let key = welcome.datagramKey else {
            throw CommandError("a member is no room: \(answer)")
        }
        tags = SharedRoomTags(try RoomTags(try DatagramGrant(key)))
        held = try house.hosts[0...1].flatMap { host in
            try Self.questions.map { spoken, question in
                Held(
                    address: host.address, spoken: spoken, question: question,
                    link: try link(host.address, spoken))
            }
        }
    }

    /// How often the leader says what time it is.
    private func timesTold() throws -> Int {
        try network.inside { [tags, leader] in
            try ExchangeFacts.measure(host: leader, port: 7430, count: Self.times, tags: tags)
                .answered
        }
    }

    func checkIsServed() throws {
        for held in held {
            held.link.send(held.question)
            guard try !held.link.bytes().isEmpty else { throw CommandError("\(held.name): closed") }
        }
        guard try timesTold() > 0 else { throw CommandError("a member is not told the time") }
        guard asRoom.isOpen else { throw CommandError("the link of a room is closed") }
        while asRoom.hasBytes { _ = try asRoom.message() }
    }

    func checkIsOut() throws {
        try until("the end of all links", seconds: 5) {
            !asRoom.isOpen && held.allSatisfy { !$0.link.isOpen }
        }
        while asRoom.hasBytes {
            if case .toRoom(.datagramKey) = try MessageCodec.decode(asRoom.message()) {
                throw CommandError("who was removed is told the next key")
            }
        }
        // The leader may see the end of its links a moment later.
        try until("the end of answers to who was removed", seconds: 3) { try timesTold() == 0 }
        for held in held {
            let descriptor = try network.connect(to: held.address)
            // It is closed in the handshake, or behind it.
            guard
                let link = try? HeldLink(connected: descriptor, as: identity, held.spoken)
            else { continue }
            link.send(held.question)
            let answer = try link.bytes(within: 5)
            guard answer.isEmpty, !link.isOpen else {
                throw CommandError("\(held.name): who was removed is told \(answer.count) bytes")
            }
        }
    }
}
