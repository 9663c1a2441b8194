import TuttiClockSync
import TuttiGroupControl
import TuttiTiming
import TuttiWire

extension Benchmark {
    /// Time packets, of which a leader of many rooms answers thousands a second; and the state of a
    /// session of ten items, the largest message that is sent often.
    static var wireBenchmarks: [Benchmark] {
        [
            encoding("wire/encode-request", request), decoding("wire/decode-request", request),
            encoding("wire/encode-reply", reply), decoding("wire/decode-reply", reply),
            Benchmark(
                name: "wire/encode-state", operation: "the state of a session of ten items",
                unit: "message"
            ) {
                let message = try LeaderToRoom.state(sessionState())
                return { count in
                    var sum: UInt64 = 0
                    for _ in 0..<count { sum &+= UInt64(MessageCodec.encode(message).count) }
                    return sum
                }
            },
            Benchmark(
                name: "wire/decode-state", operation: "the state of a session of ten items",
                unit: "message"
            ) {
                let message = Envelope.toRoom(try LeaderToRoom.state(sessionState()))
                let bytes = MessageCodec.encode(message)
                return { count in
                    var sum: UInt64 = 0
                    for _ in 0..<count where (try? MessageCodec.decode(bytes)) == message {
                        sum &+= 1
                    }
                    return sum
                }
            },
        ]
    }

    /// The sequence changes and any byte may be looked at, so that each packet is work.
    private static func encoding(
        _ name: String, _ packet: @escaping @Sendable (UInt32) -> TimePacket
    ) -> Benchmark {
        Benchmark(name: name, operation: "a time packet of 96 bytes", unit: "packet") {
            { count in
                var bytes = [UInt8](repeating: 0, count: TimePacket.byteCount)
                var sum: UInt64 = 0
                for i in 0..<count {
                    var span = bytes.mutableSpan
                    var raw = span.mutableBytes
                    packet(UInt32(truncatingIfNeeded: i)).encode(into: &raw)
                    sum &+= UInt64(bytes[i % TimePacket.byteCount])
                }
                return sum
            }
        }
    }

    private static func decoding(
        _ name: String, _ packet: @escaping @Sendable (UInt32) -> TimePacket
    ) -> Benchmark {
        Benchmark(name: name, operation: "a time packet of 96 bytes", unit: "packet") {
            let packets = (0..<64).map { packet(UInt32($0)) }
            let bytes = packets.map(\.encoded)
            return { count in
                var sum: UInt64 = 0
                for i in 0..<count {
                    let packet = bytes[i % 64]
                    if TimePacket(packet.span.bytes) == packets[i % 64] { sum &+= 1 }
                }
                return sum
            }
        }
    }

    @Sendable static func request(_ sequence: UInt32) -> TimePacket {
        .request(
            TimeRequest(
                sequence: sequence, t1: LocalInstant(nanoseconds: 123_456_789_012),
                stamps: .kernel))
    }

    @Sendable static func reply(_ sequence: UInt32) -> TimePacket {
        .reply(
            TimeReply(
                sequence: sequence, epoch: 99, t1: LocalInstant(nanoseconds: 123_456_789_012),
                t2: GroupInstant(nanoseconds: 5_000_000_000),
                t3: GroupInstant(nanoseconds: 5_000_012_000), stamps: .kernel,
                previous: TimeReply.Transmission(
                    sequence: sequence &- 1, t3: GroupInstant(nanoseconds: 4_000_013_000))))
    }

    private static func sessionState() throws -> SessionState {
        let queue = try (0..<10 as Range<UInt64>).map { i in
            try AssetDescriptor(
                hash: ContentHash(words: (i, i &* 77, ~i, 5)), byteCount: 30_000_000,
                sampleRate: 44_100, frameCount: 44_100 * 240, title: "Movement \(i), Allegro",
                fileExtension: "flac")
        }
        return SessionState(
            term: 3, sequence: 141, queue: queue, index: 4,
            change: RateChange(
                itemFrame: 1_234_567, instant: GroupInstant(nanoseconds: 9_876_543_210), rate: 1),
            phase: .playing)
    }
}
