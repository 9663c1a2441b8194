import Glibc
import TuttiTiming

/// Lets whoever knocks know our hardware address, where requests without a tag are not answered.
///
/// A room that looks for the leader's hardware address (see ``AddressNudge``) has no key yet: that comes by
/// a link, which the address is needed for. An empty datagram tells it nothing, and to send it the
/// kernel asks for the room's address, which tells ours. To anybody who asks for that in the usual way
/// the kernel says as much.
///
/// Confined to one thread.
@safe final class KnockAnswer {
    /// Rooms that come at once; each knocks nine times at most.
    static let burst = 32
    static let perSecond = 20

    private let descriptor: Int32
    private var bucket: TokenBucket

    /// `nil` where there is no socket for it.
    init?(at now: LocalInstant) {
        // The other one's addresses are those of a socket for both families.
        guard let descriptor = try? TimeSocket.open(AF_INET6, "knock") else { return nil }
        self.descriptor = descriptor
        bucket = TokenBucket(burst: Self.burst, perSecond: Self.perSecond, at: now)
    }

    deinit { close(descriptor) }

    /// - Returns: whether it was sent.
    func send(to room: SocketAddress, at now: LocalInstant) -> Bool {
        guard bucket.take(at: now) else { return false }
        let nothing = unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return unsafe TimeSocket.LocalAddress().send(nothing, through: descriptor, to: room) == 0
    }
}
