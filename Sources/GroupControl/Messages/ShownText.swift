/// Text of others on its way out to a person: to a terminal, into a log, into a file of ours.
///
/// A name, a title or a reason of another node is whatever somebody wrote into it. What moves the
/// cursor, begins another line, turns the direction of writing, or cannot be seen at all has no
/// business there: a log line could be forged with it, and two names look the same. So every way
/// out goes through ``Swift/String/shown(limit:)``: the log's handler, the tables, the sentences on
/// stderr. JSON does not: its encoder escapes what has to be escaped, and a program wants the text
/// as it is.
package enum ShownText {
    /// Bytes of a text for which nothing else is said: a reason with two titles and an address.
    package static let longest = 1_024
    /// Marks on one letter. Scripts stack up to four; more of them climb over the lines above.
    static let mostMarks = 4

    /// What a scalar becomes.
    enum Part {
        case letter
        case mark
        case blank
        case dropped
        /// Means something only to whoever wrote it; shown as the sign for that.
        case unknown
    }

    static func part(_ scalar: Unicode.Scalar) -> Part {
        // Nearly all there is.
        if (0x21...0x7E).contains(scalar.value) { return .letter }
        let properties = scalar.properties
        if properties.isDefaultIgnorableCodePoint { return .dropped }
        return switch properties.generalCategory {
        // Line feed, tab and their relatives part words.
        case .control:
            (0x09...0x0D).contains(scalar.value) || scalar.value == 0x85
                ? .blank : .dropped
        case .lineSeparator, .paragraphSeparator, .spaceSeparator: .blank
        case .format, .surrogate: .dropped
        case .privateUse, .unassigned: .unknown
        case .nonspacingMark, .spacingMark, .enclosingMark: .mark
        // The Braille pattern without dots is a letter that cannot be seen.
        default: scalar.value == 0x2800 ? .blank : .letter
        }
    }
}

extension String {
    /// On one line, of what can be seen, and no longer than `limit` bytes of UTF-8, the ellipsis for
    /// the rest included.
    ///
    /// Line breaks, tabs and every other blank become a space, at the ends none; control characters,
    /// bidirectional controls and invisible characters are left out, marks without a letter too.
    /// Web addresses are shown without their secrets.
    ///
    /// - Complexity: O(length up to `limit`).
    package func shown(limit: Int = ShownText.longest) -> String {
        var text = String.UnicodeScalarView()
        var (bytes, marks) = (0, 0)
        var hasBase = false
        var (isCut, blanks) = (false, 0)
        reading: for scalar in unicodeScalars {
            var shown = scalar
            switch ShownText.part(scalar) {
            case .dropped: continue
            case .blank:
                blanks += text.isEmpty ? 0 : 1
                hasBase = false
                continue
            case .mark:
                guard hasBase, marks < ShownText.mostMarks else { continue }
                marks += 1
            case .unknown:
                shown = "\u{FFFD}"
                (hasBase, marks) = (false, 0)
            case .letter: (hasBase, marks) = (true, 0)
            }
            let size = blanks + UTF8.width(shown)
            guard bytes + size <= limit else {
                isCut = true
                break reading
            }
            text.append(contentsOf: repeatElement(" ", count: blanks))
            text.append(shown)
            bytes += size
            blanks = 0
        }
        guard isCut else { return String(text).withoutSecrets }
        let ellipsis = "…"
        while !text.isEmpty, bytes + ellipsis.utf8.count > limit {
            bytes -= UTF8.width(text.removeLast())
        }
        return String(text).withoutSecrets
            + (bytes + ellipsis.utf8.count <= limit ? ellipsis : "")
    }

    /// What two names have in common that a person would take for the same: without what cannot be
    /// seen, without regard to case, full-width and other compatibility forms as plain ones.
    ///
    /// For comparing alone, never for showing.
    package var foldedName: String {
        var folded = ""
        var hasBlank = false
        for scalar in unicodeScalars {
            switch ShownText.part(scalar) {
            case .dropped: continue
            case .blank: hasBlank = !folded.isEmpty
            case .letter, .mark, .unknown:
                if hasBlank { folded += " " }
                hasBlank = false
                if let plain = CompatibilityForms.plain(of: scalar) {
                    folded += plain
                } else {
                    folded.unicodeScalars.append(scalar)
                }
            }
        }
        return folded.lowercased()
    }
}
