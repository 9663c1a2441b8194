import Glibc
import TuttiClockSync
import TuttiTiming
import TuttiWire

/// Makes a leader ask for our hardware address when we get no answer to our question for its own.
///
/// Before the first packet to a host of the same network leaves, its hardware address is asked for,
/// by a broadcast. Radio loses these like any other, and Linux asks again after a second only
/// (`retrans_time_ms`), during which nothing leaves and a room that joins is a second late. A request
/// for the time that is itself a broadcast needs no address. The leader answers it, asks for our address
/// to do so, and by that question tells us its own: at the first contact, that is. A leader that
/// remembers our address from before does not ask. IPv4 only.
///
/// Confined to one thread.
@safe final class AddressNudge {
    /// A leader that is there has answered by then.
    static let patience = Nanoseconds.milliseconds(100)
    /// Later the kernel has asked again.
    private static let attempts = 9

    private let descriptor: Int32
    private let everybody: SocketAddress
    private var left = AddressNudge.attempts
    /// When to knock again; `nil`: no more.
    private(set) var next: LocalInstant?

    /// - Parameters:
    ///   - socket: asks the leader; nothing has come back yet.
    ///   - now: local time.
    /// - Returns: `nil` where nobody can be reached that way.
    init?(beside socket: TimeSocket, leader: SocketAddress, at now: LocalInstant) {
        guard let local = socket.address,
            let everybody = LocalInterface(of: local)?.broadcast(reaching: leader),
            let descriptor = try? TimeSocket.open(AF_INET, "knock")
        else { return nil }
        self.descriptor = descriptor
        self.everybody = everybody
        next = now + Self.patience
        TimeSocket.mark(descriptor)
        TimeSocket.set(descriptor, SOL_SOCKET, SO_BROADCAST, 1)
    }

    deinit { close(descriptor) }

    /// Knocks when it is time. What is answered is of no interest.
    func advance(to now: LocalInstant) {
        guard let due = next, now >= due else { return }
        left -= 1
        next = left > 0 ? now + Self.patience : nil
        // Later ones look like other requests, or they would be copies; the pause says that nobody
        // need be awake for them.
        let packet = TimePacket.request(
            TimeRequest(
                sequence: UInt32(left), t1: now, stamps: .program, pause: .milliseconds(4)))
        _ = TimeSocket.transmit(packet, through: descriptor, to: everybody)
    }
}
