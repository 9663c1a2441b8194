import TuttiFFmpegMedia

/// A picture as DEC's sixels: bands of six lines, and of each colour in a band a row of letters whose
/// six bits say which pixels have it (VT330/VT340 Programmer Reference Manual, volume 2, chapter 14).
enum SixelImage {
    /// Lines of a band.
    static let bandHeight = 6

    /// Shows a picture with its upper left corner at the cursor.
    static func showing(_ picture: Picture, colours: Int = SixelPalette.most) -> String {
        let palette = SixelPalette(for: picture, count: colours)
        // 0: pixels are square; 1: what is not set stays as it is.
        var text = "\u{1B}P0;1;0q\"1;1;\(picture.width);\(picture.height)"
        for (number, colour) in palette.colours.enumerated() {
            // In percent.
            let levels = colour.map { ($0 * 100 + 127) / 255 }
            text += "#\(number);2;\(levels[0]);\(levels[1]);\(levels[2])"
        }
        // No end of a band at the end of all: the screen could scroll.
        let bands = stride(from: 0, to: picture.height, by: bandHeight).map {
            band(of: picture, from: $0, palette)
        }
        return text + bands.joined(separator: "-") + "\u{1B}\\"
    }

    private static func band(
        of picture: Picture, from top: Int, _ palette: SixelPalette
    ) -> String {
        var rows = [[UInt8]?](repeating: nil, count: palette.colours.count)
        for line in 0..<min(bandHeight, picture.height - top) {
            for x in 0..<picture.width {
                let number = palette.place(
                    of: picture.pixels, at: 3 * ((top + line) * picture.width + x))
                if rows[number] == nil {
                    rows[number] = [UInt8](repeating: 0, count: picture.width)
                }
                rows[number]![x] |= 1 << UInt8(line)
            }
        }
        return rows.enumerated().compactMap { number, row in
            row.map { "#\(number)" + runs($0) }
        }.joined(separator: "$")
    }

    /// Repeated letters as their number, where that is shorter; what is empty at the end is left out.
    private static func runs(_ row: [UInt8]) -> String {
        let last = row.lastIndex { $0 != 0 } ?? -1
        var text: [UInt8] = []
        var x = 0
        while x <= last {
            var end = x + 1
            while end <= last, row[end] == row[x] { end += 1 }
            let letter = 0x3F + row[x]
            if end - x > 3 {
                text += Array("!\(end - x)".utf8) + [letter]
            } else {
                text += repeatElement(letter, count: end - x)
            }
            x = end
        }
        return String(decoding: text, as: UTF8.self)
    }
}
