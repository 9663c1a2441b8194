import ClockSync
import Testing
import Timing
import Wire

@Suite struct TimePacketsTests {
    /// Values at the ends of every field's range and a few between.
    static let instants: [Int64] = [.min, -1, 0, 1, 0x0123_4567_89AB_CDEF, .max]

    static var packets: [TimePacket] {
        var all: [TimePacket] = [.herald]
        for (index, value) in instants.enumerated() {
            let stamps = StampClass(rawValue: UInt8(index % 3))!
            let sequence = UInt32(truncatingIfNeeded: value)
            let t1 = LocalInstant(nanoseconds: value)
            all.append(
                .request(
                    TimeRequest(
                        sequence: sequence, t1: t1, stamps: stamps,
                        pause: .microseconds(Int64(index) * 858_993_459), hasHerald: index % 2 == 0)
                ))
            for previous in [nil, TimeReply.Transmission(sequence: ~sequence, t3: group(value))] {
                all.append(
                    .reply(
                        TimeReply(
                            sequence: sequence, epoch: UInt64(bitPattern: ~value), t1: t1,
                            t2: group(value ^ 0x55), t3: group(value ^ 0xAA), stamps: stamps,
                            previous: previous)))
            }
        }
        return all
    }

    static func group(_ nanoseconds: Int64) -> GroupInstant {
        GroupInstant(nanoseconds: nanoseconds)
    }

    static func decode(_ bytes: [UInt8]) -> TimePacket? { TimePacket(bytes.span.bytes) }

    @Test(arguments: packets)
    func `what is encoded comes back the same`(packet: TimePacket) {
        #expect(packet.encoded.count == 64)
        #expect(Self.decode(packet.encoded) == packet)
    }

    @Test func `the layout is the documented one`() {
        let bytes = TimePacket.reply(
            TimeReply(
                sequence: 0x0102_0304, epoch: 0x1112_1314_1516_1718,
                t1: LocalInstant(nanoseconds: 0x2122_2324_2526_2728),
                t2: Self.group(0x3132_3334_3536_3738), t3: Self.group(0x4142_4344_4546_4748),
                stamps: .kernel,
                previous: .init(sequence: 0x0506_0708, t3: Self.group(0x5152_5354_5556_5758)))
        ).encoded
        #expect(bytes[0..<8] == [0x54, 0x75, 0x54, 0x69, 1, 2, 2, 1])
        for (start, first) in [(8, 0x11), (16, 0x01), (20, 0x05), (24, 0x21), (32, 0x31)] {
            #expect(bytes[start] == UInt8(first), "at \(start)")
        }
        #expect(bytes[40] == 0x41 && bytes[48] == 0x51)
        #expect(bytes[56...].allSatisfy { $0 == 0 })
    }

    @Test func `no other length is a packet`() {
        let packet = Self.packets[1].encoded
        for length in 0..<200 where length != 64 {
            let bytes = Array((packet + packet + packet + packet).prefix(length))
            #expect(Self.decode(bytes) == nil, "\(length) bytes")
        }
    }

    @Test func `any bytes decode to nothing or to a packet that encodes again`() {
        var state: UInt64 = 7
        func byte() -> UInt8 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
        var decoded = 0
        for round in 0..<4_000 {
            var bytes = (0..<64).map { _ in byte() }
            // Most of them get past the magic, so that the rest is tried too.
            if round % 8 != 0 { bytes.replaceSubrange(0..<5, with: [0x54, 0x75, 0x54, 0x69, 1]) }
            if round % 4 != 0 { bytes[5] = byte() % 4 }
            if round % 2 != 0 { (bytes[6], bytes[7]) = (byte() % 4, byte() % 3) }
            guard let packet = Self.decode(bytes) else { continue }
            decoded += 1
            #expect(Self.decode(packet.encoded) == packet)
        }
        #expect(decoded > 300)
    }

    @Test func `one changed byte of the header is refused`() {
        let packet = Self.packets[1].encoded
        for position in 0..<5 {
            var bytes = packet
            bytes[position] ^= 1
            #expect(Self.decode(bytes) == nil, "byte \(position)")
        }
        for (position, value) in [(5, 0), (5, 3), (6, 3), (7, 1), (7, 255)] {
            var bytes = packet
            bytes[position] = UInt8(value)
            #expect(Self.decode(bytes) == nil, "byte \(position) = \(value)")
        }
    }
}
