package import TuttiClockSync
import TuttiTiming

// Reference broadcasts: the beacon itself, and the fields of time packets that are about it.

/// A beacon as 24 bytes of UDP payload: on the air they go at the slowest rate there is.
///
///     0  magic "TuTi"    4  version 3    5  type 4    6  zero
///     8  epoch          16  number      20  zero
package enum BeaconPacket {
    package static let byteCount = 24
    private static let type: UInt8 = 4

    /// The beacon in `bytes`; `nil` for anything that is not one.
    package static func decode(_ bytes: RawSpan) -> ReferenceBeacon? {
        guard bytes.byteCount == byteCount,
            bytes.bigEndian(at: 0, as: UInt32.self) == TimePacket.magic,
            bytes.bigEndian(at: 4, as: UInt8.self) == TimePacket.version,
            bytes.bigEndian(at: 5, as: UInt8.self) == type
        else { return nil }
        return ReferenceBeacon(
            epoch: bytes.bigEndian(at: 8, as: UInt64.self),
            number: bytes.bigEndian(at: 16, as: UInt32.self))
    }

    /// Writes ``byteCount`` bytes to the start of `bytes`, which must have room for them.
    package static func encode(_ beacon: ReferenceBeacon, into bytes: inout MutableRawSpan) {
        bytes.store(TimePacket.magic, at: 0)
        bytes.store(TimePacket.version, at: 4)
        bytes.store(type, at: 5)
        bytes.store(UInt16(0), at: 6)
        bytes.store(beacon.epoch, at: 8)
        bytes.store(beacon.number, at: 16)
        bytes.store(UInt32(0), at: 20)
    }

    /// The beacon as an array; for tests and tools.
    package static func encoded(_ beacon: ReferenceBeacon) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        var span = bytes.mutableSpan
        var raw = span.mutableBytes
        encode(beacon, into: &raw)
        return bytes
    }
}

extension ReferenceReport {
    init(_ bytes: RawSpan) {
        var ages = SIMD8<UInt32>.zero
        for place in 0..<Self.beaconLimit {
            ages[place] = bytes.bigEndian(at: 52 + 4 * place, as: UInt32.self)
        }
        self.init(
            epoch: bytes.bigEndian(at: 8, as: UInt64.self),
            reading: GroupInstant(nanoseconds: bytes.bigEndian(at: 32, as: Int64.self)),
            skewTrillionths: bytes.bigEndian(at: 40, as: Int32.self),
            expectedError: Nanoseconds(Int64(bytes.bigEndian(at: 44, as: UInt32.self))),
            newest: bytes.bigEndian(at: 48, as: UInt32.self), ages: ages)
    }

    func encode(into bytes: inout MutableRawSpan) {
        bytes.store(epoch, at: 8)
        bytes.store(reading.nanoseconds, at: 32)
        bytes.store(skewTrillionths, at: 40)
        bytes.store(UInt32(clamping: expectedError.count), at: 44)
        bytes.store(newest, at: 48)
        for place in 0..<Self.beaconLimit { bytes.store(ages[place], at: 52 + 4 * place) }
    }
}

extension ReferenceVerdict {
    private static let whole = Double(UInt16.max)

    /// `nil` for a state that is none.
    init?(_ bytes: RawSpan) {
        guard let state = ReferenceState(rawValue: bytes.bigEndian(at: 70, as: UInt8.self)) else {
            return nil
        }
        self.init(
            state: state, rooms: Int(bytes.bigEndian(at: 71, as: UInt8.self)),
            correction: Nanoseconds(Int64(bytes.bigEndian(at: 56, as: Int32.self))),
            share: Double(bytes.bigEndian(at: 68, as: UInt16.self)) / Self.whole,
            noise: Nanoseconds(Int64(bytes.bigEndian(at: 60, as: UInt32.self))),
            spread: Nanoseconds(Int64(bytes.bigEndian(at: 64, as: UInt32.self))))
    }

    func encode(into bytes: inout MutableRawSpan) {
        bytes.store(Int32(clamping: correction.count), at: 56)
        bytes.store(UInt32(clamping: noise.count), at: 60)
        bytes.store(UInt32(clamping: spread.count), at: 64)
        let share = min(max(share, 0), 1) * Self.whole
        bytes.store(UInt16(share + 0.5), at: 68)
        bytes.store(state.rawValue, at: 70)
        bytes.store(UInt8(clamping: rooms), at: 71)
    }
}
