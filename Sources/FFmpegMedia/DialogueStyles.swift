import TuttiPlayout

/// The named styles of a text track: what each line begins with.
///
/// Advanced SubStation Alpha keeps them in the script's header, in the sections `[V4+ Styles]` or, in
/// the older SubStation Alpha, `[V4 Styles]`: a line `Format:` with the names of the fields, then a line
/// `Style:` for each. FFmpeg makes such a header for text of every kind.
///
/// White letters at the bottom, in the middle, are what a script says that says nothing: they are left
/// to whoever shows the text.
struct DialogueStyles: Equatable {
    struct Entry: Equatable {
        var style = TimedText.Style()
        var place = TimedText.Place()
    }

    /// Styles read at most; scripts of a film with all its signs have some hundred.
    static let most = 4_096
    /// Bytes of a header that are looked at; fonts may follow behind the styles.
    static let longestHeader = 1 << 20

    private var entries: [String: Entry] = [:]

    /// What has no style, or one that is not there.
    subscript(name: some StringProtocol) -> Entry {
        let name = name.drop { $0 == "*" || $0 == " " }
        return entries[String(name)] ?? entries["Default"] ?? Entry()
    }

    /// - Parameter header: as FFmpeg gives it; what cannot be read in it is passed over.
    init(header: String) {
        var isLegacy = false
        var isStyles = false
        var fields: [String] = []
        for line in header.split(whereSeparator: \.isNewline) {
            let line = line.drop(while: \.isWhitespace)
            if line.hasPrefix("[") {
                let section = line.lowercased()
                isLegacy = section.hasPrefix("[v4 styles]")
                isStyles = isLegacy || section.hasPrefix("[v4+ styles]")
            } else if isStyles, let content = line.content(of: "Format:") {
                fields = Self.values(content).map { $0.lowercased() }
            } else if isStyles, entries.count < Self.most, let content = line.content(of: "Style:")
            {
                let values = zip(fields, Self.values(content)).map { ($0, $1) }
                let named = Dictionary(values, uniquingKeysWith: { first, _ in first })
                guard let name = named["name"] else { continue }
                entries[String(name.drop { $0 == "*" })] = Self.entry(named, isLegacy)
            }
        }
    }

    private static func values(_ content: Substring) -> [String] {
        content.split(separator: ",", omittingEmptySubsequences: false).map { String($0.trimmed) }
    }

    private static func entry(_ fields: [String: String], _ isLegacy: Bool) -> Entry {
        // -1 is yes.
        func isSet(_ name: String) -> Bool { fields[name].flatMap { Int($0) } ?? 0 != 0 }
        var entry = Entry()
        entry.style.isBold = isSet("bold")
        entry.style.isItalic = isSet("italic")
        entry.style.isUnderlined = isSet("underline")
        entry.style.isStruckThrough = isSet("strikeout")
        let color = fields["primarycolour"].flatMap { Self.color($0) }
        entry.style.color = color == 0xFFFFFF ? nil : color
        let number = fields["alignment"].flatMap { Int($0) } ?? 2
        if number != 2 { entry.place = isLegacy ? legacyPlace(number) : place(number) }
        return entry
    }
}

extension DialogueStyles {
    /// Of `&HBBGGRR&`, with two digits of transparency before or without, or a decimal number.
    static func color(_ text: some StringProtocol) -> UInt32? {
        let text = text.drop { $0 == "&" || $0 == " " }
        let isHex = text.first == "H" || text.first == "h"
        let digits = text.drop { $0 == "H" || $0 == "h" }.prefix { $0.isASCII && $0.isHexDigit }
        // Some write more digits than a colour has; the last ones count.
        guard let value = UInt32(digits.suffix(isHex ? 8 : 10), radix: isHex ? 16 : 10) else {
            return nil
        }
        return (value & 0xFF) << 16 | value & 0xFF00 | value >> 16 & 0xFF
    }

    /// Of the nine places as on a block of number keys: 1 is at the bottom on the left.
    static func place(_ number: Int) -> TimedText.Place {
        guard (1...9).contains(number) else { return TimedText.Place() }
        return TimedText.Place(
            horizontal: [.left, .center, .right][(number - 1) % 3],
            vertical: [.bottom, .middle, .top][(number - 1) / 3])
    }

    /// Of the older numbers: 1 to 3 from left to right, 4 more is the top, 8 more the middle.
    static func legacyPlace(_ number: Int) -> TimedText.Place {
        guard (1...11).contains(number), number % 4 != 0 else { return TimedText.Place() }
        return TimedText.Place(
            horizontal: [.left, .center, .right][number % 4 - 1],
            vertical: [.bottom, .top, .middle][number / 4])
    }
}

extension Substring {
    /// What follows a word at the beginning of a line, in whatever case.
    fileprivate func content(of word: String) -> Substring? {
        prefix(word.count).lowercased() == word.lowercased() ? dropFirst(word.count) : nil
    }

    fileprivate var trimmed: Substring {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
