import Glibc
public import TuttiTiming

/// Whether the ports of a leader are free, and whether packets may be marked.
public struct PortFacts: Equatable, Sendable {
    /// TCP and UDP port, the same number.
    public var port: Int
    /// `nil`: free.
    public var tcp: HostError?
    /// `nil`: free.
    public var udp: HostError?
    /// Somebody who speaks our time protocol answers on this machine at that port.
    public var isLeader = false
    /// The kernel took Expedited Forwarding for a socket and says so when asked.
    public var takesExpeditedForwarding = false

    /// A port that nobody has tried yet.
    public init(port: Int) { self.port = port }

    /// Binds both, as a leader would, and lets them go again; a few ms.
    ///
    /// - Parameter isLeader: somebody has answered at the port already as a leader does.
    public static func probe(port: Int, isLeader: Bool = false) -> PortFacts {
        var facts = PortFacts(port: port)
        facts.isLeader = isLeader
        facts.udp = failure(Int32(SOCK_DGRAM.rawValue), port)
        facts.tcp = failure(Int32(SOCK_STREAM.rawValue), port)
        if let socket = try? ProbeSocket() {
            let ip = Int32(IPPROTO_IP)
            facts.takesExpeditedForwarding =
                socket.set(ip, IP_TOS, 0xB8) && socket.value(ip, IP_TOS) == 0xB8
        }
        if facts.udp?.kind == .portTaken, !isLeader {
            facts.isLeader =
                (try? ExchangeFacts.measure(host: "127.0.0.1", port: port, count: 4))
                .map { $0.answered > 0 } ?? false
        }
        return facts
    }

    private static func failure(_ type: Int32, _ port: Int) -> HostError? {
        let isStream = type == Int32(SOCK_STREAM.rawValue)
        let subject = "\(isStream ? "TCP" : "UDP") port \(port)"
        var family = AF_INET6
        var descriptor = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), 0)
        if descriptor < 0 {
            family = AF_INET
            descriptor = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), 0)
        }
        guard descriptor >= 0 else { return HostError("socket", subject: subject) }
        defer { close(descriptor) }
        var (on, off): (Int32, Int32) = (1, 0)
        let size = socklen_t(MemoryLayout<Int32>.size)
        // Otherwise the goodbye of an earlier listener would look like another program.
        if isStream { unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size) }
        if family == AF_INET6 {
            unsafe setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, size)
        }
        let address = SocketAddress.any(family, port: port)
        let code = unsafe address.withPointer { unsafe bind(descriptor, $0, address.length) }
        guard code == 0, !isStream || listen(descriptor, 1) == 0 else {
            return HostError("bind", subject: subject)
        }
        return nil
    }
}

/// What multicast does on one interface.
public struct MulticastFacts: Equatable, Sendable {
    /// The interface's name.
    public var interface: String
    /// A packet that we sent to a group of our own came back to us.
    public var comesBack = false
    /// The kernel said when that packet left. Some drivers claim to stamp and do not, some that do
    /// say nothing. What arrives is stamped by the kernel whatever the driver does.
    public var stampsDeparture = false
    /// Hosts that answered a question put to the mDNS group: our multicast reached them.
    public var reached: [String] = []
    /// Hosts whose own multicast reached us while we listened.
    public var heard: [String] = []
    /// A packet that we sent to the group of the reference broadcasts came back to us.
    public var beaconsComeBack = false
    /// Why their group cannot be joined, or their port not be shared.
    public var beaconFailure: HostError?
    /// Why nothing could be tried; `nil`: it could.
    public var failure: HostError?

    /// An interface that nobody has tried yet.
    public init(interface: String) { self.interface = interface }

    /// UDP port of the reference broadcasts.
    public static let beaconPort = BeaconGroup.port

    /// Of the range that stays within a site (RFC 2365).
    private static let ownGroup = "239.255.116.116"
    private static let dnsGroup = "224.0.0.251"
    private static let dnsPort = 5353
    /// mDNS responders wait up to 120 ms before they answer (RFC 6762 §6).
    public static let patience = Nanoseconds.milliseconds(1_200)

    /// Asks all interfaces at once; takes ``patience``.
    public static func probe(_ interfaces: [InterfaceFacts]) -> [MulticastFacts] {
        let own = Set(interfaces.flatMap(\.addresses))
        var rows = interfaces.map { interface in
            var row = Row(facts: MulticastFacts(interface: interface.name))
            do throws(HostError) {
                try row.start(interface)
            } catch {
                row.facts.failure = error
            }
            return row
        }
        let end = HostClock.now() + patience
        while HostClock.now() < end {
            for place in rows.indices { rows[place].listen(own) }
            HostClock.sleep(until: HostClock.now() + .milliseconds(5))
        }
        return rows.map(\.facts)
    }

    private struct Row {
        var facts: MulticastFacts
        var loop: ProbeSocket?
        var asking: ProbeSocket?
        var hearing: ProbeSocket?
        var beacons: ProbeSocket?
        let token = (0..<8).map { _ in UInt8.random(in: 0...255) }

        mutating func start(_ interface: InterfaceFacts) throws(HostError) {
            let loop = try ProbeSocket()
            loop.set(SOL_SOCKET, SO_TIMESTAMPING, Int32(bitPattern: TimeSocket.stampFlags))
            try loop.bind("0.0.0.0", port: 0)
            try loop.join(ownGroup, interface: interface.index)
            try loop.send(token, to: ownGroup, port: loop.port)
            self.loop = loop
            // Bound to the group's address: what it receives was sent to the group.
            let hearing = try ProbeSocket()
            hearing.set(SOL_SOCKET, SO_REUSEADDR, 1)
            hearing.set(SOL_SOCKET, SO_REUSEPORT, 1)
            if (try? hearing.bind(dnsGroup, port: dnsPort)) != nil {
                try hearing.join(dnsGroup, interface: interface.index)
                hearing.set(Int32(IPPROTO_IP), IP_MULTICAST_TTL, 255)
                try hearing.send(question(unicast: false), to: dnsGroup, port: dnsPort)
                self.hearing = hearing
            }
            // Not from port 5353: whoever hears it answers to us alone (RFC 6762 §6.7).
            let asking = try ProbeSocket()
            try asking.bind("0.0.0.0", port: 0)
            try asking.join(dnsGroup, interface: interface.index)
            asking.set(Int32(IPPROTO_IP), IP_MULTICAST_TTL, 255)
            try asking.send(question(unicast: true), to: dnsGroup, port: dnsPort)
            self.asking = asking
            do throws(HostError) {
                try startBeacons(interface)
            } catch {
                facts.beaconFailure = error
            }
        }

        /// As a room listens, beside those that run; what we send is no beacon, and they skip it.
        private mutating func startBeacons(_ interface: InterfaceFacts) throws(HostError) {
            let group = BeaconGroup.groupIPv4
            let beacons = try ProbeSocket()
            beacons.set(SOL_SOCKET, SO_REUSEADDR, 1)
            try beacons.bind(group, port: BeaconGroup.port)
            try beacons.join(group, interface: interface.index)
            try beacons.send(token, to: group, port: BeaconGroup.port)
            self.beacons = beacons
        }

        mutating func listen(_ own: Set<String>) {
            while let (bytes, _) = loop?.receive() {
                if bytes == token { facts.comesBack = true }
            }
            if loop?.departed() == true { facts.stampsDeparture = true }
            while let (bytes, _) = beacons?.receive() {
                if bytes == token { facts.beaconsComeBack = true }
            }
            while let (bytes, from) = asking?.receive() {
                if Self.isAnswer(bytes), !own.contains(from) { Self.add(from, to: &facts.reached) }
            }
            while let (_, from) = hearing?.receive() {
                if !own.contains(from) { Self.add(from, to: &facts.heard) }
            }
        }

        /// More hosts than this tell nothing more.
        private static let hostsMax = 100

        private static func add(_ host: String, to list: inout [String]) {
            if !list.contains(host), list.count < hostsMax { list.append(host) }
        }

        private static func isAnswer(_ bytes: [UInt8]) -> Bool {
            bytes.count >= 12 && bytes[2] & 0x80 != 0
        }

        /// "Which services are there?": every responder that has any answers this (RFC 6763 §9).
        private func question(unicast: Bool) -> [UInt8] {
            var bytes: [UInt8] = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
            for label in ["_services", "_dns-sd", "_udp", "local"] {
                bytes.append(UInt8(label.utf8.count))
                bytes += Array(label.utf8)
            }
            // PTR, class IN; the top bit asks for an answer by unicast.
            return bytes + [0, 0, 12, unicast ? 0x80 : 0, 1]
        }
    }
}
