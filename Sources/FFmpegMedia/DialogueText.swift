import TuttiPlayout

/// The text of one line of dialogue, its overrides turned into styles.
///
/// FFmpeg's text decoders all yield lines of Advanced SubStation Alpha: letters with blocks of
/// overrides between braces, each a backslash, a name and an argument: `{\i1}word{\i0}`. Read here are
/// weight, slant, lines through and below, colour, and place in the picture. All other overrides
/// change how the letters look or move, and are passed over; so are drawings, whose commands look
/// like letters.
struct DialogueText {
    private(set) var runs: [TimedText.Run] = []
    private(set) var place: TimedText.Place

    private let styles: DialogueStyles
    private let base: DialogueStyles.Entry
    private var style: TimedText.Style
    private var text = String.UnicodeScalarView()
    /// A script may move a line more than once; the first word counts.
    private var isPlaced = false
    private var isDrawing = false

    /// - Parameters:
    ///   - text: of a line, without the fields before it.
    ///   - style: the name of what it begins with.
    init(_ text: some StringProtocol, style name: some StringProtocol, in styles: DialogueStyles) {
        self.styles = styles
        base = styles[name]
        style = base.style
        place = base.place
        read(String(text).unicodeScalars[...])
        endRun()
    }

    private mutating func read(_ text: Substring.UnicodeScalarView) {
        var rest = text
        // Without another brace in what is left, none is looked for again.
        var mayClose = true
        while let scalar = rest.popFirst() {
            if scalar == "{", mayClose {
                if let end = rest.firstIndex(of: "}") {
                    override(rest[..<end])
                    rest = rest[rest.index(after: end)...]
                    continue
                }
                mayClose = false
            }
            let letter = scalar == "\\" ? Self.escaped(&rest) : scalar
            if !isDrawing { self.text.append(letter) }
        }
    }

    /// What a backslash stands for with the letter behind it, which is taken where it does.
    private static func escaped(_ rest: inout Substring.UnicodeScalarView) -> Unicode.Scalar {
        let meaning: Unicode.Scalar? =
            switch rest.first {
            case "N": "\n"
            case "n": " "
            case "h": "\u{A0}"
            case "{", "}", "\\": rest.first
            // FFmpeg joins so what would be read as an escape.
            case "\u{2060}": "\\"
            default: nil
            }
        if meaning != nil { rest.removeFirst() }
        return meaning ?? "\\"
    }

    private mutating func endRun() {
        defer { text = String.UnicodeScalarView() }
        guard !text.isEmpty else { return }
        if runs.last?.style == style {
            runs[runs.count - 1].text.unicodeScalars.append(contentsOf: text)
        } else {
            runs.append(TimedText.Run(String(text), style: style))
        }
    }
}

extension DialogueText {
    /// - Parameter block: what is between the braces; without a backslash a remark.
    private mutating func override(_ block: Substring.UnicodeScalarView) {
        endRun()
        var rest = block
        while let start = rest.firstIndex(of: "\\") {
            rest = rest[rest.index(after: start)...]
            let end = Self.end(of: rest)
            apply(String(Substring(rest[..<end])))
            rest = rest[end...]
        }
    }

    /// Up to the next backslash that is not within parentheses: `\t(\i1)` is one override.
    private static func end(
        of text: Substring.UnicodeScalarView
    ) -> Substring.UnicodeScalarView.Index {
        var depth = 0
        for index in text.indices {
            switch text[index] {
            case "(": depth += 1
            case ")": depth -= 1
            case "\\" where depth <= 0: return index
            default: break
            }
        }
        return text.endIndex
    }

    private mutating func apply(_ override: String) {
        let name = override.prefix { $0.isASCII && $0.isLetter }
        let argument = override.dropFirst(name.count)
        switch name {
        case "b": style.isBold = isOn(argument, base.style.isBold)
        case "i": style.isItalic = isOn(argument, base.style.isItalic)
        case "u": style.isUnderlined = isOn(argument, base.style.isUnderlined)
        case "s": style.isStruckThrough = isOn(argument, base.style.isStruckThrough)
        case "c": style.color = color(argument)
        case "an": put(DialogueStyles.place(Int(argument) ?? 0))
        case "a": put(DialogueStyles.legacyPlace(Int(argument) ?? 0))
        case "p": isDrawing = Int(argument) ?? 0 > 0
        case _ where name.first == "r":
            // The name of a style follows without a mark, whatever letters it has.
            let style = override.dropFirst()
            self.style = style.isEmpty ? base.style : styles[style].style
        case "" where argument.first == "1" && argument.dropFirst().first == "c":
            style.color = color(argument.dropFirst(2))
        default: break
        }
    }

    /// 0 and 1, or a weight: 400 is regular, 700 bold. Without an argument: as the style has it.
    private func isOn(_ argument: Substring, _ usual: Bool) -> Bool {
        guard let number = Int(argument) else { return usual }
        return number == 1 || number >= 600
    }

    private func color(_ argument: Substring) -> UInt32? {
        argument.isEmpty ? base.style.color : DialogueStyles.color(argument) ?? style.color
    }

    private mutating func put(_ place: TimedText.Place) {
        guard !isPlaced, place != TimedText.Place() else { return }
        self.place = place
        isPlaced = true
    }
}
