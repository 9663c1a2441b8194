import Crypto
import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiTrust

@Suite struct `Tags of datagrams` {
    private static let channel = DatagramChannel(.clock, .fromLeader)
    private let me = SenderNumber(3)

    private func groupKey(_ term: UInt64) -> GroupKey {
        var random = SplitMix64(seed: term)
        return try! GroupKey(term: term, secret: random.bytes(32))
    }

    private func pair(_ term: UInt64 = 7) throws -> (DatagramSealer, DatagramGate) {
        let sealer = DatagramSealer(groupKey(term), Self.channel, as: .leader)
        var gate = DatagramGate(groupKey(term), Self.channel, as: me)
        try gate.allow(.leader)
        return (sealer, gate)
    }

    /// There are numbers left.
    private func sealed(
        _ sealer: inout DatagramSealer, _ payload: [UInt8], to receiver: SenderNumber
    ) -> [UInt8] { sealer.seal(payload, to: receiver)! }

    private func payload(_ verdict: DatagramGate.Verdict) -> [UInt8]? {
        if case .payload(let bytes, _, _) = verdict { Array(bytes) } else { nil }
    }

    @Test func `what was sealed comes out, from whom it was, and never twice`() throws {
        var (sealer, gate) = try pair()
        for length in [0, 1, 96, 1_440] {
            let sent = [UInt8](repeating: 9, count: length)
            let packet = sealed(&sealer, sent, to: me)
            #expect(packet.count == length + DatagramSealer.overhead)
            let verdict = gate.receive(packet, at: instant(0))
            #expect(payload(verdict) == sent)
            #expect(gate.receive(packet, at: instant(0)) == .dropped(.replay))
        }
        #expect(gate.acceptedCount == 4 && gate.dropped == [.replay: 4])
    }

    @Test func `a change of any bit is dropped, and does no harm to the packet itself`() throws {
        var (sealer, gate) = try pair()
        let packet = sealed(&sealer, [1, 2, 3, 4], to: me)
        for bit in 0..<packet.count * 8 {
            var changed = packet
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(payload(gate.receive(changed, at: instant(0))) == nil)
        }
        #expect(payload(gate.receive(packet, at: instant(0))) == [1, 2, 3, 4])
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `noise of any length is dropped`(seed: UInt64) throws {
        var (_, gate) = try pair()
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let noise = random.bytes(Int.random(in: 0...200, using: &random))
            #expect(payload(gate.receive(noise, at: instant(0))) == nil)
        }
        #expect(gate.receive(random.bytes(9_000), at: instant(0)) == .dropped(.length))
        #expect(gate.dropped.values.reduce(0, +) == 101)
    }

    @Test func `a tag is good for one purpose, direction, receiver, sender and term`() throws {
        for channel in DatagramChannel.allCases where channel != Self.channel {
            var sealer = DatagramSealer(groupKey(7), channel, as: .leader)
            var (_, gate) = try pair()
            var packet = sealed(&sealer, [1], to: me)
            #expect(gate.receive(packet, at: instant(0)) == .dropped(.header))
            packet[1] = Self.channel.byte
            #expect(gate.receive(packet, at: instant(0)) == .dropped(.tag))
        }
        var (sealer, gate) = try pair()
        var packet = sealed(&sealer, [1], to: SenderNumber(4))
        #expect(gate.receive(packet, at: instant(0)) == .dropped(.receiver))
        packet[5] = 3
        #expect(gate.receive(packet, at: instant(0)) == .dropped(.tag))
        packet = sealed(&sealer, [1], to: .everybody)
        #expect(payload(gate.receive(packet, at: instant(0))) == [1])
        var stranger = DatagramSealer(groupKey(7), Self.channel, as: SenderNumber(9))
        packet = sealed(&stranger, [1], to: me)
        #expect(gate.receive(packet, at: instant(0)) == .dropped(.sender))
        // Another term whose low bits are the same, though it has the same secret.
        var random = SplitMix64(seed: 7)
        let same = try GroupKey(term: 7 + 65_536, secret: random.bytes(32))
        var other = DatagramSealer(same, Self.channel, as: .leader)
        packet = sealed(&other, [1], to: me)
        #expect(gate.receive(packet, at: instant(0)) == .dropped(.tag))
    }

    /// The model remembers all numbers; the window must agree with it wherever it remembers.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `each number is taken once, in whatever order they come`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let start: UInt64 = seed % 2 == 0 ? 0 : .max - 600
        var window = ReplayWindow(after: start)
        var taken: Set<UInt64> = []
        var newest = start
        for _ in 0..<2_000 {
            let near = newest &- start < 100 ? start : newest - 100
            let ahead: UInt64 = random.chance(0.02) ? 200 : 8
            let number = UInt64.random(
                in: near...(newest > .max - ahead ? .max : newest + ahead), using: &random)
            let isNew = number > start && !taken.contains(number)
            let isForgotten = newest >= number && newest - number >= ReplayWindow.width
            #expect(window.isNew(number) == (isNew && !isForgotten))
            #expect(window.take(number) == (isNew && !isForgotten))
            taken.insert(number)
            newest = max(newest, number)
        }
        #expect(window.newest == newest)
        #expect(!window.isNew(0))
    }

    @Test func `reordered within the window all come in, beyond it none`() throws {
        var (sealer, gate) = try pair()
        let width = Int(ReplayWindow.width)
        var packets: [[UInt8]] = []
        for number in 0..<2 * width {
            packets.append(sealed(&sealer, [UInt8(number & 255)], to: me))
        }
        // The newest of the first half comes first.
        for packet in packets[..<width].reversed() {
            #expect(payload(gate.receive(packet, at: instant(0))) != nil)
        }
        #expect(payload(gate.receive(packets[2 * width - 1], at: instant(0))) != nil)
        #expect(payload(gate.receive(packets[width], at: instant(0))) != nil)
        let late = sealed(&sealer, [], to: me)
        #expect(payload(gate.receive(late, at: instant(0))) != nil)
        #expect(payload(gate.receive(packets[width + 1], at: instant(0))) != nil)
        for packet in packets[...width] {
            #expect(gate.receive(packet, at: instant(0)) == .dropped(.replay))
        }
    }

    @Test func `the numbers end, and do not begin anew`() throws {
        var sealer = DatagramSealer(groupKey(7), Self.channel, as: .leader, after: .max - 2)
        var gate = DatagramGate(groupKey(7), Self.channel, as: me)
        try gate.allow(.leader, after: .max - 2)
        for _ in 0..<2 {
            let packet = sealed(&sealer, [5], to: me)
            #expect(payload(gate.receive(packet, at: instant(0))) == [5])
            #expect(gate.receive(packet, at: instant(0)) == .dropped(.replay))
        }
        #expect(sealer.seal([5], to: me) == nil)
    }

    @Test func `a new term takes over, and the old one has some grace`() throws {
        var (old, gate) = try pair(7)
        var new = DatagramSealer(groupKey(8), Self.channel, as: .leader)
        #expect(
            gate.receive(sealed(&new, [8], to: me), at: instant(0)) == .dropped(.term))
        let seen = sealed(&old, [7], to: me)
        #expect(payload(gate.receive(seen, at: instant(0))) == [7])
        let other = SenderNumber(30)
        try gate.begin(groupKey(8), as: other, at: instant(1))
        #expect(gate.nextDeadline == instant(6))
        // Nobody is known in it before the leader says so.
        let early = sealed(&new, [8], to: other)
        #expect(gate.receive(early, at: instant(1)) == .dropped(.sender))
        try gate.allow(.leader)
        #expect(payload(gate.receive(early, at: instant(1))) == [8])
        // The old one goes on by its own numbers.
        #expect(gate.receive(seen, at: instant(1)) == .dropped(.replay))
        #expect(
            payload(gate.receive(sealed(&old, [7], to: me), at: instant(5.9))) == [7])
        #expect(
            gate.receive(sealed(&old, [7], to: me), at: instant(6)) == .dropped(.term))
        #expect(gate.nextDeadline == nil)
        for term in [7, 8, 0] as [UInt64] {
            #expect(throws: TrustError.self) {
                try gate.begin(groupKey(term), as: me, at: instant(7))
            }
        }
        #expect(gate.term == 8)
    }

    @Test func `a receiver that was restarted takes nothing of before`() throws {
        var (sealer, _) = try pair()
        var captured: [[UInt8]] = []
        for _ in 0..<10 { captured.append(sealed(&sealer, [1], to: me)) }
        var restarted = DatagramGate(groupKey(7), Self.channel, as: me)
        try restarted.allow(.leader, after: sealer.sequence)
        for packet in captured {
            #expect(restarted.receive(packet, at: instant(0)) == .dropped(.replay))
        }
        let fresh = sealed(&sealer, [2], to: me)
        #expect(payload(restarted.receive(fresh, at: instant(0))) == [2])
        // To be allowed again forgets nothing.
        try restarted.allow(.leader)
        #expect(restarted.receive(fresh, at: instant(0)) == .dropped(.replay))
    }

    @Test func `a member that was removed is not heard any more, in neither term`() throws {
        var (old, gate) = try pair(7)
        var new = DatagramSealer(groupKey(8), Self.channel, as: .leader)
        try gate.begin(groupKey(8), as: me, at: instant(0))
        try gate.allow(.leader)
        gate.forbid(.leader, in: 7)
        gate.forbid(.leader, in: 8)
        for packet in [sealed(&old, [1], to: me), sealed(&new, [1], to: me)] {
            #expect(gate.receive(packet, at: instant(1)) == .dropped(.sender))
        }
    }

    @Test func `there is an end to senders`() throws {
        var gate = DatagramGate(groupKey(7), Self.channel, as: me)
        for number in 0..<UInt16(DatagramGate.mostSenders) { try gate.allow(SenderNumber(number)) }
        #expect(throws: TrustError.self) { try gate.allow(SenderNumber(5_000)) }
        try gate.allow(SenderNumber(1))
    }

    /// RFC 4231, case 2, cut to 16 bytes.
    @Test func `a tag is an HMAC-SHA-256`() {
        let key = TagKey(SymmetricKey(data: Array("Jefe".utf8)))
        let tag = key.tag(over: Array("what do ya want for nothing?".utf8)[...])
        #expect(
            tag == [
                0x5B, 0xDC, 0xC1, 0x46, 0xBF, 0x60, 0x75, 0x4E, 0x6A, 0x04, 0x24, 0x26, 0x08, 0x95,
                0x75, 0xC7,
            ])
    }
}
