import Glibc

/// The network interface that has one of our addresses.
struct LocalInterface {
    /// Of `if_nametoindex`.
    let number: Int32
    private let address: SocketAddress
    /// Of its network; `nil` where nobody can be reached by broadcast.
    private let mask: SocketAddress?

    /// - Returns: `nil` where no interface has the address.
    init?(of address: SocketAddress) {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { return nil }
        defer { unsafe freeifaddrs(list) }
        var entry = unsafe list
        while let interface = unsafe entry?.pointee {
            unsafe entry = interface.ifa_next
            guard unsafe Self.address(interface.ifa_addr)?.hasHost(of: address) ?? false else {
                continue
            }
            number = unsafe Int32(if_nametoindex(interface.ifa_name))
            let hasBroadcast = unsafe interface.ifa_flags & UInt32(IFF_BROADCAST) != 0
            self.address = address
            mask = unsafe hasBroadcast ? Self.address(interface.ifa_netmask) : nil
            return
        }
        return nil
    }

    /// The address that reaches everybody on the network, IPv4, with the port of `peer`; `nil` where
    /// `peer` is not on it.
    ///
    /// By its definition (RFC 919): not every interface is given one of its own.
    func broadcast(reaching peer: SocketAddress) -> SocketAddress? {
        guard let mask, let broadcast = address.broadcast(mask: mask),
            peer.broadcast(mask: mask)?.hasHost(of: broadcast) ?? false
        else { return nil }
        return broadcast.with(port: peer.port)
    }

    private static func address(_ pointer: UnsafeMutablePointer<sockaddr>?) -> SocketAddress? {
        guard let pointer = unsafe pointer else { return nil }
        let size: Int
        switch unsafe Int32(pointer.pointee.sa_family) {
        case AF_INET: size = MemoryLayout<sockaddr_in>.size
        case AF_INET6: size = MemoryLayout<sockaddr_in6>.size
        default: return nil
        }
        return unsafe SocketAddress(UnsafeRawBufferPointer(start: pointer, count: size))
    }
}
