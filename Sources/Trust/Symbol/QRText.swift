/// A text as the data codewords of a symbol: alphanumeric mode, two characters in eleven bits.
enum QRText {
    static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:".utf8)
    /// Mode and count of characters before the text: 4 and 9 bits.
    private static let headBits = 13

    static func values(of text: String) throws(TrustError) -> [Int] {
        guard text.utf8.count <= QRSymbol.longest else {
            throw TrustError(
                .tooMany, "QR symbol",
                "takes \(QRSymbol.longest) characters, not \(text.utf8.count); give a shorter text")
        }
        var values: [Int] = []
        for character in text.utf8 {
            guard let value = alphabet.firstIndex(of: character) else {
                throw TrustError(
                    .malformed, "QR symbol",
                    "holds digits, capital letters and  $%*+-./: alone; write the text in those")
            }
            values.append(value)
        }
        return values
    }

    static func fits(_ count: Int, in version: Int) -> Bool {
        let bits = headBits + count / 2 * 11 + count % 2 * 6
        return bits <= QRLayout(version: version).dataCount * 8
    }

    /// - Parameter count: codewords there must be; the text fits.
    static func codewords(_ values: [Int], count: Int) -> [UInt8] {
        var bits: [Bool] = []
        func append(_ value: Int, _ width: Int) {
            for bit in (0..<width).reversed() { bits.append(value >> bit & 1 == 1) }
        }
        append(0b0010, 4)
        append(values.count, 9)
        for start in stride(from: 0, to: values.count, by: 2) {
            if start + 1 < values.count {
                append(values[start] * 45 + values[start + 1], 11)
            } else {
                append(values[start], 6)
            }
        }
        // The end: four zeros or what there is room for, then up to a whole codeword.
        append(0, min(4, count * 8 - bits.count))
        append(0, (8 - bits.count % 8) % 8)
        var codewords = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
        var isEven = true
        while codewords.count < count {
            codewords.append(isEven ? 0xEC : 0x11)
            isEven.toggle()
        }
        return codewords
    }
}
