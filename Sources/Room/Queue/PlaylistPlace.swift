import TuttiPlayout

/// What the words of a playlist may mean, seen from where it is.
struct PlaylistPlace {
    var base: String

    /// - Parameter isAddress: percent signs are escapes for certain.
    func places(of word: ArraySlice<UInt8>, isAddress: Bool = false) -> [String] {
        let text = String(unlabelled: word)
        let start = text.prefix(8).lowercased()
        if start.hasPrefix("file:") {
            return [Self.otherHost(of: text) == nil ? Self.path(ofFileAddress: word) : text]
        }
        if start.hasPrefix("http:") || start.hasPrefix("https:") { return [text] }
        if let scheme = text.firstRange(of: "://"), Self.isScheme(text[..<scheme.lowerBound]) {
            return [text]
        }
        if Self.isRemote(base) { return [address(of: text)] }

        var readings = [Array(word)]
        let unescaped = Self.unescaped(word)
        if unescaped != readings[0] {
            readings = isAddress ? [unescaped] + readings : readings + [unescaped]
        }
        // What is not UTF-8 may be the name of the file, or the Latin-1 of a list for one in UTF-8.
        readings += readings.map { Array(String(unlabelled: $0).utf8) }
        readings += readings.map { $0.map { $0 == UInt8(ascii: "\\") ? UInt8(ascii: "/") : $0 } }
        var places: [String] = []
        for reading in readings {
            let path = joined(String(fileName: reading))
            if !places.contains(where: { $0.utf8.elementsEqual(path.utf8) }) { places.append(path) }
        }
        return places
    }

    private func joined(_ path: String) -> String {
        guard !path.hasPrefix("/"), !base.isEmpty else { return path }
        return base.hasSuffix("/") ? base + path : base + "/" + path
    }

    /// Relative to the address of the playlist.
    private func address(of path: String) -> String {
        let whole = base.prefix { $0 != "?" && $0 != "#" }
        guard let hostAt = whole.firstRange(of: "://")?.upperBound else { return path }
        let root = whole[hostAt...].firstIndex(of: "/") ?? whole.endIndex
        let escaped = path.replacing(" ", with: "%20")
        if path.hasPrefix("//") { return String(whole[..<hostAt].dropLast(2)) + escaped }
        if path.hasPrefix("/") { return String(whole[..<root]) + escaped }
        guard let last = whole[root...].lastIndex(of: "/") else {
            return String(whole) + "/" + escaped
        }
        return String(whole[...last]) + escaped
    }

    static func isRemote(_ text: String) -> Bool {
        let start = text.prefix(8).lowercased()
        return start.hasPrefix("http://") || start.hasPrefix("https://")
    }

    private static func isScheme(_ text: Substring) -> Bool {
        text.count > 1 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
    }

    /// The machine that `file://nas/a` is on; `nil` where it is this one.
    static func otherHost(of text: String) -> String? {
        guard text.prefix(7).lowercased() == "file://" else { return nil }
        let host = String(text.dropFirst(7).prefix { $0 != "/" })
        return host.isEmpty || host.lowercased() == "localhost" ? nil : host
    }

    /// The path of `file:///a%20b`, `file://localhost/a` or `file:a`.
    static func path(ofFileAddress word: ArraySlice<UInt8>) -> String {
        var rest = word.dropFirst("file:".utf8.count)
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            // What stands before the first slash is a host.
            rest = rest.firstIndex(of: UInt8(ascii: "/")).map { rest[$0...] } ?? rest
        }
        return String(fileName: unescaped(rest))
    }

    /// `%20` as a blank; what is no escape stays as it is.
    static func unescaped(_ word: ArraySlice<UInt8>) -> [UInt8] {
        func digit(_ byte: UInt8) -> UInt8? {
            Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
        }
        var bytes: [UInt8] = []
        var index = word.startIndex
        while index < word.endIndex {
            if word[index] == UInt8(ascii: "%"), index + 2 < word.endIndex,
                let high = digit(word[index + 1]), let low = digit(word[index + 2]),
                high << 4 | low != 0
            {
                bytes.append(high << 4 | low)
                index += 3
            } else {
                bytes.append(word[index])
                index += 1
            }
        }
        return bytes
    }
}
