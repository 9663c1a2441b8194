/// Names of files are bytes, in whatever encoding their maker used; a `String` holds Unicode only,
/// and where it repairs the rest the file is not found any more.
///
/// So a path is carried as a `String` in which each byte that is no part of valid UTF-8 stands as
/// one scalar of a private plane, ``FileName/escapes``. Everything else stays what it is, but for
/// these scalars themselves, which are written byte by byte in the same way: every name of a file
/// has one text, and every text leads back to the very bytes. They are made at each C call, by
/// ``Swift/String/fileNameBytes`` or ``Swift/String/cFileName``; people are shown
/// ``Swift/String/readableFileName``.
public enum FileName {
    /// One for each byte above ASCII. What lies in this plane is nobody's letter.
    static let escapes: ClosedRange<UInt32> = 0x10_F780...0x10_F7FF
    private static let base: UInt32 = 0x10_F700

    static func escape(_ byte: UInt8) -> Unicode.Scalar {
        Unicode.Scalar(base + UInt32(byte)) ?? Unicode.Scalar(0xFFFD)!
    }

    static func byte(of scalar: Unicode.Scalar) -> UInt8? {
        escapes.contains(scalar.value) ? UInt8(truncatingIfNeeded: scalar.value) : nil
    }
}

extension String {
    /// The text of a file's name or path.
    ///
    /// - Parameter bytes: as the kernel has them, without the zero at the end.
    public init(fileName bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        if let text = String(validating: bytes, as: UTF8.self),
            !text.unicodeScalars.contains(where: { FileName.byte(of: $0) != nil })
        {
            self = text
            return
        }
        self.init(String.UnicodeScalarView(Self.scalars(ofFileName: bytes)))
    }

    private static func scalars(ofFileName bytes: [UInt8]) -> [Unicode.Scalar] {
        var scalars: [Unicode.Scalar] = []
        var parser = Unicode.UTF8.ForwardParser()
        var source = bytes.makeIterator()
        var place = 0
        while true {
            switch parser.parseScalar(from: &source) {
            case .emptyInput: return scalars
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                if FileName.byte(of: scalar) == nil {
                    scalars.append(scalar)
                } else {
                    scalars += encoded.map(FileName.escape)
                }
                place += encoded.count
            case .error(let length):
                scalars += bytes[place..<place + length].map(FileName.escape)
                place += length
            }
        }
    }

    /// The bytes that the kernel knows the file by.
    public var fileNameBytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        for scalar in unicodeScalars {
            if let byte = FileName.byte(of: scalar) {
                bytes.append(byte)
            } else {
                bytes += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
        return bytes
    }

    /// The same for a C call, with a zero at the end.
    public var cFileName: [CChar] { fileNameBytes.map { CChar(bitPattern: $0) } + [0] }

    /// For people: bytes that are no UTF-8 are read as Windows-1252, which most of them are.
    public var readableFileName: String {
        guard unicodeScalars.contains(where: { FileName.byte(of: $0) != nil }) else { return self }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.map { scalar in
                    FileName.byte(of: scalar).map(Windows1252.scalar(of:)) ?? scalar
                }))
    }

    /// Text of others whose encoding nobody says: UTF-8 where it is, else Windows-1252, which has
    /// Latin-1 in it.
    public init(unlabelled bytes: some Collection<UInt8>) {
        self =
            String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map(Windows1252.scalar(of:))))
    }

    /// With the control characters that Windows-1252 was taken for when it was called Latin-1 as
    /// the letters that were meant.
    public var withWindowsLetters: String {
        guard unicodeScalars.contains(where: { (0x80...0x9F).contains($0.value) }) else {
            return self
        }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.map { scalar in
                    (0x80...0x9F).contains(scalar.value)
                        ? Windows1252.scalar(of: UInt8(truncatingIfNeeded: scalar.value)) : scalar
                }))
    }
}

/// Latin-1 with letters and punctuation where that has control characters.
enum Windows1252 {
    /// Of bytes 0x80 to 0x9F; five of them mean nothing.
    private static let upper: [UInt32] = [
        0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD,
        0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178,
    ]

    static func scalar(of byte: UInt8) -> Unicode.Scalar {
        guard (0x80...0x9F).contains(byte) else { return Unicode.Scalar(byte) }
        return Unicode.Scalar(upper[Int(byte - 0x80)]) ?? Unicode.Scalar(0xFFFD)!
    }
}
