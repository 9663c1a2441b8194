/// An http or https address in its parts (RFC 3986), as far as a connection needs them.
struct WebAddress: Equatable, Sendable {
    var isSecure: Bool
    /// Without the brackets of an IPv6 address.
    var host: String
    var port: Int
    /// From the first slash on, with the query and without the fragment.
    var path: String
    /// Name and password, as they are written.
    var credentials: String?

    /// - Returns: `nil` for anything else than `http[s]://HOST[:PORT][/…]`.
    init?(_ text: String) {
        guard let mark = text.firstRange(of: "://") else { return nil }
        switch text[..<mark.lowerBound].lowercased() {
        case "http": isSecure = false
        case "https": isSecure = true
        default: return nil
        }
        let rest = text[mark.upperBound...].prefix { $0 != "#" }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        let tail = String(rest[end...])
        path = tail.hasPrefix("/") ? tail : "/" + tail
        if let at = authority.lastIndex(of: "@") {
            credentials = String(authority[..<at])
            authority = authority[authority.index(after: at)...]
        }
        port = isSecure ? 443 : 80
        let hostEnd: Substring.Index
        if authority.hasPrefix("["), let bracket = authority.firstIndex(of: "]") {
            host = String(authority[authority.index(after: authority.startIndex)..<bracket])
            hostEnd = authority.index(after: bracket)
        } else {
            hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
            host = String(authority[..<hostEnd])
        }
        let behind = authority[hostEnd...]
        if behind.hasPrefix(":"), behind.count > 1 {
            guard let number = Int(behind.dropFirst()), (1...65_535).contains(number) else {
                return nil
            }
            port = number
        } else if !behind.isEmpty, behind != ":" {
            return nil
        }
        guard !host.isEmpty else { return nil }
    }

    /// Where a `Location` header leads from here; `nil` when that is no web address.
    func redirected(to location: String) -> WebAddress? {
        if location.firstRange(of: "://") != nil { return WebAddress(location) }
        if location.hasPrefix("//") {
            return WebAddress((isSecure ? "https:" : "http:") + location)
        }
        let location = location.prefix { $0 != "#" }
        let folder = path.prefix { $0 != "?" }
        var next = self
        if location.hasPrefix("/") {
            next.path = String(location)
        } else if location.isEmpty {
            return self
        } else if location.hasPrefix("?") {
            next.path = String(folder + location)
        } else {
            let slash = folder.lastIndex(of: "/").map { folder[...$0] } ?? "/"
            next.path = String(slash + location)
        }
        return next
    }

    /// As it stands in an address.
    var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

    /// The whole address.
    var text: String {
        let login = credentials.map { $0 + "@" } ?? ""
        return "\(isSecure ? "https" : "http")://\(login)\(bracketedHost):\(port)\(path)"
    }
}
