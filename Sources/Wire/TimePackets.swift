package import TuttiClockSync
import TuttiTiming

/// Time requests and replies as 96 bytes of UDP payload, and back.
///
/// Fixed layout, big-endian; both directions have the same length, so that neither takes longer and
/// a forged sender address amplifies nothing:
///
///         request                reply
///      0  magic "TuTi"           the same
///      4  version 3              the same
///      5  type 1                 type 2
///      6  stamp class            the same
///      7  flags                  the same
///      8  epoch of the beacons   epoch
///     16  sequence               sequence of the request
///     20  silence to the next    previous sequence
///         request in µs
///     24  t1                     t1 of the request
///     32  reading at t1          t2
///     40  skew, 1e-12            t3
///     44  expected error
///     48  newest beacon          previous t3
///     52  eight ages of beacons
///     56  …                      correction
///     60  …                      noise
///     64  …                      spread
///     68  …                      share /65535, 16 bits
///     70  …                      state, 8 bits; rooms, 8 bits
///     72  … to 84, then zero     zero
///     88  zero
///
/// Header and tag of a sealed packet are around these bytes; see the module Trust.
///
/// Flag 1 of a reply: there is a previous one; flag 2 of a request: the answer shall leave at once;
/// flag 4: there are the fields of reference broadcasts, which are zero without it. Spans
/// are nanoseconds of 32 bits. Not protobuf: the packet is written between two clock reads on a
/// real-time thread.
package enum TimePacket: Equatable, Sendable {
    case request(TimeRequest)
    case reply(TimeReply)

    package static let byteCount = 96
    static let magic: UInt32 = 0x5475_5469
    static let version: UInt8 = 3
    private static let hasPrevious: UInt8 = 1
    private static let isPrompt: UInt8 = 2
    private static let hasReference: UInt8 = 4

    /// The packet in `bytes`; `nil` for anything that is not one: another length, magic, version,
    /// type, class or flag.
    package init?(_ bytes: RawSpan) {
        guard bytes.byteCount == Self.byteCount,
            bytes.bigEndian(at: 0, as: UInt32.self) == Self.magic,
            bytes.bigEndian(at: 4, as: UInt8.self) == Self.version,
            let stamps = StampClass(rawValue: bytes.bigEndian(at: 6, as: UInt8.self))
        else { return nil }
        let flags = bytes.bigEndian(at: 7, as: UInt8.self)
        let sequence = bytes.bigEndian(at: 16, as: UInt32.self)
        let t1 = LocalInstant(nanoseconds: bytes.bigEndian(at: 24, as: Int64.self))
        let hasReference = flags & Self.hasReference != 0
        switch (bytes.bigEndian(at: 5, as: UInt8.self), flags & ~Self.hasReference) {
        case (1, let flags) where flags == 0 || flags == Self.isPrompt:
            let pause = Int64(bytes.bigEndian(at: 20, as: UInt32.self))
            self = .request(
                TimeRequest(
                    sequence: sequence, t1: t1, stamps: stamps, pause: .microseconds(pause),
                    isPrompt: flags != 0,
                    reference: hasReference ? ReferenceReport(bytes) : nil))
        case (2, let flags) where flags == 0 || flags == Self.hasPrevious:
            let previous = TimeReply.Transmission(
                sequence: bytes.bigEndian(at: 20, as: UInt32.self),
                t3: GroupInstant(nanoseconds: bytes.bigEndian(at: 48, as: Int64.self)))
            let verdict = hasReference ? ReferenceVerdict(bytes) : nil
            guard !hasReference || verdict != nil else { return nil }
            self = .reply(
                TimeReply(
                    sequence: sequence, epoch: bytes.bigEndian(at: 8, as: UInt64.self), t1: t1,
                    t2: GroupInstant(nanoseconds: bytes.bigEndian(at: 32, as: Int64.self)),
                    t3: GroupInstant(nanoseconds: bytes.bigEndian(at: 40, as: Int64.self)),
                    stamps: stamps, previous: flags == 0 ? nil : previous, reference: verdict))
        default: return nil
        }
    }

    /// Writes ``byteCount`` bytes to the start of `bytes`, which must have room for them.
    package func encode(into bytes: inout MutableRawSpan) {
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
            let flags =
                (request.isPrompt ? Self.isPrompt : 0)
                | (request.reference != nil ? Self.hasReference : 0)
            bytes.store(flags, at: 7)
            request.reference?.encode(into: &bytes)
        case .reply(let reply):
            bytes.store(UInt8(2), at: 5)
            bytes.store(reply.stamps.rawValue, at: 6)
            bytes.store(reply.epoch, at: 8)
            bytes.store(reply.sequence, at: 16)
            bytes.store(reply.t1.nanoseconds, at: 24)
            bytes.store(reply.t2.nanoseconds, at: 32)
            bytes.store(reply.t3.nanoseconds, at: 40)
            let flags =
                (reply.previous != nil ? Self.hasPrevious : 0)
                | (reply.reference != nil ? Self.hasReference : 0)
            bytes.store(flags, at: 7)
            reply.reference?.encode(into: &bytes)
            if let previous = reply.previous {
                bytes.store(previous.sequence, at: 20)
                bytes.store(previous.t3.nanoseconds, at: 48)
            }
        }
    }

    /// The packet as an array; for tests and tools.
    package var encoded: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        var span = bytes.mutableSpan
        var raw = span.mutableBytes
        encode(into: &raw)
        return bytes
    }
}
