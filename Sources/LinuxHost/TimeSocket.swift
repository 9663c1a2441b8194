import CTuttiLinux
import Glibc
import TuttiTiming
import TuttiTrust
import TuttiWire

/// A UDP socket whose packets carry kernel time stamps in both directions.
///
/// SO_TIMESTAMPING with software stamps: what arrives is stamped when the driver hands it to the
/// stack, what leaves when the driver takes it. Between user space and these points lie scheduling
/// delays of up to 80 ms on a busy machine; between the two kernel stamps of a wire, 1 µs of
/// jitter. Where a driver gives no stamps, the caller falls back to its own clock reads.
/// Confined to one thread.
@safe final class TimeSocket {
    struct Arrival<Packet> {
        /// `nil`: not what was expected.
        var packet: Packet?
        var from: SocketAddress
        /// Which of our addresses it was sent to, to be answered from; control message bytes.
        var local: LocalAddress
        var at: LocalInstant
        var isKernelStamp: Bool

        /// The same with what was found in the packet.
        func opened<Content>(_ packet: Content?) -> Arrival<Content> {
            Arrival<Content>(
                packet: packet, from: from, local: local, at: at, isKernelStamp: isKernelStamp)
        }
    }

    /// Of a time packet with its tag.
    static let sealedByteCount = TimePacket.byteCount + DatagramSealer.overhead

    let descriptor: Int32
    private(set) var packetsSent: UInt32 = 0
    /// Number after the last packet whose transmit stamp was read.
    private var nextStamp: UInt32 = 0
    /// The kernel may still say when the last packet left.
    var isStampAwaited: Bool { nextStamp != packetsSent }
    private var receiveConversion = StampConversion()
    private var transmitConversion = StampConversion()

    static let stampFlags: UInt32 = [
        SOF_TIMESTAMPING_RX_SOFTWARE, SOF_TIMESTAMPING_TX_SOFTWARE, SOF_TIMESTAMPING_SOFTWARE,
        SOF_TIMESTAMPING_OPT_ID, SOF_TIMESTAMPING_OPT_TSONLY,
    ].reduce(UInt32(0)) { $0 | UInt32($1) }
    /// DSCP Expedited Forwarding: voice queue of WMM access points.
    private static let expeditedForwarding: Int32 = 0xB8
    private static let priority: Int32 = 6

    /// A socket bound to `port` on all addresses (both families where the machine has them).
    convenience init(port: Int) throws(HostError) {
        let subject = "UDP port \(port)"
        var descriptor = try? Self.open(AF_INET6, subject)
        var family = AF_INET6
        if let open = descriptor {
            Self.set(open, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0)
            Self.set(open, Int32(IPPROTO_IPV6), 49 /* IPV6_RECVPKTINFO */, 1)
            Self.set(open, Int32(IPPROTO_IP), IP_PKTINFO, 1)
        } else {
            family = AF_INET
            descriptor = try Self.open(AF_INET, subject)
            Self.set(descriptor!, Int32(IPPROTO_IP), IP_PKTINFO, 1)
        }
        self.init(descriptor: descriptor!)
        let address = SocketAddress.any(family, port: port)
        let code = unsafe address.withPointer { unsafe bind(self.descriptor, $0, address.length) }
        if code != 0 { throw HostError("bind", subject: subject) }
    }

    /// A socket that talks to `peer` alone.
    convenience init(connectedTo peer: SocketAddress) throws(HostError) {
        let subject = peer.description
        self.init(descriptor: try Self.open(peer.family, subject))
        let code = unsafe peer.withPointer { unsafe connect(self.descriptor, $0, peer.length) }
        if code != 0 { throw HostError("connect", subject: subject) }
    }

    private init(descriptor: Int32) {
        self.descriptor = descriptor
        Self.mark(descriptor)
        setStamps(Self.stampFlags)
    }

    deinit { close(descriptor) }

    /// Marks what is sent as voice, unless the owner does not want that (``PacketMarks``). A hint to the
    /// network; where it is refused, packets are merely ordinary.
    static func mark(_ descriptor: Int32) {
        guard PacketMarks.areSet else { return }
        let (ip, ip6) = (Int32(IPPROTO_IP), Int32(IPPROTO_IPV6))
        set(descriptor, ip, IP_TOS, expeditedForwarding)
        set(descriptor, ip6, IPV6_TCLASS, expeditedForwarding)
        set(descriptor, SOL_SOCKET, SO_PRIORITY, priority)
    }

    static func open(_ family: Int32, _ subject: String) throws(HostError) -> Int32 {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, type, 0)
        if descriptor < 0 { throw HostError("socket", subject: subject) }
        return descriptor
    }

    @discardableResult
    static func set(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Int32)
        -> Bool
    {
        var value = value
        return unsafe setsockopt(
            socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    private func setStamps(_ flags: UInt32) {
        Self.set(descriptor, SOL_SOCKET, SO_TIMESTAMPING, Int32(bitPattern: flags))
    }

    /// The port the socket is bound to.
    var port: Int { address?.port ?? 0 }

    /// Our end of it.
    var address: SocketAddress? {
        var storage: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        return unsafe withUnsafeMutableBytes(of: &storage) { bytes in
            var length = socklen_t(bytes.count)
            let code = unsafe getsockname(
                descriptor, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
            guard code == 0 else { return nil }
            return unsafe SocketAddress(UnsafeRawBufferPointer(rebasing: bytes[..<Int(length)]))
        }
    }

    // MARK: - Sending

    /// Sends one packet; its number is ``packetsSent`` before the call.
    ///
    /// - Parameter destination: `nil` on a connected socket.
    /// - Throws: the kernel's refusal. Packet numbers start at 0 again then, because the kernel's
    ///   counter may or may not have counted the packet: forget what is pending.
    func send(
        _ packet: TimePacket, to destination: SocketAddress? = nil,
        from local: LocalAddress = LocalAddress()
    ) throws(HostError) {
        let sent = Self.transmit(packet, through: descriptor, to: destination, from: local)
        try note(sent == TimePacket.byteCount, destination)
    }

    /// The same for a packet that has been sealed.
    func send(
        sealed bytes: [UInt8], to destination: SocketAddress? = nil,
        from local: LocalAddress = LocalAddress()
    ) throws(HostError) {
        var bytes = bytes
        let sent = unsafe bytes.withUnsafeMutableBytes {
            unsafe local.send($0, through: descriptor, to: destination)
        }
        try note(sent == bytes.count, destination)
    }

    private func note(_ isSent: Bool, _ destination: SocketAddress?) throws(HostError) {
        guard isSent else {
            let error = HostError("sendmsg", subject: destination?.description ?? "leader")
            setStamps(0)
            setStamps(Self.stampFlags)
            (packetsSent, nextStamp) = (0, 0)
            throw error
        }
        packetsSent &+= 1
    }

    /// Sends one packet through any socket.
    ///
    /// - Returns: bytes that were sent, as `sendmsg(2)` says it.
    static func transmit(
        _ packet: TimePacket, through descriptor: Int32, to destination: SocketAddress?,
        from local: LocalAddress = LocalAddress()
    ) -> Int {
        var storage: InlineArray<12, UInt64> = .init(repeating: 0)
        var span = storage.mutableSpan
        var bytes = unsafe span.mutableBytes
        packet.encode(into: &bytes)
        return unsafe withUnsafeMutableBytes(of: &storage) { payload in
            unsafe local.send(payload, through: descriptor, to: destination)
        }
    }

    // MARK: - Receiving

    /// The next packet that has arrived; `nil` when there is none.
    ///
    /// - Throws: a pending error of the socket, such as a refusal by the other host.
    func receive() throws(HostError) -> Arrival<TimePacket>? {
        try receive(count: TimePacket.byteCount) { TimePacket($0) }
    }

    /// The same with a packet as it came: its tag is looked at when its stamp is known.
    func receiveSealed() throws(HostError) -> Arrival<[UInt8]>? {
        try receive(count: Self.sealedByteCount) { bytes in
            unsafe bytes.withUnsafeBytes { unsafe Array($0) }
        }
    }

    private func receive<Packet>(
        count: Int, decode: (RawSpan) -> Packet?
    ) throws(HostError) -> Arrival<Packet>? {
        let received = try receiveMessage(flags: 0, count: count, decode: decode)
        guard let message = received else { return nil }
        let now = HostClock.now()
        var at = now
        var isKernelStamp = false
        if let stamp = message.control.stamp, let local = receiveConversion.local(realTime: stamp),
            local <= now + .microseconds(2)
        {
            at = min(local, now)
            isKernelStamp = true
        }
        guard let from = message.from else { return nil }
        return Arrival(
            packet: message.content, from: from, local: message.control.local, at: at,
            isKernelStamp: isKernelStamp)
    }

    /// The next transmit stamp of the kernel: number of the packet and when it left.
    func receiveTransmitStamp() -> (packet: UInt32, at: LocalInstant)? {
        // Stamps that cannot be converted are skipped; the queue is finite.
        while let message = try? receiveMessage(
            flags: Int32(MSG_ERRQUEUE), count: 0, decode: { _ in () })
        {
            guard let packet = message.control.transmitted, let stamp = message.control.stamp else {
                continue
            }
            if Int32(bitPattern: packet &- nextStamp) >= 0 { nextStamp = packet &+ 1 }
            guard let local = transmitConversion.local(realTime: stamp) else { continue }
            return (packet, local)
        }
        return nil
    }

    private func receiveMessage<Packet>(
        flags: Int32, count: Int, decode: (RawSpan) -> Packet?
    ) throws(HostError) -> ReceivedMessage<Packet>? {
        let message = ReceivedMessage.receive(
            from: descriptor, flags: flags, count: count, decode: decode)
        if let message { return message }
        switch errno {
        case EAGAIN, EINTR: return nil
        default: throw HostError("recvmsg", subject: "time socket")
        }
    }
}
