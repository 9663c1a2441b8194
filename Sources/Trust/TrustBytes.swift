/// Reads numbers, texts and blocks from bytes that anybody may have written.
///
/// Big-endian. Never reads past the end, never takes a claimed length for granted.
struct ByteReader {
    private var rest: ArraySlice<UInt8>
    /// What is read, for the errors.
    let subject: String

    init(_ bytes: some Collection<UInt8>, _ subject: String) {
        rest = Array(bytes)[...]
        self.subject = subject
    }

    var remaining: Int { rest.count }

    mutating func bytes(_ count: Int, _ part: String) throws(TrustError) -> [UInt8] {
        guard count >= 0, rest.count >= count else {
            throw TrustError(
                .malformed, "\(subject).\(part)",
                "is cut off: \(rest.count) bytes of \(count) are there")
        }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func number<T: FixedWidthInteger & UnsignedInteger>(
        _ part: String, as: T.Type = T.self
    ) throws(TrustError) -> T {
        try bytes(T.bitWidth / 8, part).reduce(T(0)) { $0 << 8 | T($1) }
    }

    /// Nothing may follow: bytes that nobody reads are a place to hide something.
    func end() throws(TrustError) {
        guard rest.isEmpty else {
            throw TrustError(.malformed, subject, "has \(rest.count) bytes too many")
        }
    }
}

extension [UInt8] {
    /// Appends a number, big-endian.
    mutating func append<T: FixedWidthInteger & UnsignedInteger>(number: T) {
        for shift in stride(from: T.bitWidth - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: number >> T(shift)))
        }
    }

    /// Whether two secrets are the same, in a time that does not say how far they agree.
    ///
    /// The lengths are no secret.
    func isSecretlyEqual(to other: some Collection<UInt8>) -> Bool {
        guard count == other.count else { return false }
        return zip(self, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// Words that tell what a hash or a key is for, so that none can stand in for another.
enum Label {
    static let record = Array("tutti member record 1".utf8)
    static let commitment = Array("tutti pairing commit 1".utf8)
    static let digits = Array("tutti pairing digits 1".utf8)
    static let inviteNumber = Array("tutti invite number 1".utf8)
    static let inviteCandidate = Array("tutti invite candidate 1".utf8)
    static let inviteMember = Array("tutti invite member 1".utf8)
    static let datagram = Array("tutti datagram 1".utf8)
}
