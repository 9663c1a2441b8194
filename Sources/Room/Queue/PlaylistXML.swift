/// As much of XML as a playlist needs.
enum XMLText {
    /// What is inside the next element of that name, whatever its prefix and attributes; `rest`
    /// goes on behind it.
    static func element(_ name: String, in rest: inout Substring) -> Substring? {
        while let open = rest.firstIndex(of: "<") {
            rest = rest[rest.index(after: open)...]
            // One that another begins in is broken. Looking on for its end would take a time that
            // grows with the square of what a server sends.
            guard let close = rest.firstIndex(where: { $0 == ">" || $0 == "<" }) else { break }
            guard rest[close] == ">" else { continue }
            let tag = rest[..<close]
            guard local(tag) == name else { continue }
            rest = rest[rest.index(after: close)...]
            if tag.hasSuffix("/") { return rest[..<rest.startIndex] }
            let inside = rest
            while let end = rest.firstRange(of: "</") {
                let content = inside[..<end.lowerBound]
                rest = rest[end.upperBound...]
                if local(rest.prefix { $0 != ">" && $0 != "<" }) == name { return content }
            }
            return nil
        }
        rest = rest[rest.endIndex...]
        return nil
    }

    private static func local(_ tag: Substring) -> Substring {
        let whole = tag.prefix { !$0.isWhitespace && $0 != "/" }
        return whole.lastIndex(of: ":").map { whole[whole.index(after: $0)...] } ?? whole
    }

    static func withoutComments(_ text: String) -> String {
        var result = ""
        var rest = text[...]
        while let begin = rest.firstRange(of: "<!--") {
            result += rest[..<begin.lowerBound]
            rest = rest[begin.upperBound...]
            guard let end = rest.firstRange(of: "-->") else { return result }
            rest = rest[end.upperBound...]
        }
        return result + rest
    }

    private static let names = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
    /// `&#1114111;`
    private static let longestReference = 10

    static func plain(_ text: Substring) -> String {
        if text.hasPrefix("<![CDATA["), text.hasSuffix("]]>") {
            return String(text.dropFirst(9).dropLast(3))
        }
        var result = ""
        var rest = text
        while let sign = rest.firstIndex(of: "&") {
            result += rest[..<sign]
            rest = rest[rest.index(after: sign)...]
            let name = rest.prefix(longestReference).prefix { $0 != ";" }
            let behind = rest[name.endIndex...]
            guard behind.first == ";", let meant = character(String(name)) else {
                result += "&"
                continue
            }
            result += meant
            rest = behind.dropFirst()
        }
        return result + rest
    }

    private static func character(_ name: String) -> String? {
        guard name.hasPrefix("#") else { return names[name] }
        let digits = name.dropFirst()
        let value =
            digits.lowercased().hasPrefix("x")
            ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        // XML 1.0, 2.2: a zero is no character.
        guard let value, value != 0 else { return nil }
        return Unicode.Scalar(value).map { String(Character($0)) }
    }
}
