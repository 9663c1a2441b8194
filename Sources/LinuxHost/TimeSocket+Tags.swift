import Glibc
import TuttiTiming
import TuttiTrust
import TuttiWire

// Time packets with their tags, each way at both ends; without tags they go as they are.

extension TimeSocket {
    /// A room's request.
    func send(_ packet: TimePacket, _ tags: SharedRoomTags?) throws(HostError) {
        guard let tags else { return try send(packet) }
        guard let sealed = tags({ $0.seal(request: packet.encoded) }) else {
            throw HostError("seal", code: EKEYEXPIRED, subject: "time request")
        }
        try send(sealed: sealed)
    }

    /// The leader's answer to a room.
    ///
    /// - Returns: false for a room that has asked by a key that is over; it asks again by another.
    func send(
        _ packet: TimePacket, to destination: SocketAddress, from local: LocalAddress,
        _ asker: LeaderTags.Asker?, _ tags: SharedLeaderTags?
    ) throws(HostError) -> Bool {
        guard let tags, let asker else {
            try send(packet, to: destination, from: local)
            return true
        }
        let sealed = tags { $0.seal(reply: packet.encoded, to: asker, at: HostClock.now()) }
        guard let sealed else { return false }
        try send(sealed: sealed, to: destination, from: local)
        return true
    }

    /// What the leader has answered, or something else that came.
    ///
    /// - Returns: `nil` when nothing is there; without a packet what is to be dropped.
    func receive(_ tags: SharedRoomTags?) throws(HostError) -> Arrival<TimePacket>? {
        guard let tags else { return try receive() }
        guard let sealed = try receiveSealed() else { return nil }
        let payload = tags { $0.open(reply: sealed.packet ?? [], at: HostClock.now()) }
        return sealed.opened(payload.flatMap { unsafe TimePacket($0.span.bytes) })
    }

    /// What a room asks, and who it is.
    ///
    /// - Parameter knock: called for a request without a tag; whether it was taken for a knock, else
    ///   it counts as one that is dropped.
    /// - Returns: as of a room.
    func receive(
        _ tags: SharedLeaderTags?, knock: (SocketAddress) -> Bool
    ) throws(HostError) -> (arrival: Arrival<TimePacket>, asker: LeaderTags.Asker?)? {
        guard let tags else { return try receive().map { ($0, nil) } }
        guard let sealed = try receiveSealed() else { return nil }
        if let bytes = sealed.packet, bytes.count == TimePacket.byteCount,
            case .request? = unsafe TimePacket(bytes.span.bytes), knock(sealed.from)
        {
            return (sealed.opened(TimePacket?.none), nil)
        }
        let opened = tags { $0.open(request: sealed.packet ?? [], at: HostClock.now()) }
        let packet = opened.flatMap { unsafe TimePacket($0.payload.span.bytes) }
        return (sealed.opened(packet), opened?.asker)
    }
}
