/// The name of a room: what people call it and what the group knows it by.
///
/// Two living rooms of a group never share one; a room that was restarted keeps it, and with it
/// its volume.
public struct RoomID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Longest name in characters; fits a mDNS label with room to spare for " (2)".
    public static let longest = 64
    /// Longest name in bytes of UTF-8: a few letters of any script, no piles of combining marks.
    public static let longestBytes = 256

    public let name: String

    /// A room by its name, without the spaces around it.
    ///
    /// - Parameter name: 1 to 64 printable characters, at most 256 bytes of UTF-8.
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
        self.name = trimmed
    }

    public var description: String { name }

    public static func < (a: RoomID, b: RoomID) -> Bool { a.name < b.name }

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
