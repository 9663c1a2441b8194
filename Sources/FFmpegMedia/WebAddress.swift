/// An http or https address in its parts (RFC 3986), as far as a connection needs them.
struct WebAddress: Equatable, Sendable {
    var isSecure: Bool
    /// Without the brackets of an IPv6 address.
    var host: String
    var port: Int
    /// From the first slash on, with the query and without the fragment; a blank is written `%20`.
    var path: String
    /// Name and password, as they are written.
    var credentials: String?

    /// - Returns: `nil` for anything else than `http[s]://HOST[:PORT][/…]`, and for what would end
    ///   the line of a request, so that no address asks for more than itself.
    init?(_ text: String) {
        guard !Self.endsLines(text) else { return nil }
        // By code points, as everybody else who reads it: a slash that bears an accent is a slash.
        let text = text.unicodeScalars
        guard let mark = text.firstRange(of: "://".unicodeScalars) else { return nil }
        switch String(text[..<mark.lowerBound]).lowercased() {
        case "http": isSecure = false
        case "https": isSecure = true
        default: return nil
        }
        let rest = text[mark.upperBound...].prefix { $0 != "#" }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        let tail = rest[end...]
        path = (tail.first == "/" ? "" : "/") + Self.escaped(tail)
        if let at = authority.lastIndex(of: "@") {
            credentials = String(authority[..<at])
            authority = authority[authority.index(after: at)...]
        }
        port = isSecure ? 443 : 80
        let hostEnd: Substring.UnicodeScalarView.Index
        if authority.first == "[", let bracket = authority.firstIndex(of: "]") {
            host = String(authority[authority.index(after: authority.startIndex)..<bracket])
            hostEnd = authority.index(after: bracket)
        } else {
            hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
            host = String(authority[..<hostEnd])
        }
        let behind = authority[hostEnd...]
        if behind.first == ":", behind.count > 1 {
            guard let number = Int(String(behind.dropFirst())), (1...65_535).contains(number)
            else { return nil }
            port = number
        } else if !behind.isEmpty, behind.count > 1 || behind.first != ":" {
            return nil
        }
        guard !host.isEmpty, !host.unicodeScalars.contains(" ") else { return nil }
    }

    private static func endsLines(_ text: String) -> Bool {
        text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    private static func escaped(_ path: some Sequence<Unicode.Scalar>) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in path {
            if scalar == " " {
                escaped.append(contentsOf: "%20".unicodeScalars)
            } else {
                escaped.append(scalar)
            }
        }
        return String(escaped)
    }

    /// Where a `Location` header leads from here; `nil` when that is no web address.
    func redirected(to location: String) -> WebAddress? {
        guard !Self.endsLines(location) else { return nil }
        let location = location.unicodeScalars
        if location.firstRange(of: "://".unicodeScalars) != nil {
            return WebAddress(String(location))
        }
        if location.starts(with: "//".unicodeScalars) {
            return WebAddress((isSecure ? "https:" : "http:") + String(location))
        }
        let target = Self.escaped(location.prefix { $0 != "#" })
        let folder = path.unicodeScalars.prefix { $0 != "?" }
        var next = self
        switch target.unicodeScalars.first {
        case nil: return self
        case "/": next.path = target
        case "?": next.path = String(folder) + target
        default:
            let slash = folder.lastIndex(of: "/").map { String(folder[...$0]) } ?? "/"
            next.path = slash + target
        }
        return next
    }

    /// As it stands in an address.
    var bracketedHost: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host }

    /// The whole address.
    var text: String {
        let login = credentials.map { $0 + "@" } ?? ""
        return "\(isSecure ? "https" : "http")://\(login)\(bracketedHost):\(port)\(path)"
    }
}
