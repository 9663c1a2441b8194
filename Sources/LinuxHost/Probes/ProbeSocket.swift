import Glibc
import TuttiTiming

/// A datagram socket of the probes: IPv4, never blocks, closed at the end.
@safe final class ProbeSocket {
    let descriptor: Int32

    init() throws(HostError) {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_INET, type, 0)
        if descriptor < 0 { throw HostError("socket", subject: "UDP") }
    }

    deinit { close(descriptor) }

    /// - Returns: whether the kernel took it.
    @discardableResult
    func set(_ level: Int32, _ option: Int32, _ value: Int32) -> Bool {
        var value = value
        let size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe setsockopt(descriptor, level, option, &value, size) == 0
    }

    func value(_ level: Int32, _ option: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(descriptor, level, option, &value, &size) == 0 ? value : nil
    }

    /// Sends to groups through this interface, and hears `group` on it.
    func join(_ group: String, interface index: UInt32) throws(HostError) {
        var request = ip_mreqn()
        request.imr_ifindex = Int32(index)
        let size = socklen_t(MemoryLayout<ip_mreqn>.size)
        let ip = Int32(IPPROTO_IP)
        guard unsafe setsockopt(descriptor, ip, IP_MULTICAST_IF, &request, size) == 0 else {
            throw HostError("IP_MULTICAST_IF", subject: group)
        }
        request.imr_multiaddr.s_addr = unsafe inet_addr(group)
        guard unsafe setsockopt(descriptor, ip, IP_ADD_MEMBERSHIP, &request, size) == 0 else {
            throw HostError("IP_ADD_MEMBERSHIP", subject: group)
        }
        // Groups that other programs of this host joined elsewhere are none of ours.
        set(ip, IP_MULTICAST_ALL, 0)
    }

    func bind(_ address: String, port: Int) throws(HostError) {
        let place = Self.address(address, port)
        let code = unsafe place.withPointer { unsafe Glibc.bind(descriptor, $0, place.length) }
        if code != 0 { throw HostError("bind", subject: "\(address):\(port)") }
    }

    var port: Int {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = unsafe withUnsafeMutableBytes(of: &address) {
            unsafe getsockname(
                descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
        }
        return code == 0 ? Int(UInt16(bigEndian: address.sin_port)) : 0
    }

    func send(_ bytes: [UInt8], to address: String, port: Int) throws(HostError) {
        let place = Self.address(address, port)
        let count = unsafe place.withPointer { name in
            unsafe bytes.withUnsafeBytes {
                unsafe sendto(descriptor, $0.baseAddress, $0.count, 0, name, place.length)
            }
        }
        if count != bytes.count { throw HostError("sendto", subject: "\(address):\(port)") }
    }

    /// What has arrived, and from which address; `nil` when there is nothing.
    func receive() -> (bytes: [UInt8], from: String)? {
        var bytes = [UInt8](repeating: 0, count: 2_048)
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = unsafe withUnsafeMutableBytes(of: &address) { name in
            unsafe recvfrom(
                descriptor, &bytes, bytes.count, 0,
                name.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
        }
        guard count >= 0 else { return nil }
        return (Array(bytes.prefix(count)), Self.text(address.sin_addr))
    }

    /// Whether the kernel says when a packet left; of a socket with
    /// ``TimeSocket/stampFlags``.
    func departed() -> Bool {
        let flags = Int32(MSG_ERRQUEUE)
        let message = ReceivedMessage<Void>.receive(
            from: descriptor, flags: flags, count: 0, decode: { _ in () })
        return message?.control.stamp != nil
    }

    private static func address(_ text: String, _ port: Int) -> SocketAddress {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = unsafe inet_addr(text)
        return unsafe withUnsafeBytes(of: &address) { unsafe SocketAddress($0)! }
    }

    static func text(_ address: in_addr) -> String {
        let value = UInt32(bigEndian: address.s_addr)
        return [24, 16, 8, 0].map { "\(value >> $0 & 0xFF)" }.joined(separator: ".")
    }
}
