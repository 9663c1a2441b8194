import Testing
import TuttiChance
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Lines of Advanced SubStation Alpha, with what is written about it as the reference.
@Suite struct DialogueTextTests {
    private let styles = DialogueStyles(
        header: """
            [V4+ Styles]
            Format: Name, PrimaryColour, Bold, Italic, Underline, StrikeOut, Alignment
            Style: Default,&H00FFFFFF,0,0,0,0,2
            Style: Loud,&H000000FF,-1,0,0,0,8
            """)

    private func read(_ text: String, _ style: String = "Default") -> DialogueText {
        DialogueText(text, style: style, in: styles)
    }

    private func string(_ text: String) -> String { read(text).runs.map(\.text).joined() }

    /// Letters with what is said of them: b, i, u, s.
    private func marked(_ text: DialogueText) -> [String] {
        text.runs.map { run in
            let style = run.style
            return (style.isBold ? "b" : "") + (style.isItalic ? "i" : "")
                + (style.isUnderlined ? "u" : "") + (style.isStruckThrough ? "s" : "") + ":"
                + run.text
        }
    }

    @Test(arguments: [
        (#"a{\b1}b{\b0}c"#, [":a", "b:b", ":c"]), (#"{\b700}a{\b400}b{\b}c"#, ["b:a", ":bc"]),
        (#"{\i1\u1}a{\i0}b{\s1}c"#, ["iu:a", "u:b", "us:c"]), (#"{\i1}a{\r}b"#, ["i:a", ":b"]),
        (#"a{\rLoud}b{\rNobody}c"#, [":a", "b:b", ":c"]), (#"{\i1}{\i0}a"#, [":a"]),
        // Names that only begin alike.
        (#"{\blur1\be1\bord1\iclip(1)\shad1\fscx1\clip(2)}a"#, [":a"]),
        (#"{\t(0,1,\b1\i1)\move(1,2)\u1}a"#, ["u:a"]), (#"{a remark}b{}c"#, [":bc"]),
        (#"{\i1)\b1}a"#, ["b:a"]), (#"{\t(\i1}a"#, [":a"]), (#"{\k20}syl{\kf3}la"#, [":sylla"]),
    ])
    func `overrides become styles`(text: String, expected: [String]) {
        #expect(marked(read(text)) == expected)
    }

    @Test(arguments: [
        (#"a\Nb\nc\hd"#, "a\nb c\u{A0}d"), (#"\{a\}"#, "{a}"), (#"\\N"#, #"\N"#),
        (#"\x\"#, #"\x\"#),
        ("\\\u{2060}N", #"\N"#), (#"\{{}b}"#, "{b}"), ("{no end", "{no end"), ("}", "}"), ("", ""),
        (#"{\p1}m 0 0 l 1 1{\p0}a{\p2}m{\i1}n{\p0}b"#, "ab"), ("e\u{301}🎵", "e\u{301}🎵"),
    ])
    func `escapes and drawings are not letters`(text: String, expected: String) {
        #expect(string(text) == expected)
    }

    @Test(arguments: [
        (#"{\c&H0000FF&}"#, 0xFF0000 as UInt32?), (#"{\1c&HFF0000&}"#, 0xFF),
        (#"{\c&H80FF&}"#, 0xFF8000),
        (#"{\c&HAA00FF00}"#, 0x00FF00), (#"{\c255}"#, 0xFF0000), (#"{\c&HFFFFFF&}"#, 0xFFFFFF),
        (#"{\3c&H0000FF&\2c&HFF&\4c&HFF&\alpha&HFF&\1a&H10&}"#, nil), (#"{\c&HFF&\c}"#, nil),
        (#"{\cnonsense}"#, nil), (#"{\c99999999999}"#, nil),
        (#"{\c&H00000000000000FF&}"#, 0xFF0000),
    ])
    func `colours are red, green and blue`(text: String, expected: UInt32?) {
        #expect(read(text + "a").runs.last?.style.color == expected)
    }

    @Test func `nine places are those of the number keys, and older ones are others`() {
        let rows: [TimedText.Place.Vertical] = [.bottom, .middle, .top]
        let columns: [TimedText.Place.Horizontal] = [.left, .center, .right]
        for number in 1...9 {
            let place = TimedText.Place(
                horizontal: columns[(number - 1) % 3], vertical: rows[(number - 1) / 3])
            #expect(read("{\\an\(number)}a").place == place)
        }
        let older = [(1, 1), (2, 2), (3, 3), (5, 7), (6, 8), (7, 9), (9, 4), (10, 5), (11, 6)]
        for (number, same) in older {
            #expect(read("{\\a\(number)}a").place == read("{\\an\(same)}a").place)
        }
        for text in ["\\an0", "\\an10", "\\an", "\\a4", "\\a8", "\\a0", "\\a12", "\\anx", "\\an-1"]
        {
            #expect(read("{\(text)}a").place == TimedText.Place())
        }
        #expect(read(#"{\an8\an2}a"#).place.vertical == .top)
    }

    @Test func `a line begins with its named style, and white at the bottom is nobody's choice`() {
        let loud = read("a{\\b0}b{\\c&HFFFFFF&}c{\\c}d", "Loud")
        #expect(marked(loud) == ["b:a", ":b", ":c", ":d"])
        #expect(loud.runs.map(\.style.color) == [0xFF0000, 0xFF0000, 0xFFFFFF, 0xFF0000])
        #expect(loud.place == TimedText.Place(horizontal: .center, vertical: .top))
        #expect(read("a", "*Loud").runs == read("a", "Loud").runs)
        #expect(read("a", "Unknown").runs == [TimedText.Run("a")])
        #expect(read("a").place == TimedText.Place())
    }

    @Test func `older scripts count places in their own way`() {
        let old = DialogueStyles(
            header: "[V4 Styles]\nformat: Alignment, Name, PrimaryColour, Bold\n"
                + "style: 6,Top,65535,-1")
        #expect(old["Top"].place == TimedText.Place(horizontal: .center, vertical: .top))
        #expect(old["Top"].style.color == 0xFFFF00 && old["Top"].style.isBold)
    }

    @Test(arguments: [
        "", "[V4+ Styles]", "Style: a,b", "[V4+ Styles]\nStyle: a",
        "[V4+ Styles]\nFormat:\nStyle:,,,",
        "[V4+ Styles]\nFormat: Name, Name, Bold\nStyle: a,b,99999999999999999999,c",
    ])
    func `a header that is nonsense says nothing`(header: String) {
        #expect(DialogueStyles(header: header)["a"] == DialogueStyles.Entry())
    }

    @Test func `a header holds so many styles and no more`() {
        let names = (0..<DialogueStyles.most + 1).map { "Style: s\($0),-1\n" }
        let styles = DialogueStyles(header: "[V4+ Styles]\nFormat: Name, Bold\n" + names.joined())
        #expect(styles["s\(DialogueStyles.most - 1)"].style.isBold)
        #expect(!styles["s\(DialogueStyles.most)"].style.isBold)
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `no text is beyond reading, and none gets longer`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let parts = [
            "{", "}", "\\", "\\an", "\\b", "\\p1", "\\p0", "\\c&H", "(", ")", "9", "a", "N",
            "\u{2060}", "é", "🎵", "\\t(", "\\r", "\\1c", "\0",
        ]
        for length in 0..<200 {
            let text = (0..<length).map { _ in parts[Int(generator.next() % UInt64(parts.count))] }
                .joined()
            #expect(string(text).utf8.count <= text.utf8.count)
        }
    }

    /// Each brace looks for its end: ten times the text takes about ten times as long, not a hundred.
    @Test func `braces without an end cost no more than letters`() {
        func cost(_ text: String) -> Duration {
            (0..<3).map { _ in ContinuousClock().measure { _ = string(text) } }.min()!
        }
        let short = cost(String(repeating: "{", count: 20_000))
        let long = cost(String(repeating: "{", count: 200_000))
        #expect(long < short * 40, "\(short), \(long)")
    }
}
