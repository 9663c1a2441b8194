import Glibc
import TuttiGroupControl

extension String {
    /// Columns that a terminal needs: escape sequences none, wide characters two.
    var columns: Int { pieces.reduce(0) { $0 + $1.columns } }

    /// The beginning that fits, with an ellipsis where something is missing.
    func cut(toColumns width: Int) -> String {
        guard columns > width else { return self }
        var text = ""
        var used = 0
        var isFull = false
        for piece in pieces {
            if piece.columns == 0 {
                text += piece.text
            } else if !isFull {
                if used + piece.columns > width - 1 {
                    isFull = true
                    if width > 0 { text += "…" }
                } else {
                    text += piece.text
                    used += piece.columns
                }
            }
        }
        return text
    }

    /// As many lines as it takes, broken between words; what is longer than a line is cut.
    ///
    /// - Parameter indent: of all lines but the first; a terminal too narrow for it gets one line.
    func wrapped(toColumns width: Int, indent: Int) -> [String] {
        guard columns > width, width >= max(1, 2 * indent) else { return [cut(toColumns: width)] }
        let words = split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        var lines = words.prefix(1)
        for word in words.dropFirst() {
            let longer = lines[lines.count - 1] + " " + word
            if longer.columns > width, lines[lines.count - 1].contains(where: { $0 != " " }) {
                lines.append(String(repeating: " ", count: indent) + word)
            } else {
                lines[lines.count - 1] = longer
            }
        }
        return lines.map { $0.cut(toColumns: width) }
    }

    /// Cut or filled with blanks to exactly `width` columns.
    func padded(to width: Int, right: Bool = false) -> String {
        let text = cut(toColumns: width)
        let blanks = String(repeating: " ", count: max(0, width - text.columns))
        return right ? blanks + text : text + blanks
    }

    /// Without what would move the cursor, paint or hide: text of other nodes is not trusted with
    /// that; see ``TuttiGroupControl/ShownText``.
    var printable: String { shown() }

    private struct Piece {
        var text: String
        var columns: Int
    }

    private var pieces: [Piece] {
        var pieces: [Piece] = []
        var escape: String?
        for character in self {
            if character == "\u{1B}" {
                escape = String(character)
            } else if let begun = escape {
                let text = begun + String(character)
                let ends = character.isLetter
                if ends { pieces.append(Piece(text: text, columns: 0)) }
                escape = ends ? nil : text
            } else {
                pieces.append(Piece(text: String(character), columns: character.columns))
            }
        }
        return pieces
    }
}

extension Character {
    /// As terminals count: East Asian wide letters and emoji two, a pair of regional letters, which is a
    /// flag, too.
    fileprivate var columns: Int {
        let scalars = unicodeScalars
        guard let first = scalars.first else { return 0 }
        let isFlag = scalars.count == 2 && (0x1F1E6...0x1F1FF).contains(first.value)
        return isFlag || first.isWide ? 2 : 1
    }
}

extension Unicode.Scalar {
    /// East Asian Width W and F (UAX #11): emoji that are pictures without being asked to be, and the
    /// blocks of East Asian letters. Half a flag is neither.
    fileprivate var isWide: Bool {
        switch value {
        case 0...0x10FF, 0x1F1E6...0x1F1FF: false
        case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF,
            0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x1B2FF, 0x1F200...0x1F2FF,
            0x20000...0x3FFFD:
            true
        default: properties.isEmojiPresentation
        }
    }
}

extension Double {
    /// Decimal text with a fixed number of places: `(1.25).text(1) == "1.3"`, `"–"` for NaN.
    func text(_ places: Int, sign: Bool = false) -> String {
        guard isFinite else { return "–" }
        guard abs(self) < 1e12 else { return self < 0 ? "−∞" : "∞" }
        let scale = pow(10, Double(places))
        let scaled = (abs(self) * scale).rounded()
        let whole = Int((scaled / scale).rounded(.down))
        var text = "\(whole)"
        if places > 0 {
            let fraction = "\(Int(scaled - Double(whole) * scale))"
            text += "." + String(repeating: "0", count: max(0, places - fraction.count)) + fraction
        }
        if self < 0 && scaled > 0 { return "−" + text }
        return sign && scaled > 0 ? "+" + text : text
    }
}

extension Int64 {
    /// A number of bytes as people say it: `18 bytes`, `12 kB`, `3 MB`.
    var bytesText: String {
        switch self {
        case 1: "1 byte"
        case ..<1_000: "\(self) bytes"
        case ..<999_500: "\((self + 500) / 1_000) kB"
        default: "\(self / 1_000_000 + (self % 1_000_000) / 500_000) MB"
        }
    }
}
