public import ClockSync
import Timing

/// Time requests and replies as 64 bytes of UDP payload, and back.
///
/// Fixed layout, big-endian; both directions have the same length, so that a forged sender address
/// amplifies nothing but the herald, another 64 bytes:
///
///     0  magic "TuTi"      16  sequence        40  t3
///     4  version 1         20  prev. sequence  48  prev. t3 (0 without flag)
///     5  type 1, 2, 3      24  t1              56  tag, zero while links are not authenticated
///     6  stamp class       32  t2
///     7  flags              8  epoch
///
/// A request carries sequence, t1, the class, flag 2 for a herald, and at 20 the pause until the
/// next in µs; a reply has flag 1 when there is a previous one. A herald is a type and nothing
/// else. Not protobuf: the packet is written between two clock reads on a real-time thread.
public enum TimePacket: Equatable, Sendable {
    case request(TimeRequest)
    case reply(TimeReply)
    /// Goes ahead of another packet to wake the path; says nothing.
    case herald

    public static let byteCount = 64
    static let magic: UInt32 = 0x5475_5469
    static let version: UInt8 = 1
    private static let hasPrevious: UInt8 = 1
    private static let hasHerald: UInt8 = 2

    /// The packet in `bytes`; `nil` for anything that is not one: another length, magic, version,
    /// type, class or flag.
    public init?(_ bytes: RawSpan) {
        guard bytes.byteCount == Self.byteCount,
            bytes.bigEndian(at: 0, as: UInt32.self) == Self.magic,
            bytes.bigEndian(at: 4, as: UInt8.self) == Self.version,
            let stamps = StampClass(rawValue: bytes.bigEndian(at: 6, as: UInt8.self))
        else { return nil }
        let flags = bytes.bigEndian(at: 7, as: UInt8.self)
        let sequence = bytes.bigEndian(at: 16, as: UInt32.self)
        let t1 = LocalInstant(nanoseconds: bytes.bigEndian(at: 24, as: Int64.self))
        switch (bytes.bigEndian(at: 5, as: UInt8.self), flags) {
        case (1, 0), (1, Self.hasHerald):
            let pause = Int64(bytes.bigEndian(at: 20, as: UInt32.self))
            self = .request(
                TimeRequest(
                    sequence: sequence, t1: t1, stamps: stamps, pause: .microseconds(pause),
                    hasHerald: flags != 0))
        case (3, 0) where sequence == 0 && t1.nanoseconds == 0: self = .herald
        case (2, 0), (2, Self.hasPrevious):
            let previous = TimeReply.Transmission(
                sequence: bytes.bigEndian(at: 20, as: UInt32.self),
                t3: GroupInstant(nanoseconds: bytes.bigEndian(at: 48, as: Int64.self)))
            self = .reply(
                TimeReply(
                    sequence: sequence, epoch: bytes.bigEndian(at: 8, as: UInt64.self), t1: t1,
                    t2: GroupInstant(nanoseconds: bytes.bigEndian(at: 32, as: Int64.self)),
                    t3: GroupInstant(nanoseconds: bytes.bigEndian(at: 40, as: Int64.self)),
                    stamps: stamps, previous: flags == 0 ? nil : previous))
        default: return nil
        }
    }

    /// Writes ``byteCount`` bytes to the start of `bytes`, which must have room for them.
    public func encode(into bytes: inout MutableRawSpan) {
        for offset in stride(from: 0, to: Self.byteCount, by: 8) {
            bytes.store(UInt64(0), at: offset)
        }
        bytes.store(Self.magic, at: 0)
        bytes.store(Self.version, at: 4)
        switch self {
        case .request(let request):
            bytes.store(UInt8(1), at: 5)
            bytes.store(request.stamps.rawValue, at: 6)
            bytes.store(request.sequence, at: 16)
            bytes.store(UInt32(clamping: request.pause.count / 1_000), at: 20)
            bytes.store(request.t1.nanoseconds, at: 24)
            if request.hasHerald { bytes.store(Self.hasHerald, at: 7) }
        case .herald: bytes.store(UInt8(3), at: 5)
        case .reply(let reply):
            bytes.store(UInt8(2), at: 5)
            bytes.store(reply.stamps.rawValue, at: 6)
            bytes.store(reply.epoch, at: 8)
            bytes.store(reply.sequence, at: 16)
            bytes.store(reply.t1.nanoseconds, at: 24)
            bytes.store(reply.t2.nanoseconds, at: 32)
            bytes.store(reply.t3.nanoseconds, at: 40)
            if let previous = reply.previous {
                bytes.store(Self.hasPrevious, at: 7)
                bytes.store(previous.sequence, at: 20)
                bytes.store(previous.t3.nanoseconds, at: 48)
            }
        }
    }

    /// The packet as an array; for tests and tools.
    public var encoded: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        var span = bytes.mutableSpan
        var raw = span.mutableBytes
        encode(into: &raw)
        return bytes
    }
}

extension RawSpan {
    fileprivate func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int, as: T.Type
    ) -> T {
        precondition(offset + MemoryLayout<T>.size <= byteCount)
        return T(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: T.self))
    }
}

extension MutableRawSpan {
    fileprivate mutating func store<T: FixedWidthInteger & BitwiseCopyable>(
        _ value: T, at offset: Int
    ) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: T.self)
    }
}
