import Testing
import TuttiClockSync
import TuttiTiming
import TuttiWire

@Suite struct TimePacketsTests {
    /// Values at the ends of every field's range and a few between.
    static let instants: [Int64] = [.min, -1, 0, 1, 0x0123_4567_89AB_CDEF, .max]

    static var packets: [TimePacket] {
        var all: [TimePacket] = []
        for (index, value) in instants.enumerated() {
            let stamps = StampClass(rawValue: UInt8(index % 3))!
            let sequence = UInt32(truncatingIfNeeded: value)
            let t1 = LocalInstant(nanoseconds: value)
            all.append(
                .request(
                    TimeRequest(
                        sequence: sequence, t1: t1, stamps: stamps,
                        pause: .microseconds(Int64(index) * 858_993_459), isPrompt: index % 2 == 0,
                        reference: index % 3 == 0 ? nil : report(value))
                ))
            for previous in [nil, TimeReply.Transmission(sequence: ~sequence, t3: group(value))] {
                all.append(
                    .reply(
                        TimeReply(
                            sequence: sequence, epoch: UInt64(bitPattern: ~value), t1: t1,
                            t2: group(value ^ 0x55), t3: group(value ^ 0xAA), stamps: stamps,
                            previous: previous, reference: index % 3 == 1 ? nil : verdict(index)
                        )))
            }
        }
        return all
    }

    static func report(_ value: Int64) -> ReferenceReport {
        let bits = UInt32(truncatingIfNeeded: value)
        return ReferenceReport(
            epoch: UInt64(bitPattern: ~value), reading: group(value),
            skewTrillionths: Int32(truncatingIfNeeded: value),
            expectedError: Nanoseconds(Int64(bits)), newest: ~bits,
            ages: SIMD8(bits, 0, 1, .max, ~bits, bits / 3, 7, 0x0102_0304))
    }

    static func verdict(_ index: Int) -> ReferenceVerdict {
        ReferenceVerdict(
            state: ReferenceState(rawValue: UInt8(index))!, rooms: index * 51,
            correction: Nanoseconds(index % 2 == 0 ? Int64(Int32.min) : Int64(Int32.max)),
            share: Double(index % 2), noise: Nanoseconds(Int64(UInt32.max) / Int64(index + 1)),
            spread: Nanoseconds(Int64(index)))
    }

    static func group(_ nanoseconds: Int64) -> GroupInstant {
        GroupInstant(nanoseconds: nanoseconds)
    }

    static func decode(_ bytes: [UInt8]) -> TimePacket? { TimePacket(bytes.span.bytes) }

    @Test(arguments: packets)
    func `what is encoded comes back the same`(packet: TimePacket) {
        #expect(packet.encoded.count == 96)
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
        #expect(bytes[0..<8] == [0x54, 0x75, 0x54, 0x69, 3, 2, 2, 1])
        for (start, first) in [(8, 0x11), (16, 0x01), (20, 0x05), (24, 0x21), (32, 0x31)] {
            #expect(bytes[start] == UInt8(first), "at \(start)")
        }
        #expect(bytes[40] == 0x41 && bytes[48] == 0x51)
        #expect(bytes[56...].allSatisfy { $0 == 0 })
    }

    @Test func `the fields of reference broadcasts are where the documentation says`() {
        let request = TimePacket.request(
            TimeRequest(
                sequence: 0, t1: LocalInstant(nanoseconds: 0), stamps: .kernel,
                reference: ReferenceReport(
                    epoch: 0x1112_1314_1516_1718, reading: Self.group(0x2122_2324_2526_2728),
                    skewTrillionths: 0x3132_3334, expectedError: Nanoseconds(0x4142_4344),
                    newest: 0x5152_5354, ages: SIMD8(0x61, 0, 0, 0, 0, 0, 0, 0x62)))
        ).encoded
        #expect(request[7] == 4)
        for (start, first) in [(8, 0x11), (32, 0x21), (40, 0x31), (44, 0x41), (48, 0x51)] {
            #expect(request[start] == UInt8(first), "at \(start)")
        }
        #expect(request[55] == 0x61 && request[83] == 0x62)
        #expect(request[84...].allSatisfy { $0 == 0 })
        let reply = TimePacket.reply(
            TimeReply(
                sequence: 0, epoch: 0, t1: LocalInstant(nanoseconds: 0), t2: Self.group(0),
                t3: Self.group(0), stamps: .kernel, previous: nil,
                reference: ReferenceVerdict(
                    state: .inUse, rooms: 3, correction: Nanoseconds(-2), share: 1,
                    noise: Nanoseconds(0x7172_7374), spread: Nanoseconds(0x8182_8384)))
        ).encoded
        #expect(reply[7] == 4)
        #expect(reply[56..<60] == [0xFF, 0xFF, 0xFF, 0xFE])
        #expect(reply[60] == 0x71 && reply[64] == 0x81)
        #expect(reply[68..<72] == [0xFF, 0xFF, 7, 3])
        #expect(reply[72...].allSatisfy { $0 == 0 })
    }

    @Test func `a beacon comes back the same, and nothing else is one`() {
        let beacon = ReferenceBeacon(epoch: 0x1112_1314_1516_1718, number: 0x2122_2324)
        let bytes = BeaconPacket.encoded(beacon)
        #expect(BeaconPacket.decode(bytes.span.bytes) == beacon)
        #expect(bytes.count == 24 && bytes[8] == 0x11 && bytes[16] == 0x21)
        for position in 0..<6 {
            var changed = bytes
            changed[position] ^= 1
            #expect(BeaconPacket.decode(changed.span.bytes) == nil, "byte \(position)")
        }
        for length in 0..<100 where length != 24 {
            let other = Array((bytes + bytes + bytes + bytes + bytes).prefix(length))
            #expect(BeaconPacket.decode(other.span.bytes) == nil, "\(length) bytes")
        }
        for packet in Self.packets {
            #expect(BeaconPacket.decode(packet.encoded.span.bytes) == nil)
        }
    }

    @Test func `no other length is a packet`() {
        let packet = Self.packets[0].encoded
        for length in 0..<300 where length != 96 {
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
            var bytes = (0..<96).map { _ in byte() }
            // Most of them get past the magic, so that the rest is tried too.
            if round % 8 != 0 { bytes.replaceSubrange(0..<5, with: [0x54, 0x75, 0x54, 0x69, 3]) }
            if round % 4 != 0 { bytes[5] = byte() % 4 }
            if round % 2 != 0 { (bytes[6], bytes[7]) = (byte() % 4, byte() % 8) }
            guard let packet = Self.decode(bytes) else { continue }
            decoded += 1
            #expect(Self.decode(packet.encoded) == packet)
        }
        #expect(decoded > 150)
    }

    @Test func `one changed byte of the header is refused`() {
        let packet = Self.packets[0].encoded
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
