extension String {
    /// The same with what opens doors left out of the web addresses in it: passwords, and of each
    /// value of a query all but its beginning, by which its owner knows it again.
    ///
    /// Servers of music take keys in either place, and screens and logs are copied into reports.
    /// Never longer than it was. For showing alone: who fetches an item needs its address as it is.
    var withoutSecrets: String {
        let mark = Array("://".utf8)
        var rest = Array(utf8)[...]
        var shown: [UInt8] = []
        // By bytes, as servers read them: a mark on a slash hides none.
        while let range = rest.firstRange(of: mark) {
            let scheme = String(decoding: rest[..<range.lowerBound].suffix(5), as: UTF8.self)
                .lowercased()
            shown += rest[..<range.upperBound]
            rest = rest[range.upperBound...]
            guard scheme.hasSuffix("http") || scheme == "https" else { continue }
            var address = rest.prefix { !ShownAddress.isEnd($0) }
            // What closes a sentence, or a bracket around it.
            while let last = address.last, ").,".utf8.contains(last) { address.removeLast() }
            shown += ShownAddress.withoutSecrets(address)
            rest = rest[address.endIndex...]
        }
        return shown.isEmpty ? self : String(decoding: shown + rest, as: UTF8.self)
    }
}

private enum ShownAddress {
    /// Bytes of a value that are shown, and no more than a quarter of it.
    private static let mostKept = 4

    /// Blanks and quotes, of which an address has none.
    static func isEnd(_ byte: UInt8) -> Bool { byte <= 0x20 || "\"<>".utf8.contains(byte) }

    /// - Parameter address: behind its scheme.
    static func withoutSecrets(_ address: ArraySlice<UInt8>) -> [UInt8] {
        let host = address.prefix { !"/?#".utf8.contains($0) }
        let path = address[host.endIndex...].prefix { !"?#".utf8.contains($0) }
        var shown = withoutPassword(host) + path
        var value: [UInt8] = []
        var isNamed = false
        for byte in address[path.endIndex...] {
            switch byte {
            case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "&"), UInt8(ascii: ";"):
                shown += shortened(value[...]) + [byte]
                (value, isNamed) = ([], false)
            case UInt8(ascii: "=") where !isNamed:
                shown += value + [byte]
                (value, isNamed) = ([], true)
            default: value.append(byte)
            }
        }
        // Without a name it is a value itself.
        return shown + shortened(value[...])
    }

    /// - Parameter host: with whoever asks before it, and a port behind it.
    private static func withoutPassword(_ host: ArraySlice<UInt8>) -> [UInt8] {
        let at = host.lastIndex(of: UInt8(ascii: "@"))
        let asker = host[..<(at ?? host.endIndex)]
        guard let colon = asker.firstIndex(of: UInt8(ascii: ":")), host.first != UInt8(ascii: "[")
        else { return Array(host) }
        let password = asker[(colon + 1)...]
        // A port; else the address was cut before its host.
        if at == nil, password.allSatisfy({ (0x30...0x39).contains($0) }) { return Array(host) }
        let isLong = password.count >= ellipsis.count
        return Array(asker[...colon])
            + (isLong ? ellipsis : Array(repeating: UInt8(ascii: "*"), count: password.count))
            + host[asker.endIndex...]
    }

    private static let ellipsis = Array("…".utf8)

    private static func shortened(_ value: ArraySlice<UInt8>) -> [UInt8] {
        // So short a value is no key, and the mark for what is left out is as long.
        guard value.count > ellipsis.count else { return Array(value) }
        // No part of a letter.
        let kept = value.prefix(min(mostKept, value.count / 4)).prefix { $0 < 0x80 }
        return kept + ellipsis
    }
}
