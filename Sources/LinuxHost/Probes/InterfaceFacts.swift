import Glibc

/// A network interface: what it is and what its driver says it can do.
public struct InterfaceFacts: Equatable, Sendable {
    /// Whether the radio sleeps between beacons, which delays what arrives.
    public enum PowerSave: Equatable, Sendable {
        case on, off
        /// The driver does not answer the old question, and we do not ask the new one (nl80211).
        case unknown
    }

    /// What a driver stamps, of `SO_TIMESTAMPING`.
    public struct Stamping: Equatable, Sendable {
        /// Packets that leave are stamped when the driver hands them on.
        public var softwareTransmit: Bool
        /// Packets that arrive are stamped when the kernel gets them.
        public var softwareReceive: Bool
        /// The interface stamps both by a clock of its own.
        public var hardware: Bool

        /// What the driver's answer says, bit by bit.
        public init(softwareTransmit: Bool, softwareReceive: Bool, hardware: Bool) {
            self.softwareTransmit = softwareTransmit
            self.softwareReceive = softwareReceive
            self.hardware = hardware
        }
    }

    /// The kernel's name: `eth0`.
    public var name: String
    /// The kernel's number; 0 where it has none any more.
    public var index: UInt32 = 0
    /// It is up and has a carrier.
    public var isUp = false
    /// It leads to this machine only.
    public var isLoopback = false
    /// It says that it takes multicast.
    public var hasMulticast = false
    /// IPv4, numeric.
    public var addresses: [String] = []
    /// It has an address of IPv6.
    public var hasIPv6 = false
    /// `nil`: the driver does not tell.
    public var stamping: Stamping?
    /// `nil`: not a wireless interface.
    public var powerSave: PowerSave?

    /// An interface of which nothing else is known.
    public init(name: String) { self.name = name }

    /// All interfaces that are up, the loopback included, in the kernel's order.
    public static func all() throws(HostError) -> [InterfaceFacts] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else {
            throw HostError("getifaddrs", subject: "network interfaces")
        }
        defer { unsafe freeifaddrs(list) }
        let socket = try ProbeSocket()
        var found: [InterfaceFacts] = []
        var next = unsafe list
        while let entry = unsafe next {
            unsafe next = entry.pointee.ifa_next
            let name = unsafe String(cString: entry.pointee.ifa_name)
            let flags = unsafe Int32(bitPattern: entry.pointee.ifa_flags)
            guard flags & Int32(IFF_UP) != 0 else { continue }
            if !found.contains(where: { $0.name == name }) {
                var facts = InterfaceFacts(name: name)
                unsafe facts.index = if_nametoindex(name)
                facts.isUp = flags & Int32(IFF_RUNNING) != 0
                facts.isLoopback = flags & Int32(IFF_LOOPBACK) != 0
                facts.hasMulticast = flags & Int32(IFF_MULTICAST) != 0
                facts.stamping = stamping(name, socket)
                facts.powerSave = powerSave(name, socket)
                found.append(facts)
            }
            guard let place = found.firstIndex(where: { $0.name == name }),
                let address = unsafe entry.pointee.ifa_addr
            else { continue }
            switch Int32(unsafe address.pointee.sa_family) {
            case AF_INET:
                let v4 = unsafe UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
                found[place].addresses.append(ProbeSocket.text(v4.sin_addr))
            case AF_INET6: found[place].hasIPv6 = true
            default: break
            }
        }
        return found
    }

    // MARK: - Requests of the kernel's interface layer

    private static let ethtool = UInt(0x8946)  // SIOCETHTOOL, linux/sockios.h
    private static let getStamping = UInt32(0x41)  // ETHTOOL_GET_TS_INFO, linux/ethtool.h
    private static let getPower = UInt(0x8B2D)  // SIOCGIWPOWER, linux/wireless.h

    /// `struct ifreq` and `struct iwreq`: a name of 16 bytes, then a union that begins with what
    /// either request wants. 40 bytes on 64-bit machines; more is harmless.
    private struct Request {
        var name: InlineArray<16, UInt8> = .init(repeating: 0)
        var union: InlineArray<4, UInt64> = .init(repeating: 0)

        init(_ text: String) {
            for (place, byte) in text.utf8.prefix(15).enumerated() { name[place] = byte }
        }
    }

    private static func stamping(_ name: String, _ socket: ProbeSocket) -> Stamping? {
        // struct ethtool_ts_info: command, SO_TIMESTAMPING flags, nine words that we do not read.
        var info: InlineArray<11, UInt32> = .init(repeating: 0)
        info[0] = getStamping
        var request = Request(name)
        let code = unsafe withUnsafeMutablePointer(to: &info) { info in
            request.union[0] = UInt64(UInt(bitPattern: info))
            return unsafe ioctl(socket.descriptor, ethtool, &request)
        }
        guard code == 0 else { return nil }
        func has(_ bit: UInt32) -> Bool { info[1] >> bit & 1 == 1 }
        return Stamping(
            softwareTransmit: has(1), softwareReceive: has(3), hardware: has(0) && has(2))
    }

    private static func powerSave(_ name: String, _ socket: ProbeSocket) -> PowerSave? {
        let device = "/sys/class/net/\(name)"
        let isWireless =
            !KernelFile.names(in: device, beginning: "wireless").isEmpty
            || !KernelFile.names(in: device, beginning: "phy80211").isEmpty
        var request = Request(name)
        guard unsafe ioctl(socket.descriptor, getPower, &request) == 0 else {
            return isWireless ? .unknown : nil
        }
        // struct iw_param: value (4 bytes), fixed (1), disabled (1), flags (2).
        let disabled = request.union[0] >> 40 & 0xFF
        return disabled != 0 ? .off : .on
    }
}
