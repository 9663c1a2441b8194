import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Text tracks and tags.
extension Harness {
    static let documents = [dialogue, styles, tags]

    private static let styleHeader =
        "[V4+ Styles]\nFormat: Name, Bold, Italic, PrimaryColour, Alignment\n"
        + "Style: Default,0,-1,&H00FFFFFF,2\nStyle: Top,1,0,&H0000FF&,8\n"
        + "[V4 Styles]\nFormat: Name, Alignment\nStyle: *Old,6\n"

    /// As FFmpeg hands out a line.
    private static let dialogue = Harness(
        name: "dialogue",
        seeds: {
            [
                #"0,0,Default,,0,0,0,,{\i1}word{\i0} \N{\an8\b700\c&HFF0000&}up\hthere"#,
                #"1,0,Top,,0,0,0,,{\p1}m 0 0 l 1 1{\p0}{remark}{\rOld}\{x\} {\t(\u1)\s1}y{"#,
                "2,0,*Top,,0,0,0,,a, b\u{2060}\\\u{2060}N",
            ].map { Array($0.utf8) }
        },
        longest: 16_384,
        check: .plain { bytes in
            let event = String(decoding: bytes, as: UTF8.self)
            guard let line = TextDecoder.Line(event) else { return }
            let styles = DialogueStyles(header: styleHeader)
            let text = DialogueText(line.text, style: line.style, in: styles)
            try expect(
                text.runs.allSatisfy { !$0.text.isEmpty }, "a run without letters: \(text.runs)")
            for (one, next) in zip(text.runs, text.runs.dropFirst()) {
                try expect(one.style != next.style, "two runs of one style: \(text.runs)")
            }
            let letters = text.runs.reduce(0) { $0 + $1.text.unicodeScalars.count }
            try expect(
                letters <= line.text.unicodeScalars.count, "\(letters) letters come out")
        })

    private static let styles = Harness(
        name: "dialogue-styles",
        seeds: {
            [Array(styleHeader.utf8), Array(styleHeader.replacing("\n", with: "\r\n").utf8)]
        },
        longest: 16_384,
        check: .plain { bytes in
            let header = String(decoding: bytes, as: UTF8.self)
            let styles = DialogueStyles(header: header)
            for name in ["Default", "*Old", "Top", ""] {
                let color = styles[name].style.color ?? 0
                try expect(color <= 0xFF_FFFF, "a colour of \(color)")
            }
            try expectEqual(styles, DialogueStyles(header: header), "read again")
        })

    private static let tags = Harness(
        name: "tags",
        seeds: { ["3", " 03/12", "7.1", "12345678901234567890"].map { Array($0.utf8) } },
        longest: 64,
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let number = MediaTags.number(text) else { return }
            try expect(number >= 0, "\(number) of \(text.debugDescription)")
        })
}
