import TuttiFFmpegMedia

/// A picture in the words of kitty's graphics protocol.
enum KittyImage {
    /// Longest part of a transfer, in letters of base64.
    private static let chunk = 4_096

    /// Shows a picture with its upper left corner at the cursor, which stays where it is. One of the
    /// same number goes.
    ///
    /// - Parameters:
    ///   - number: of the picture in its terminal, at least 1; other programs have theirs there.
    ///   - cells: columns and lines to fill where a pixel of the picture is not one of the screen.
    static func showing(_ picture: Picture, number: UInt32, cells: (columns: Int, rows: Int)?)
        -> String
    {
        let letters = Array(base64(picture.pixels).utf8)
        let size = cells.map { ",c=\($0.columns),r=\($0.rows)" } ?? ""
        var text = ""
        var first =
            "a=T,f=24,t=d,i=\(number),p=1,s=\(picture.width),v=\(picture.height)\(size),C=1,"
        for start in stride(from: 0, to: letters.count, by: chunk) {
            let part = letters[start..<min(start + chunk, letters.count)]
            let goesOn = part.endIndex < letters.count
            // q=2: it says nothing back, which would be read as keys.
            text += "\u{1B}_G\(first)q=2,m=\(goesOn ? 1 : 0);"
            text += String(decoding: part, as: UTF8.self) + "\u{1B}\\"
            first = ""
        }
        return text
    }

    /// Takes it away, and its memory.
    static func deleting(number: UInt32) -> String { "\u{1B}_Ga=d,d=I,i=\(number),q=2\u{1B}\\" }

    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Of whole pixels: three bytes are four letters, so nothing has to be filled up (RFC 4648, 4).
    private static func base64(_ bytes: [UInt8]) -> String {
        var letters: [UInt8] = []
        letters.reserveCapacity(bytes.count / 3 * 4)
        for pixel in stride(from: 0, to: bytes.count, by: 3) {
            let bits =
                Int(bytes[pixel]) << 16 | Int(bytes[pixel + 1]) << 8 | Int(bytes[pixel + 2])
            for shift in [18, 12, 6, 0] { letters.append(alphabet[bits >> shift & 63]) }
        }
        return String(decoding: letters, as: UTF8.self)
    }
}
