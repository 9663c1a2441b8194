/// Bytes as characters that a person can read out and type: five bits each.
///
/// Crockford's alphabet: digits and capital letters without I, L, O and U. Who types an O means a
/// zero, who types an I or an L means a one, and nobody has to care about case. All of it can be
/// written in a QR symbol's alphanumeric mode, which takes 5.5 bits for a character instead of 8.
enum Base32 {
    static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// - Parameter bytes: a multiple of five, so that no bit is left over and each value has one
    ///   text.
    static func text(_ bytes: [UInt8]) -> String {
        precondition(bytes.count % 5 == 0, "\(bytes.count) bytes leave bits over")
        var characters: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 5) {
            let word = bytes[start..<start + 5].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            for shift in stride(from: UInt64(35), through: 0, by: -5) {
                characters.append(alphabet[Int(word >> shift & 31)])
            }
        }
        return String(decoding: characters, as: UTF8.self)
    }

    /// The bytes of a text as a person has typed it: hyphens and blanks are not counted.
    ///
    /// - Parameters:
    ///   - count: bytes there must be, a multiple of five.
    ///   - subject: what the text is, for the error.
    static func bytes(
        _ text: String, count: Int, _ subject: String
    ) throws(TrustError) -> [UInt8] {
        let expected = count / 5 * 8
        var values: [UInt8] = []
        for character in text.utf8 {
            if character == UInt8(ascii: "-") || character == UInt8(ascii: " ") { continue }
            guard let value = value(of: character) else {
                let shown = Unicode.Scalar(character)
                throw TrustError(
                    .malformed, subject,
                    "holds \(shown.isASCII ? shown.escaped(asASCII: true) : "a letter of no alphabet we use"), "
                        + "which is none of its characters; type it once more")
            }
            guard values.count < expected else {
                throw TrustError(
                    .malformed, subject, "has more than \(expected) characters; type it once more")
            }
            values.append(value)
        }
        guard values.count == expected else {
            throw TrustError(
                .malformed, subject,
                "has \(values.count) characters instead of \(expected); type all of it")
        }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: values.count, by: 8) {
            let word = values[start..<start + 8].reduce(UInt64(0)) { $0 << 5 | UInt64($1) }
            for shift in stride(from: UInt64(32), through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return bytes
    }

    /// In groups of four, as people read numbers.
    static func grouped(_ text: String) -> String {
        var grouped = ""
        for (position, character) in text.enumerated() {
            if position > 0, position % 4 == 0 { grouped += "-" }
            grouped.append(character)
        }
        return grouped
    }

    private static func value(of character: UInt8) -> UInt8? {
        let capital = (97...122).contains(character) ? character - 32 : character
        let meant: UInt8 =
            switch capital {
            case UInt8(ascii: "O"): UInt8(ascii: "0")
            case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
            default: capital
            }
        return alphabet.firstIndex(of: meant).map { UInt8($0) }
    }
}

/// Finds slips of the hand in a text that carries it: the CRC-24 of OpenPGP (RFC 9580, 6.1.1).
///
/// Every change within 24 bits in a row is found for certain: one character, two that changed
/// places, up to four next to one another. Of any other change one in 16 million is not. Against
/// intent it is nothing, and need not be.
enum SlipCheck {
    static let byteCount = 3
    private static let polynomial: UInt32 = 0x86_4CFB

    static func bytes(of bytes: [UInt8]) -> [UInt8] {
        var remainder: UInt32 = 0xB7_04CE
        for byte in bytes {
            remainder ^= UInt32(byte) << 16
            for _ in 0..<8 {
                remainder <<= 1
                if remainder & 0x100_0000 != 0 { remainder ^= 0x100_0000 | polynomial }
            }
        }
        return [16, 8, 0].map { UInt8(truncatingIfNeeded: remainder >> $0) }
    }
}
