/// A node's number within a term, of the leader's choosing; no number is given out twice in a term,
/// so that a node that begins to count anew is another sender.
package struct SenderNumber: Hashable, Sendable {
    package let value: UInt16

    package static let leader = SenderNumber(0)
    /// As a receiver: all rooms.
    package static let everybody = SenderNumber(.max)

    package init(_ value: UInt16) { self.value = value }
}

/// What stands before the payload of every datagram, 16 bytes, big-endian:
///
///      0  version, 0xD1
///      1  purpose 1…4; + 0x80: to the leader
///      2  sender, 16 bits
///      4  receiver, 16 bits; 0xFFFF: all rooms
///      6  term, its low 16 bits
///      8  sequence, 64 bits, from 1
///
/// Then the payload, and at the end the tag of both, 16 bytes.
struct DatagramHeader: Equatable, Sendable {
    static let byteCount = 16
    static let version: UInt8 = 0xD1

    var channel: UInt8
    var sender: SenderNumber
    var receiver: SenderNumber
    var term: UInt16
    var sequence: UInt64

    var bytes: [UInt8] {
        var bytes = [Self.version, channel]
        bytes.append(number: sender.value)
        bytes.append(number: receiver.value)
        bytes.append(number: term)
        bytes.append(number: sequence)
        return bytes
    }

    /// - Parameter bytes: 16 at least.
    init?(_ bytes: ArraySlice<UInt8>) {
        func number(_ offset: Int, _ count: Int) -> UInt64 {
            let start = bytes.startIndex + offset
            return bytes[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
        }
        guard bytes.count >= Self.byteCount, number(0, 1) == UInt64(Self.version) else {
            return nil
        }
        channel = UInt8(number(1, 1))
        sender = SenderNumber(UInt16(number(2, 2)))
        receiver = SenderNumber(UInt16(number(4, 2)))
        term = UInt16(number(6, 2))
        sequence = number(8, 8)
    }

    init(
        channel: UInt8, sender: SenderNumber, receiver: SenderNumber, term: UInt16,
        sequence: UInt64
    ) {
        self.channel = channel
        self.sender = sender
        self.receiver = receiver
        self.term = term
        self.sequence = sequence
    }
}

/// Puts header and tag around what a node sends on one channel during one term.
///
/// Every datagram becomes 32 bytes longer, requests and replies alike: nobody who forges a sender's
/// address gets more out than was put in.
package struct DatagramSealer: Sendable {
    package static let overhead = DatagramHeader.byteCount + TagKey.tagByteCount

    private let channel: DatagramChannel
    private let sender: SenderNumber
    private let term: UInt16
    private let key: TagKey
    /// Used last; what a receiver that begins now is told.
    package private(set) var sequence: UInt64

    package init(_ key: GroupKey, _ channel: DatagramChannel, as sender: SenderNumber) {
        self.init(key, channel, as: sender, after: 0)
    }

    init(
        _ key: GroupKey, _ channel: DatagramChannel, as sender: SenderNumber,
        after sequence: UInt64
    ) {
        self.channel = channel
        self.sender = sender
        self.sequence = sequence
        term = UInt16(truncatingIfNeeded: key.term)
        self.key = key.tagKey(for: channel)
    }

    /// - Returns: `nil` once all 2⁶⁴ numbers of the term are used, in half a million years.
    package mutating func seal(_ payload: [UInt8], to receiver: SenderNumber) -> [UInt8]? {
        guard sequence < .max else { return nil }
        sequence += 1
        let header = DatagramHeader(
            channel: channel.byte, sender: sender, receiver: receiver, term: term,
            sequence: sequence)
        var bytes = header.bytes
        bytes.reserveCapacity(payload.count + Self.overhead)
        bytes += payload
        bytes += key.tag(over: bytes[...])
        return bytes
    }
}
