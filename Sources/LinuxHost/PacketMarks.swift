import Synchronization

/// By what switches and access points let packets of the clock, and of control, go before others
/// (DSCP, RFC 2474).
///
/// Datagrams of the clock are few and want no queue at all: Expedited Forwarding (RFC 3246), the voice
/// queue of an access point. What is said about starts and stops, on connections, is Assured
/// Forwarding 41 (RFC 2597, RFC 4594), its video queue; media go unmarked, behind both.
package enum PacketMarks {
    /// DSCP 34 in the byte of IPv4's type of service and IPv6's traffic class.
    package static let assuredForwarding41: Int32 = 0x88

    private static let isOff = Atomic(false)

    /// Whether packets are marked: a network may treat marks badly. For all sockets of this process that
    /// are opened from then on.
    package static var areSet: Bool {
        get { !isOff.load(ordering: .relaxed) }
        set { isOff.store(!newValue, ordering: .relaxed) }
    }
}
