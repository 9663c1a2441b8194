/// The name of a room: what people call it and what the group knows it by.
///
/// Two living rooms of a group never share one: the second to come is called "attic (2)". A room that
/// was restarted keeps its name, and with it its volume. Names are the same that a person takes for the same: `Bath`, `bath` and `ｂａｔｈ` are
/// one, and so are two that differ by a character which cannot be seen.
public struct RoomID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Longest name in characters; fits a mDNS label with room to spare for " (2)".
    public static let longest = 64
    /// Longest name in bytes of UTF-8: a few letters of any script, no piles of combining marks.
    public static let longestBytes = 256

    /// As its owner writes it, without what cannot be seen.
    public let name: String
    /// What it is compared by; see ``Swift/String/foldedName``.
    private let key: String

    /// A room by its name, without the spaces around it.
    ///
    /// - Parameter name: 1 to 64 printable characters, at most 256 bytes of UTF-8. Characters that
    ///   cannot be seen are left out.
    public init(_ name: String) throws(InvalidValue) {
        let trimmed = Self.trimming(name)
        if trimmed.isEmpty {
            throw InvalidValue("room name", "is empty; give 1 to \(Self.longest) characters")
        }
        if trimmed.utf8.count > Self.longestBytes || trimmed.count > Self.longest {
            throw InvalidValue("room name", "is longer than \(Self.longest) characters")
        }
        if trimmed.unicodeScalars.contains(where: { !Self.isPrintable($0) }) {
            throw InvalidValue("room name", "holds a character that cannot be printed")
        }
        let seen = trimmed.shown(limit: Self.longestBytes)
        let key = seen.foldedName
        if key.isEmpty {
            throw InvalidValue("room name", "holds nothing that can be seen")
        }
        self.name = seen
        self.key = key
    }

    public var description: String { name }

    /// The name for the `number`th room that is called so: "attic (2)".
    func numbered(_ number: Int) -> RoomID {
        let mark = " (\(number))"
        var base = Substring(name)
        while base.count + mark.count > Self.longest
            || base.utf8.count + mark.utf8.count > Self.longestBytes
        {
            base.removeLast()
        }
        // Printable and not longer than a name may be.
        return (try? RoomID(base + mark)) ?? self
    }

    public static func == (a: RoomID, b: RoomID) -> Bool { a.key == b.key }
    public static func < (a: RoomID, b: RoomID) -> Bool { a.key < b.key }
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    private static func trimming(_ text: String) -> String {
        var rest = Substring(text)
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }

    static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse:
            false
        default: true
        }
    }
}
