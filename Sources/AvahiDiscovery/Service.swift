/// One service on the LAN, as Avahi resolved it.
public struct Service: Hashable, Sendable {
    /// The instance name, unique on the LAN per service type.
    public var name: String
    /// The host's mDNS name, such as `kitchen.local`.
    public var hostName: String
    /// A numeric address; an IPv6 link-local one carries its scope: `fe80::1%3`.
    public var address: String
    public var port: Int
    /// The interface on which the service was seen.
    public var interfaceIndex: Int
    /// Key-value pairs of the service's TXT record.
    public var attributes: [String: String]

    public init(
        name: String, hostName: String, address: String, port: Int, interfaceIndex: Int,
        attributes: [String: String]
    ) {
        self.name = name
        self.hostName = hostName
        self.address = address
        self.port = port
        self.interfaceIndex = interfaceIndex
        self.attributes = attributes
    }
}

/// What a browser saw.
public enum ServiceEvent: Hashable, Sendable {
    /// A service is there, or its address or attributes changed.
    case found(Service)
    /// No interface carries a service of that name any more.
    case removed(name: String)
    /// Avahi has told all that it knew when browsing began.
    case allKnownReported
    /// The daemon went away; it is being waited for.
    case daemonLost
}

/// What we advertise.
public struct Advertisement: Equatable, Sendable {
    public var name: String
    public var port: Int
    public var attributes: [String: String]

    public init(name: String, port: Int, attributes: [String: String]) {
        self.name = name
        self.port = port
        self.attributes = attributes
    }
}

/// Why Avahi cannot be used.
public struct AvahiError: Error, Equatable, CustomStringConvertible {
    public var operation: String
    /// The library's negative error code.
    public var code: Int32
    public var reason: String

    public var description: String { "Avahi: \(reason) (\(operation): \(code))" }
}
