import TuttiGroupControl

/// Where a leader listens: a host name or numeric address, and a port.
public struct HostPort: Hashable, Sendable, CustomStringConvertible {
    /// The port of a leader that was not told another one.
    public static let defaultPort = 7430

    /// A name or a numeric address; one of IPv6 without brackets.
    public var host: String
    /// TCP port, 1…65 535.
    public var port: Int

    /// A place as it is given; nothing is looked up.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
    ///
    /// - Throws: `RoomError` with code `badAddress` that quotes the text.
    public init(parsing text: String) throws(RoomError) {
        let host: Substring
        var port: Substring?
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { throw .badAddress(text) }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = text.lastIndex(of: ":"), text.firstIndex(of: ":") == colon {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
        } else {
            host = text[...]
        }
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || "[]/".contains($0) }) else {
            throw .badAddress(text)
        }
        self.host = String(host)
        self.port = Self.defaultPort
        if let port {
            guard let number = Int(port), (1...65_535).contains(number) else {
                throw .badAddress(text)
            }
            self.port = number
        }
    }

    /// Whether a text names a page or a file of a web server, which is no place of a leader.
    package static func isWebAddress(_ text: String) -> Bool { text.contains("://") }

    public var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension NextLeader {
    /// Where it is, for who was told so: an empty host is the teller's. A link-local address counts on
    /// one wire, which each machine calls something else (RFC 4007, 6): it is that by which the teller
    /// is reached.
    func host(toldBy teller: String) -> String {
        guard !host.isEmpty else { return teller }
        let scope = teller.drop { $0 != "%" }
        guard host.lowercased().hasPrefix("fe80:"), !scope.isEmpty else { return host }
        return String(host.prefix { $0 != "%" }) + String(scope)
    }
}
