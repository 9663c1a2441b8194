import Testing
import TuttiChance

@testable import TuttiGroupControl

@Suite struct `Text of others` {
    /// What each has to do with a terminal: see ECMA-48 and Unicode's bidirectional algorithm.
    static let unseen: [Unicode.Scalar] = [
        "\u{1B}", "\u{7}", "\u{8}", "\u{0}", "\u{7F}", "\u{9B}", "\u{9D}", "\u{AD}", "\u{34F}",
        "\u{61C}", "\u{115F}", "\u{180E}", "\u{200B}", "\u{200C}", "\u{200D}", "\u{200E}",
        "\u{200F}", "\u{202A}", "\u{202E}", "\u{2060}", "\u{2066}", "\u{2069}", "\u{3164}",
        "\u{FE0F}", "\u{FEFF}", "\u{FFA0}", "\u{FFF9}", "\u{E0041}", "\u{E0100}",
    ]

    @Test(arguments: unseen)
    func `what cannot be seen or moves the cursor is left out`(scalar: Unicode.Scalar) {
        #expect("a\(scalar)b".shown() == "ab")
        #expect("\(scalar)".shown() == "")
    }

    @Test(arguments: ["\n", "\r\n", "\t", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}"])
    func `what breaks a line becomes a space`(end: String) {
        let text = "a\(end)warning tutti: forged".shown()
        #expect(text.unicodeScalars.allSatisfy { $0 == " " || $0.value > 32 })
        #expect(text.hasPrefix("a ") && text.hasSuffix("warning tutti: forged"))
        #expect("a\(end)".shown() == "a")
    }

    @Test(arguments: [
        ("http://nas/a.mp3", "http://nas/a.mp3"), ("http://nas:80/a", "http://nas:80/a"),
        ("http://[::1]:80/a", "http://[::1]:80/a"),
        ("https://ann:secret@nas:80/a?x=1", "https://ann:…@nas:80/a?x=1"),
        ("HTTP://ann:pw@nas/", "HTTP://ann:**@nas/"), ("http://ann@nas/", "http://ann@nas/"),
        ("http://a:b@c@nas/", "http://a:…@nas/"),
        (
            "cannot play b (http://nas/rest?u=ann&t=26719a1196d2a940&s=c19b2d&v=1.16.1).",
            "cannot play b (http://nas/rest?u=ann&t=2671…&s=c…&v=1…)."
        ),
        (
            "http://nas/a?26719a1196d2a940#access_token=12345678",
            "http://nas/a?2671…#access_token=12…"
        ),
        (
            "http://nas/a?k=a=bcdefgh \"http://x/?k=12345678\"",
            "http://nas/a?k=a=…  \"http://x/?k=12…\""
        ),
        ("http://ann:secr", "http://ann:…"), ("tutti://ann:secret@nas?k=12345678", nil),
        ("http://nas/?k=ääääääää", "http://nas/?k=…"), ("http://n/\u{30A}a?k=12345678", nil),
    ])
    func `web addresses are shown without their secrets`(text: String, shown: String?) {
        let expected = (shown ?? text.replacing("n/\u{30A}a?k=12345678", with: "n/\u{30A}a?k=12…"))
        #expect(text.shown() == expected.replacing("  ", with: " "))
        #expect(text.shown().utf8.count <= text.utf8.count)
    }

    @Test func `no text of any scalars has one that is not for terminals, nor is it too long`() {
        var random = SplitMix64(seed: 1)
        for _ in 0..<2_000 {
            let scalars = (0..<40).compactMap { _ in
                Unicode.Scalar(
                    UInt32.random(
                        in: 0...(Bool.random(using: &random) ? 0x300 : 0x10FFFF),
                        using: &random))
            }
            let limit = Int.random(in: 0...200, using: &random)
            let text = String(String.UnicodeScalarView(scalars)).shown(limit: limit)
            #expect(text.utf8.count <= limit)
            #expect(text == text.shown(limit: limit), "shown twice is shown once")
            for scalar in text.unicodeScalars {
                #expect(!scalar.properties.isDefaultIgnorableCodePoint)
                let isSpace = scalar.properties.generalCategory == .spaceSeparator
                #expect(!isSpace || scalar == " ")
                #expect(scalar.properties.generalCategory != .control)
                #expect(scalar.properties.generalCategory != .format)
            }
        }
    }

    @Test func `marks need a letter, and do not pile up`() {
        #expect("\u{301}\u{302}a\u{301}".shown() == "a\u{301}")
        #expect(" \u{301}x".shown() == "x")
        let pile = "z" + String(repeating: "\u{30D}", count: 90)
        #expect(pile.shown().unicodeScalars.count == 1 + ShownText.mostMarks)
    }

    @Test func `a long text is cut with an ellipsis, whole characters of every script stay`() {
        let long = String(repeating: "音", count: 5_000).shown(limit: 100)
        #expect(long.utf8.count <= 100 && long.hasSuffix("音…"))
        let plain = "Küche · 厨房 · кухня · مطبخ · 🎵"
        #expect(plain.shown() == plain)
    }

    @Test(arguments: [
        "f1", "F1", "ｆ１", "Ｆ１", "f1\u{200B}", "\u{FEFF}f1", "f\u{2060}1", "𝐟𝟏", "𝓕𝟙", "f¹", "ⓕ①",
        " f1\u{A0}", "f1\u{2800}", "f1\u{202E}", "f1\u{E0041}", "f\u{FE0F}1",
    ])
    func `names that look the same are one room`(name: String) throws {
        let (room, plain) = (try RoomID(name), try RoomID("f1"))
        #expect(room == plain)
        #expect(room.hashValue == plain.hashValue)
        #expect(!(room < plain) && !(plain < room))
        #expect(Set([room, plain]).count == 1)
    }

    @Test func `the same letter in two ways of writing is one name`() throws {
        #expect(try RoomID("K\u{FC}che") == RoomID("ku\u{308}che"))
        #expect(try RoomID("ｷｯﾁﾝ") == RoomID("キッチン"))
        #expect(try RoomID("ﬁle Ⅳ") == RoomID("file iv"))
        #expect(try RoomID("living  room") == RoomID("Living room"))
        #expect(try RoomID("f1") != RoomID("f2"))
        #expect(try RoomID("bath") != RoomID("bäth"))
    }

    @Test(arguments: [
        "\u{200B}", "\u{2060}\u{FEFF}", "\u{202E}", "\u{2800}", "\u{301}", "\u{3164}",
    ])
    func `a name of nothing that can be seen is none`(name: String) {
        #expect(throws: InvalidValue.self) { try RoomID(name) }
    }

    @Test func `a name is shown as its owner writes it, without what cannot be seen`() throws {
        #expect(try RoomID("Küche\u{200B} 音\u{202E}").name == "Küche 音")
        #expect(try RoomID("ｆ１").name == "ｆ１")
    }
}
