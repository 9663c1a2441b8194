/// Letters and digits in other clothes, by Unicode's compatibility mappings (UAX #15): full-width
/// `ｆ１`, mathematical `𝐟𝟏`, superscript `¹`, circled `①`, the ligature `ﬁ`, half-width `ｷｯﾁﾝ`.
///
/// The standard library normalises canonical forms alone, and Foundation's tables would multiply the
/// size of the program. So this has what stands for ASCII and for katakana: what a keyboard or an
/// attacker makes of the name of a room. Letters of other scripts that only look alike (Cyrillic
/// `а`) are other letters to Unicode, too.
enum CompatibilityForms {
    /// What a scalar stands for, in lower case; `nil` for one that stands for itself.
    static func plain(of scalar: Unicode.Scalar) -> String? {
        let value = scalar.value
        guard value >= 0x80 else { return nil }
        return switch value {
        case 0xFF01...0xFF5E: character(value - 0xFF01 + 0x21)
        // Mathematical alphabets, each of 26 capitals and 26 small letters; then digits.
        case 0x1D400...0x1D6A3: letter((value - 0x1D400) % 26)
        case 0x1D7CE...0x1D7FF: "\((value - 0x1D7CE) % 10)"
        case 0x1FBF0...0x1FBF9: "\(value - 0x1FBF0)"
        case 0x2460...0x2473: "\(value - 0x2460 + 1)"
        case 0x2474...0x2487: "(\(value - 0x2474 + 1))"
        case 0x2488...0x249B: "\(value - 0x2488 + 1)."
        case 0x249C...0x24B5: "(\(letter(value - 0x249C)))"
        case 0x24B6...0x24E9: letter((value - 0x24B6) % 26)
        case 0x24EA: "0"
        case 0x2160...0x216B: romanNumbers[Int(value - 0x2160)]
        case 0x2170...0x217B: romanNumbers[Int(value - 0x2170)]
        case 0x1F110...0x1F129: "(\(letter(value - 0x1F110)))"
        case 0x1F130...0x1F149: letter(value - 0x1F130)
        case 0xFF65...0xFF9F: String(katakana[Int(value - 0xFF65)])
        default: others[scalar]
        }
    }

    private static func character(_ value: UInt32) -> String {
        Unicode.Scalar(value).map { String($0).lowercased() } ?? ""
    }

    private static func letter(_ place: UInt32) -> String {
        character(UInt32(UInt8(ascii: "a")) + place)
    }

    private static let romanNumbers = [
        "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii",
    ]

    /// From U+FF65 on.
    private static let katakana = Array(
        "・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u{3099}\u{309A}"
            .unicodeScalars)

    /// The letter or sign first, then what stands for it.
    private static let singles = [
        "(⁽₍", ")⁾₎", "+⁺₊", ".․", "0⁰₀", "1¹₁", "2²₂", "3³₃", "4⁴₄", "5⁵₅", "6⁶₆", "7⁷₇", "8⁸₈",
        "9⁹₉", "=⁼₌", "-﹣", "aªᴬᵃₐ", "bᴮᵇℬ", "cᶜℂℭⅭⅽ", "dᴰᵈⅅⅆⅮⅾ", "eᴱᵉₑℯℰⅇ", "fᶠℱ", "gᴳᵍℊ",
        "hʰᴴₕℋℌℍℎ", "iᴵᵢⁱℐℑℹⅈ", "jʲᴶⅉⱼ", "kᴷᵏₖ", "lˡᴸₗℒℓⅬⅼ", "mᴹᵐₘℳⅯⅿ", "nᴺⁿₙℕ", "oºᴼᵒₒℴ",
        "pᴾᵖₚℙ", "qℚ", "rʳᴿᵣℛℜℝ", "sſˢₛ", "tᵀᵗₜ", "uᵁᵘᵤ", "vᵛᵥⱽ", "wʷᵂ", "xˣₓ", "yʸ", "zᶻℤℨ",
    ]

    private static let groups: [(Unicode.Scalar, String)] = [
        ("Ĳ", "ij"), ("ĳ", "ij"), ("Ǉ", "lj"), ("ǈ", "lj"), ("ǉ", "lj"), ("Ǌ", "nj"), ("ǋ", "nj"),
        ("ǌ", "nj"), ("Ǳ", "dz"), ("ǲ", "dz"), ("ǳ", "dz"), ("‥", ".."), ("…", "..."), ("‼", "!!"),
        ("№", "no"), ("℠", "sm"), ("℡", "tel"), ("™", "tm"), ("ﬀ", "ff"), ("ﬁ", "fi"), ("ﬂ", "fl"),
        ("ﬃ", "ffi"), ("ﬄ", "ffl"), ("ﬅ", "st"), ("ﬆ", "st"),
    ]

    private static let others: [Unicode.Scalar: String] = {
        var table: [Unicode.Scalar: String] = [:]
        for single in singles {
            guard let plain = single.unicodeScalars.first else { continue }
            for form in single.unicodeScalars.dropFirst() { table[form] = String(plain) }
        }
        for (form, plain) in groups { table[form] = plain }
        return table
    }()
}
