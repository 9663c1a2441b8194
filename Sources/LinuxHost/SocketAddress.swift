import Glibc

/// An IPv4 or IPv6 address and port, as the kernel wants it.
struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// Family, port, address, scope: `sockaddr_in` or `sockaddr_in6`, zero beyond ``length``.
    private(set) var words: InlineArray<4, UInt64> = .init(repeating: 0)
    private(set) var length: UInt32

    static let capacity = 32

    /// Copies what the C library or the kernel has written.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= MemoryLayout<sockaddr_in>.size, bytes.count <= Self.capacity else {
            return nil
        }
        length = UInt32(bytes.count)
        unsafe withUnsafeMutableBytes(of: &words) { unsafe $0.copyMemory(from: bytes) }
    }

    /// All local addresses of a family.
    static func any(_ family: Int32, port: Int) -> SocketAddress {
        if family == AF_INET6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = UInt16(port).bigEndian
            return unsafe withUnsafeBytes(of: &address) { unsafe SocketAddress($0)! }
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        return unsafe withUnsafeBytes(of: &address) { unsafe SocketAddress($0)! }
    }

    func withPointer<R>(_ body: (UnsafePointer<sockaddr>) -> R) -> R {
        var words = words
        return unsafe withUnsafeBytes(of: &words) {
            unsafe body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self))
        }
    }

    var family: Int32 { unsafe withPointer { unsafe Int32($0.pointee.sa_family) } }

    var port: Int {
        // At the same place in both families.
        let word = words[0]
        return Int(UInt16(truncatingIfNeeded: word >> 16).bigEndian)
    }

    func with(port: Int) -> SocketAddress {
        var other = self
        other.words[0] &= ~(0xFFFF << 16)
        other.words[0] |= UInt64(UInt16(clamping: port).bigEndian) << 16
        return other
    }

    /// The last address of an IPv4 network; `nil` for the other family.
    func broadcast(mask: SocketAddress) -> SocketAddress? {
        guard family == AF_INET, mask.family == AF_INET else { return nil }
        var other = self
        other.words[0] |= ~mask.words[0] & 0xFFFF_FFFF_0000_0000
        return other
    }

    /// Whether both are addresses of the same host, whatever their ports and scopes.
    func hasHost(of other: SocketAddress) -> Bool {
        guard family == other.family else { return false }
        return family == AF_INET6
            ? words[1] == other.words[1] && words[2] == other.words[2]
            : words[0] >> 32 == other.words[0] >> 32
    }

    var description: String {
        guard let host else { return "?" }
        return family == AF_INET6 ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Numeric, with the scope of a link-local address, as `getnameinfo` writes it.
    var host: String? {
        var host = [CChar](repeating: 0, count: 64)
        let code = unsafe withPointer {
            unsafe getnameinfo(
                $0, length, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST)
        }
        guard code == 0 else { return nil }
        return String(
            decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func == (a: Self, b: Self) -> Bool {
        a.words[0] == b.words[0] && a.words[1] == b.words[1] && a.words[2] == b.words[2]
            && a.words[3] == b.words[3]
    }

    func hash(into hasher: inout Hasher) {
        for index in 0..<4 { hasher.combine(words[index]) }
    }

    /// The addresses of a name or a numeric address; asks the resolver, which may take seconds.
    static func resolve(host: String, port: Int) throws(HostError) -> [SocketAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        unsafe hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV
        // AI_ADDRCONFIG refuses literal loopback addresses on a machine without that family.
        if host.contains(":") || host.allSatisfy({ $0.isNumber || $0 == "." }) {
            unsafe hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        }
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            throw HostError("getaddrinfo", code: code, subject: "\(host):\(port)")
        }
        defer { unsafe freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var entry = unsafe list
        while let info = unsafe entry?.pointee {
            if let address = unsafe SocketAddress(
                UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen)))
            {
                found.append(address)
            }
            unsafe entry = info.ai_next
        }
        return found
    }
}

/// The host of a `sockaddr_in` or `sockaddr_in6`: numeric, a link-local one with its scope.
package func numericHost(_ address: UnsafeRawBufferPointer) -> String? {
    unsafe SocketAddress(address)?.host
}
