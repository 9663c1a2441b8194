import TuttiChance
import TuttiClockSync
import TuttiGroupControl
import TuttiTiming

@testable import TuttiWire

extension Harness {
    static let wire = [frames, wireMessages, notices, timePackets, beacons]

    // MARK: Frames

    /// The first byte chooses the limit, the second where the rest is cut.
    private static let frames = Harness(
        name: "frames",
        seeds: {
            let stream = [[], [7], Array(0..<40)].flatMap { FrameEncoder.frame($0) }
            return [[0, 1] + stream, [9, 2] + stream, [40, 3] + stream + [0, 0, 0, 200, 1]]
        },
        check: .plain { bytes in
            guard bytes.count >= 2 else { return }
            let limit = Int(bytes[0])
            let stream = Array(bytes[2...])
            var pieces = FrameDecoder(limit: limit)
            var whole = FrameDecoder(limit: limit)
            var one = FrameDecoder(limit: limit)
            let cut = try messages(of: stream, in: &pieces, seed: UInt64(bytes[1]))
            let single = try messages(of: stream, in: &one)
            do {
                let all = try whole.feed(stream)
                try expectEqual(all, cut, "fed at once and in pieces")
                try expectEqual(all, single, "fed at once and taken one by one")
                try expectEqual(
                    whole.pendingByteCount, pieces.pendingByteCount, "what has begun and not ended")
                let framed = all.flatMap { FrameEncoder.frame($0) }
                try expect(stream.starts(with: framed), "the frames are not the stream")
                try expectEqual(
                    framed.count + whole.pendingByteCount, stream.count, "bytes are lost")
                try expect(all.allSatisfy { $0.count <= limit }, "a message beyond the limit")
            } catch let error as WireError {
                try expect(error.code == .tooLong, "\(error)")
                try expectEqual(cut, single, "in pieces and one by one, until the end")
                try expect((try? pieces.feed([0])) == nil, "a stream goes on behind its end")
            }
        })

    /// In pieces of a length by chance; ends where the decoder does.
    private static func messages(
        of stream: [UInt8], in decoder: inout FrameDecoder, seed: UInt64
    ) throws -> [[UInt8]] {
        var random = SplitMix64(seed: seed)
        var messages: [[UInt8]] = []
        var rest = stream[...]
        while !rest.isEmpty {
            let count = Int.random(in: 1...9, using: &random)
            guard let more = try? decoder.feed(rest.prefix(count), most: 1) else { break }
            rest = rest.dropFirst(count)
            messages += more
            while decoder.hasMessage {
                guard let more = try? decoder.feed([], most: 1) else { return messages }
                messages += more
            }
        }
        return messages
    }

    private static func messages(
        of stream: [UInt8], in decoder: inout FrameDecoder
    ) throws -> [[UInt8]] {
        var messages: [[UInt8]] = []
        guard var more = try? decoder.feed(stream, most: 1) else { return [] }
        while !more.isEmpty {
            messages += more
            guard let next = try? decoder.feed([], most: 1) else { break }
            more = next
        }
        return messages
    }

    // MARK: Messages

    private static let wireMessages = Harness(
        name: "wire-messages",
        seeds: {
            var random = SplitMix64(seed: 44)
            return (0..<40).map { _ in MessageCodec.encode(random.envelope()) }
                .filter { $0.count <= 4_096 }
        },
        // A queue's items are some hundred bytes each, however few a peer writes for one.
        heldPerByte: 512,
        check: .plain { bytes in
            let message: Envelope
            do throws(WireError) {
                message = try MessageCodec.decode(bytes)
            } catch {
                try expect(error.description.utf8.count < 1_000, "a long error: \(error)")
                return
            }
            let again = try MessageCodec.decode(MessageCodec.encode(message))
            try expectEqual(message, again, "written and read again")
        })

    private static let notices = Harness(
        name: "notices",
        seeds: {
            var random = SplitMix64(seed: 45)
            return (0..<8).map { place in
                let commit = Commit(
                    id: random.next(), index: place, hash: random.hash(), change: random.change(),
                    following: place % 2 == 0)
                return MessageCodec.encode(
                    CommitDatagram(instance: random.next(), term: random.next(), commit: commit))
            }
        },
        longest: 300,
        check: .plain { bytes in
            guard let notice = try? MessageCodec.decodeNotice(bytes) else { return }
            let again = MessageCodec.encode(notice)
            try expect(again.count <= MessageCodec.longestNotice, "it has become too long to read")
            try expectEqual(
                notice, try MessageCodec.decodeNotice(again), "written and read again")
        })

    // MARK: Packets

    private static let timePackets = Harness(
        name: "time-packets",
        seeds: { ClockScript.packets.map(\.encoded) },
        longest: 100,
        check: .plain { bytes in
            guard let packet = TimePacket(bytes.span.bytes) else { return }
            try expect(bytes.count == TimePacket.byteCount, "of another length")
            let again = packet.encoded
            try expectEqual(packet, TimePacket(again.span.bytes), "written and read again")
        })

    private static let beacons = Harness(
        name: "beacons",
        seeds: { [BeaconPacket.encoded(ReferenceBeacon(epoch: 0x1234_5678_9ABC, number: 7))] },
        longest: 32,
        check: .plain { bytes in
            guard let beacon = BeaconPacket.decode(bytes.span.bytes) else { return }
            let again = BeaconPacket.encoded(beacon)
            try expectEqual(beacon, BeaconPacket.decode(again.span.bytes), "written and read again")
        })
}
