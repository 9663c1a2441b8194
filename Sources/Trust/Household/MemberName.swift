/// What people call a member: decoration, never an identity.
///
/// One line of 1 to 64 characters, at most 256 bytes of UTF-8, without control characters, those
/// that turn the direction of writing, and those of no assigned meaning. It is kept byte by byte,
/// because it is signed.
package struct MemberName: Hashable, Sendable, CustomStringConvertible {
    package static let longest = 64
    package static let longestBytes = 256

    package let text: String

    package init(_ text: String) throws(TrustError) {
        guard text.utf8.count <= Self.longestBytes, text.count <= Self.longest else {
            throw TrustError(
                .outOfRange, "member name",
                "is longer than \(Self.longest) characters or \(Self.longestBytes) bytes; "
                    + "give a shorter one")
        }
        guard !text.allSatisfy(\.isWhitespace) else {
            throw TrustError(
                .outOfRange, "member name", "is empty; give 1 to \(Self.longest) characters")
        }
        guard text.unicodeScalars.allSatisfy(Self.isPrintable) else {
            throw TrustError(
                .outOfRange, "member name",
                "holds a character that cannot be printed; leave it out")
        }
        self.text = text
    }

    package var description: String { text }

    /// Two names that only look the same are two byte strings, and two names.
    package static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
    package func hash(into hasher: inout Hasher) { hasher.combine(Array(text.utf8)) }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned,
            .privateUse:
            false
        default: true
        }
    }
}
