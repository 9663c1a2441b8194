/// One service on the LAN, as Avahi resolves it: all that is known of it at a moment.
public struct Service: Hashable, Sendable {
    /// The instance name, unique on the LAN per service type.
    public var name: String
    /// The host's mDNS name, such as `kitchen.local`.
    public var hostName: String
    /// Where it is: of each interface and protocol on which it is seen. Empty while no address is
    /// known, as between two leases.
    public var endpoints: [ServiceEndpoint]
    /// Key-value pairs of the service's TXT record.
    public var attributes: [String: String]

    /// What a browser or a test has found out; nothing is looked up.
    public init(
        name: String, hostName: String, endpoints: [ServiceEndpoint], attributes: [String: String]
    ) {
        self.name = name
        self.hostName = hostName
        self.endpoints = endpoints
        self.attributes = attributes
    }
}

/// One place where a service is said to be.
public struct ServiceEndpoint: Hashable, Sendable {
    /// A numeric address; an IPv6 link-local one carries its scope: `fe80::1%3`.
    public var address: String
    /// TCP port of the service, 1…65 535, in host order.
    public var port: Int
    /// The interface on which the service was seen.
    public var interfaceIndex: Int

    /// A place as a resolver tells it; the address is not parsed.
    public init(address: String, port: Int, interfaceIndex: Int) {
        self.address = address
        self.port = port
        self.interfaceIndex = interfaceIndex
    }
}

/// What a browser saw.
public enum ServiceEvent: Hashable, Sendable {
    /// A service is there, or its addresses or attributes changed.
    case found(Service)
    /// No interface carries a service of that name any more.
    case removed(name: String)
    /// All that the daemon knew already when browsing began has been reported; more may answer.
    case cacheReported
    /// Avahi has told all that answered when browsing began.
    case allKnownReported
    /// The daemon went away; it is being waited for.
    case daemonLost
}

/// What we advertise.
public struct Advertisement: Equatable, Sendable {
    /// The instance name: 1 to ``longestName`` bytes of UTF-8.
    public var name: String
    /// TCP port that is told to whoever browses, 1…65 535.
    public var port: Int
    /// Key-value pairs of the TXT record; each with its key is at most ``longestAttribute`` bytes.
    public var attributes: [String: String]

    /// A DNS label.
    public static let longestName = 63
    /// Bytes of a key and its value together: a TXT record holds strings of 255, and "=".
    public static let longestAttribute = 254

    /// What is to be told; whether the daemon takes it is said when it is published.
    public init(name: String, port: Int, attributes: [String: String]) {
        self.name = name
        self.port = port
        self.attributes = attributes
    }
}

/// What became of an advertisement, for a person.
public enum PublicationNews: Equatable, Sendable {
    /// The name is taken on the LAN: this one is used instead.
    case renamed(from: String, to: String)
    /// The daemon does not take it, and the service cannot be found.
    case refused(AvahiError)
}

/// Why Avahi cannot be used.
public struct AvahiError: Error, Equatable, CustomStringConvertible {
    /// The call of Avahi's library that failed: `avahi_client_new`.
    public var operation: String
    /// The library's negative error code.
    public var code: Int32
    /// The library's words for the code, and what the user can do.
    public var reason: String

    public var description: String { "Avahi: \(reason) (\(operation): \(code))" }
}
