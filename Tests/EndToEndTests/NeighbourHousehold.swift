@testable import TuttiTrust

/// Somebody of another household, who sends what is said there to this one, as if its own members
/// said it.
///
/// On the network the first two hosts are the one household, the next two the other. Each datagram
/// that goes between these is made one between the first two: with their hardware and IP addresses,
/// and on the ports of every way that datagrams of their own have gone. It is sent as it is, and
/// once more with what can be read in those: the numbers of sender and receiver, and the term. What
/// is for a group is sent as it is.
struct NeighbourHousehold {
    private struct Host {
        /// Six bytes.
        var hardware: [UInt8]
        /// Four bytes.
        var address: [UInt8]
    }

    /// Of the first household, by number.
    private var hosts: [Int: Host] = [:]
    /// By two hosts, and by the ports of sender and receiver, four bytes: whose their tags are, six
    /// bytes; empty where there are none.
    private var ways: [[Int]: [[UInt8]: [UInt8]]] = [:]

    /// Datagrams of a household go two or three ways.
    private static let mostWays = 8

    /// Learns from a frame of the first household.
    ///
    /// - Parameter receiver: `nil`: a group.
    mutating func see(_ frame: [UInt8], from sender: Int, to receiver: Int?) {
        guard sender < 2, let start = Datagram.start(in: frame) else { return }
        hosts[sender] = Host(
            hardware: Array(frame[Datagram.hardwareSource]), address: Array(frame[Datagram.source]))
        guard let receiver, receiver < 2 else { return }
        let ports = Array(frame[start..<start + 4])
        var known = ways[[sender, receiver]] ?? [:]
        guard known.count < Self.mostWays || known[ports] != nil else { return }
        let isTagged =
            frame[start + 8] == DatagramHeader.version
            && frame.count >= start + 8 + DatagramSealer.overhead
        known[ports] = isTagged ? Array(frame[Self.parties(start)]) : []
        ways[[sender, receiver]] = known
    }

    /// Where a datagram with a tag has the numbers of sender and receiver, and the term
    /// (`DatagramHeader`).
    private static func parties(_ start: Int) -> Range<Int> { start + 10..<start + 16 }

    /// What a frame of the other household becomes, and between whom.
    func forgeries(
        of frame: [UInt8], from sender: Int, to receiver: Int
    ) -> (ends: [Int], frames: [[UInt8]])? {
        guard sender >= 2, receiver >= 2, let start = Datagram.start(in: frame),
            let from = hosts[sender - 2], let to = hosts[receiver - 2]
        else { return nil }
        let ends = [sender - 2, receiver - 2]
        var forged = frame
        forged.replaceSubrange(Datagram.hardwareSource, with: from.hardware)
        forged.replaceSubrange(Datagram.source, with: from.address)
        let isForOne = forged[0] & 1 == 0
        if isForOne {
            forged.replaceSubrange(Datagram.hardwareDestination, with: to.hardware)
            forged.replaceSubrange(Datagram.destination, with: to.address)
        }
        Datagram.renewChecksums(in: &forged, start)
        guard isForOne else { return (ends, [forged]) }
        let frames = (ways[ends] ?? [:]).flatMap { ports, parties -> [[UInt8]] in
            var asItIs = forged
            asItIs.replaceSubrange(start..<start + 4, with: ports)
            guard !parties.isEmpty, frame.count >= start + 8 + DatagramSealer.overhead else {
                return [asItIs]
            }
            var asOurs = asItIs
            asOurs.replaceSubrange(Self.parties(start), with: parties)
            return [asItIs, asOurs]
        }
        return (ends, frames)
    }
}

/// Where things are in an Ethernet frame with a datagram of IPv4 (RFC 791, RFC 768).
enum Datagram {
    static let hardwareDestination = 0..<6
    static let hardwareSource = 6..<12
    static let source = 26..<30
    static let destination = 30..<34
    private static let header = 14
    private static let headerChecksum = 24..<26
    /// Of multicast DNS.
    private static let discoveryPort: [UInt8] = [0x14, 0xE9]

    /// Where the ports of sender and receiver are, then length and checksum, then the payload;
    /// `nil` for other frames, for one without a payload, and for discovery, which is anybody's to
    /// say.
    static func start(in frame: [UInt8]) -> Int? {
        let start = header + Int(frame[header] & 0x0F) * 4
        guard frame[12..<14] == [0x08, 0x00], frame[23] == 17, frame.count > start + 8,
            Array(frame[start + 2..<start + 4]) != discoveryPort
        else { return nil }
        return start
    }

    /// Makes that of the header right, and takes away that of the datagram, which is taken as it is
    /// then.
    static func renewChecksums(in frame: inout [UInt8], _ start: Int) {
        frame.replaceSubrange(headerChecksum, with: [0, 0])
        var sum = stride(from: header, to: start, by: 2).reduce(UInt32(0)) {
            $0 + (UInt32(frame[$1]) << 8 | UInt32(frame[$1 + 1]))
        }
        while sum > 0xFFFF { sum = sum >> 16 + sum & 0xFFFF }
        let checksum = ~UInt16(sum)
        frame.replaceSubrange(
            headerChecksum, with: [UInt8(checksum >> 8), UInt8(checksum & 0xFF)])
        frame.replaceSubrange(start + 6..<start + 8, with: [0, 0])
    }
}
