import CTuttiLinux
import Glibc
import TuttiClockSync
import TuttiTiming
import TuttiTrust
import TuttiWire

/// Where beacons go: a multicast group that stays on the link, and a port.
///
/// 224.0.0.254 and ff02::114 are set aside for experiments (RFC 4727), so they collide with no
/// protocol; whatever else is tried there has another port or another magic. Groups of 224.0.0.0/24
/// are flooded by every switch, without regard to who joined (RFC 4541, 2.1.2), and most access
/// points leave them alone even where they turn other groups into packets for each station.
enum BeaconGroup {
    static let port = 7431
    static let groupIPv4 = "224.0.0.254"

    static func address(_ family: Int32, interface: Int32) -> SocketAddress {
        if family == AF_INET6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = UInt16(port).bigEndian
            address.sin6_scope_id = UInt32(interface)
            unsafe withUnsafeMutableBytes(of: &address.sin6_addr) {
                unsafe $0.storeBytes(of: UInt16(0xFF02).bigEndian, as: UInt16.self)
                unsafe $0.storeBytes(
                    of: UInt16(0x0114).bigEndian, toByteOffset: 14, as: UInt16.self)
            }
            return unsafe withUnsafeBytes(of: &address) { unsafe SocketAddress($0)! }
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = unsafe inet_addr(groupIPv4)
        return unsafe withUnsafeBytes(of: &address) { unsafe SocketAddress($0)! }
    }
}

/// Sends beacons through any interface. Confined to one thread.
///
/// When exactly they leave is of no interest, so nothing is stamped here.
@safe final class BeaconSender {
    /// By family; opened when first needed.
    private var descriptors: [Int32: Int32] = [:]
    private(set) var sent = 0

    deinit { for descriptor in descriptors.values { close(descriptor) } }

    /// Sends `beacon` where a packet came in, from the address that it was sent to.
    ///
    /// Best effort: an interface that went away loses a beacon.
    ///
    /// - Parameter tags: `nil`: it carries none.
    func send(
        _ beacon: ReferenceBeacon, along local: TimeSocket.LocalAddress,
        _ tags: SharedLeaderTags? = nil
    ) {
        let family = local.level == Int32(IPPROTO_IP) ? AF_INET : AF_INET6
        guard local.count > 0, let descriptor = descriptor(family) else { return }
        var bytes = BeaconPacket.encoded(beacon)
        if let tags {
            guard let sealed = tags({ $0.seal(beacon: bytes, at: HostClock.now()) }) else { return }
            bytes = sealed
        }
        var local = local
        local.bindToInterface()
        let group = BeaconGroup.address(family, interface: local.interface)
        let count = unsafe bytes.withUnsafeMutableBytes {
            unsafe local.send($0, through: descriptor, to: group)
        }
        if count == bytes.count { sent += 1 }
    }

    /// Hop limits and loops are right by default: 1, and other programs of this host hear it too.
    private func descriptor(_ family: Int32) -> Int32? {
        if let open = descriptors[family] { return open }
        guard let open = try? TimeSocket.open(family, "beacons") else { return nil }
        TimeSocket.mark(open)
        descriptors[family] = open
        return open
    }
}

/// Hears the beacons of one leader, with the kernel's stamps. Confined to one thread.
///
/// Nobody need wait for it: the kernel stamps what arrives and keeps it, so it is read when the
/// thread is awake for something else.
@safe final class BeaconReceiver {
    private let descriptor: Int32
    private let leader: SocketAddress
    private var conversion = StampConversion()

    /// Listens where `socket` reaches its leader.
    ///
    /// - Throws: when there is no such interface or it takes no multicast, when another program has
    ///   the port for itself, and where the kernel does not stamp.
    init(beside socket: TimeSocket, leader: SocketAddress) throws(HostError) {
        guard let local = socket.address, let interface = LocalInterface(of: local)?.number else {
            throw HostError("getifaddrs", code: ENODEV, subject: leader.description)
        }
        descriptor = try TimeSocket.open(leader.family, leader.description)
        self.leader = leader
        try join(BeaconGroup.address(leader.family, interface: interface), interface)
    }

    deinit { close(descriptor) }

    private func join(_ group: SocketAddress, _ interface: Int32) throws(HostError) {
        let subject = group.description
        // Every room of this host listens at the same place.
        guard TimeSocket.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1) else {
            throw HostError("SO_REUSEADDR", subject: subject)
        }
        let flags = Int32(SOF_TIMESTAMPING_RX_SOFTWARE) | Int32(SOF_TIMESTAMPING_SOFTWARE)
        guard TimeSocket.set(descriptor, SOL_SOCKET, SO_TIMESTAMPING, flags) else {
            throw HostError("SO_TIMESTAMPING", subject: subject)
        }
        guard unsafe group.withPointer({ unsafe bind(descriptor, $0, group.length) }) == 0 else {
            throw HostError("bind", subject: subject)
        }
        let (ip, ip6) = (Int32(IPPROTO_IP), Int32(IPPROTO_IPV6))
        let code: Int32
        if group.family == AF_INET6 {
            var request = ipv6_mreq()
            unsafe group.withPointer {
                unsafe request.ipv6mr_multiaddr =
                    UnsafeRawPointer($0).loadUnaligned(as: sockaddr_in6.self).sin6_addr
            }
            request.ipv6mr_interface = UInt32(interface)
            TimeSocket.set(descriptor, ip6, 29 /* IPV6_MULTICAST_ALL */, 0)
            code = unsafe setsockopt(
                descriptor, ip6, IPV6_JOIN_GROUP, &request,
                socklen_t(MemoryLayout<ipv6_mreq>.size))
        } else {
            var request = ip_mreqn()
            unsafe group.withPointer {
                unsafe request.imr_multiaddr =
                    UnsafeRawPointer($0).loadUnaligned(as: sockaddr_in.self).sin_addr
            }
            request.imr_ifindex = interface
            // What other rooms of this host joined on other interfaces is none of ours.
            TimeSocket.set(descriptor, ip, IP_MULTICAST_ALL, 0)
            code = unsafe setsockopt(
                descriptor, ip, IP_ADD_MEMBERSHIP, &request,
                socklen_t(MemoryLayout<ip_mreqn>.size))
        }
        if code != 0 { throw HostError("IP_ADD_MEMBERSHIP", subject: subject) }
    }

    /// The next beacon of the leader that has arrived, and its kernel stamp; `nil` when there is
    /// none. What is not one, or has no stamp, is skipped.
    ///
    /// Other leaders send to the same group. They are no attack, so who sent it is looked at before the
    /// tag.
    ///
    /// - Parameter tags: `nil`: it carries none.
    func receive(_ tags: SharedRoomTags? = nil) -> (beacon: ReferenceBeacon, at: LocalInstant)? {
        let overhead = tags == nil ? 0 : DatagramSealer.overhead
        // A flood on the group must not keep the thread.
        for _ in 0..<64 {
            let message = ReceivedMessage.receive(
                from: descriptor, count: BeaconPacket.byteCount + overhead
            ) { bytes in unsafe bytes.withUnsafeBytes { unsafe Array($0) } }
            guard let message else { return nil }
            guard let bytes = message.content, let stamp = message.control.stamp,
                message.from?.hasHost(of: leader) ?? false,
                let beacon = Self.beacon(in: bytes, tags),
                let at = conversion.local(realTime: stamp)
            else { continue }
            return (beacon, at)
        }
        return nil
    }

    private static func beacon(in bytes: [UInt8], _ tags: SharedRoomTags?) -> ReferenceBeacon? {
        guard let tags else { return unsafe BeaconPacket.decode(bytes.span.bytes) }
        return tags { $0.open(beacon: bytes, at: HostClock.now()) }
            .flatMap { unsafe BeaconPacket.decode($0.span.bytes) }
    }
}
