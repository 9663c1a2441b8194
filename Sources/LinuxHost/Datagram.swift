import CTuttiLinux
import Glibc

/// A datagram as the kernel hands it over: what it says, who sent it, and what is known of its way.
struct ReceivedMessage<Content> {
    /// `nil`: not what was expected.
    var content: Content?
    var from: SocketAddress?
    var control = MessageControl()

    /// The next message of a socket.
    ///
    /// - Parameters:
    ///   - flags: of `recvmsg(2)`.
    ///   - count: of bytes expected, fewer than 136; a longer datagram is cut after one more, so
    ///     that it does not look like an expected one.
    ///   - decode: of the bytes there are.
    /// - Returns: `nil` when there is none; `errno` says why.
    static func receive(
        from descriptor: Int32, flags: Int32 = 0, count: Int, decode: (RawSpan) -> Content?
    ) -> ReceivedMessage? {
        var payload: InlineArray<17, UInt64> = .init(repeating: 0)
        var name: InlineArray<4, UInt64> = .init(repeating: 0)
        var result = ReceivedMessage()
        let received = unsafe withUnsafeMutableBytes(of: &payload) { payload in
            unsafe withUnsafeMutableBytes(of: &name) { name in
                unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { control in
                    var vector = unsafe iovec(
                        iov_base: payload.baseAddress, iov_len: min(count + 1, payload.count))
                    return unsafe withUnsafeMutablePointer(to: &vector) { vector in
                        var message = unsafe msghdr()
                        unsafe message.msg_name = name.baseAddress
                        unsafe message.msg_namelen = socklen_t(name.count)
                        unsafe message.msg_iov = vector
                        unsafe message.msg_iovlen = 1
                        unsafe message.msg_control = control.baseAddress
                        unsafe message.msg_controllen = control.count
                        let received = unsafe recvmsg(descriptor, &message, flags)
                        guard received >= 0 else { return received }
                        let used = unsafe min(message.msg_controllen, control.count)
                        result.control = unsafe MessageControl(
                            UnsafeRawBufferPointer(rebasing: control[..<used]))
                        let length = unsafe min(Int(message.msg_namelen), name.count)
                        result.from = unsafe SocketAddress(
                            UnsafeRawBufferPointer(rebasing: name[..<length]))
                        result.content = decode(
                            unsafe RawSpan(
                                _unsafeBytes: UnsafeRawBufferPointer(rebasing: payload[..<received])
                            ))
                        return received
                    }
                }
            }
        }
        return received >= 0 ? result : nil
    }
}

/// What control messages say of a datagram.
struct MessageControl {
    /// Of the kernel, in real time, nanoseconds; when it arrived, or when `transmitted` left.
    var stamp: Int64?
    /// Number of the packet whose transmit stamp this is.
    var transmitted: UInt32?
    var local = TimeSocket.LocalAddress()

    init() {}

    /// Reads control messages without the CMSG macros, which Swift does not import.
    init(_ bytes: UnsafeRawBufferPointer) {
        var offset = 0
        let header = MemoryLayout<cmsghdr>.size
        while offset + header <= bytes.count {
            let message = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: cmsghdr.self)
            let length = Int(message.cmsg_len)
            guard length >= header, offset + length <= bytes.count else { break }
            let (data, size) = (offset + header, length - header)
            switch (message.cmsg_level, message.cmsg_type) {
            case (SOL_SOCKET, SO_TIMESTAMPING) where size >= MemoryLayout<timespec>.size:
                let time = unsafe bytes.loadUnaligned(fromByteOffset: data, as: timespec.self)
                stamp = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
            case (Int32(IPPROTO_IP), 11 /* IP_RECVERR */), (Int32(IPPROTO_IPV6), 25):
                guard size >= MemoryLayout<sock_extended_err>.size else { break }
                let error = unsafe bytes.loadUnaligned(
                    fromByteOffset: data, as: sock_extended_err.self)
                if error.ee_origin == 4 /* SO_EE_ORIGIN_TIMESTAMPING */ {
                    transmitted = error.ee_data
                }
            case (Int32(IPPROTO_IP), IP_PKTINFO) where size == 12,
                (Int32(IPPROTO_IPV6), 50 /* IPV6_PKTINFO */) where size == 20:
                local = unsafe TimeSocket.LocalAddress(message, bytes, data, size)
            default: break
            }
            offset += (length + 7) & ~7
        }
    }
}

extension TimeSocket {
    /// The address a packet came in on. A host with several must answer from the same one, or
    /// the asker's socket drops the reply.
    struct LocalAddress {
        /// Of its control message, as its type and its bytes; no bytes: the kernel's choice.
        private(set) var level: Int32 = 0
        private var type: Int32 = 0
        private var bytes: InlineArray<20, UInt8> = .init(repeating: 0)
        private(set) var count = 0
        /// Number of the interface that it came in on.
        fileprivate(set) var interface: Int32 = 0

        init() {}

        fileprivate init(
            _ header: cmsghdr, _ source: UnsafeRawBufferPointer, _ offset: Int, _ size: Int
        ) {
            level = header.cmsg_level
            type = header.cmsg_type
            count = size
            for index in 0..<size { unsafe bytes[index] = source[offset + index] }
            if level == Int32(IPPROTO_IP) {
                interface = unsafe source.loadUnaligned(fromByteOffset: offset, as: Int32.self)
                // Index 0 lets routing choose the interface; the address is what matters.
                for index in 0..<4 { bytes[index] = 0 }
            } else {
                interface = unsafe source.loadUnaligned(fromByteOffset: offset + 16, as: Int32.self)
            }
        }

        /// What is sent from here leaves by the interface, whatever routing says.
        mutating func bindToInterface() {
            guard level == Int32(IPPROTO_IP) else { return }
            let number = interface
            unsafe withUnsafeBytes(of: number) {
                for index in 0..<4 { unsafe bytes[index] = $0[index] }
            }
        }

        /// Sends `payload` from this address.
        ///
        /// - Parameter destination: `nil` on a connected socket.
        /// - Returns: of `sendmsg(2)`.
        func send(
            _ payload: UnsafeMutableRawBufferPointer, through descriptor: Int32,
            to destination: SocketAddress?
        ) -> Int {
            let header = MemoryLayout<cmsghdr>.size
            var vector = unsafe iovec(iov_base: payload.baseAddress, iov_len: payload.count)
            var control: InlineArray<5, UInt64> = .init(repeating: 0)
            return unsafe withUnsafeMutableBytes(of: &control) { control in
                unsafe withUnsafeMutablePointer(to: &vector) { vector in
                    var message = unsafe msghdr()
                    unsafe message.msg_iov = vector
                    unsafe message.msg_iovlen = 1
                    if count > 0 {
                        var which = cmsghdr()
                        which.cmsg_len = header + count
                        which.cmsg_level = level
                        which.cmsg_type = type
                        unsafe control.storeBytes(of: which, as: cmsghdr.self)
                        for index in 0..<count { unsafe control[header + index] = bytes[index] }
                        unsafe message.msg_control = control.baseAddress
                        unsafe message.msg_controllen = (header + count + 7) & ~7
                    }
                    guard let destination else { return unsafe sendmsg(descriptor, &message, 0) }
                    return unsafe destination.withPointer { name in
                        unsafe message.msg_name = UnsafeMutableRawPointer(mutating: name)
                        unsafe message.msg_namelen = destination.length
                        return unsafe sendmsg(descriptor, &message, 0)
                    }
                }
            }
        }
    }
}
