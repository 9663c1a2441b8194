/// SHA-256 of an asset's bytes: its name in every cache and every message.
///
/// Kept as four words so that it is a plain value without a heap allocation.
@frozen
public struct ContentHash: Hashable, Comparable, Sendable, BitwiseCopyable,
    CustomStringConvertible
{
    /// Bytes of a SHA-256.
    public static let byteCount = 32

    /// Big-endian words in the order of the bytes.
    public var words: (UInt64, UInt64, UInt64, UInt64)

    /// A hash from its words, big-endian, in the order of the bytes.
    public init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

    /// A hash from its 32 bytes.
    public init(bytes: some Collection<UInt8>) throws(InvalidValue) {
        guard bytes.count == Self.byteCount else {
            throw InvalidValue("content hash", "has \(bytes.count) bytes instead of 32")
        }
        var four: [UInt64] = [0, 0, 0, 0]
        for (position, byte) in bytes.enumerated() {
            four[position / 8] = four[position / 8] << 8 | UInt64(byte)
        }
        words = (four[0], four[1], four[2], four[3])
    }

    /// A hash from 64 hexadecimal digits of either case.
    public init(hex: String) throws(InvalidValue) {
        let digits = hex.utf8.map { Self.value(ofDigit: $0) }
        guard digits.count == 64, !digits.contains(nil) else {
            throw InvalidValue("content hash", "is not 64 hexadecimal digits")
        }
        var bytes: [UInt8] = []
        for position in stride(from: 0, to: 64, by: 2) {
            bytes.append((digits[position] ?? 0) << 4 | (digits[position + 1] ?? 0))
        }
        try self.init(bytes: bytes)
    }

    /// The 32 bytes, in order.
    public var bytes: [UInt8] {
        [words.0, words.1, words.2, words.3].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
        }
    }

    /// 64 lower-case hexadecimal digits.
    public var hex: String {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    public var description: String { hex }

    public static func == (a: ContentHash, b: ContentHash) -> Bool { a.words == b.words }
    public static func < (a: ContentHash, b: ContentHash) -> Bool { a.words < b.words }
    public func hash(into hasher: inout Hasher) {
        // The words are already evenly spread, but a peer may have chosen them: hash all four.
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }

    private static func value(ofDigit digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
