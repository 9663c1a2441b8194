/// Who a node is: the SHA-256 of its public key's SubjectPublicKeyInfo.
///
/// The same 32 bytes can be had from any certificate with the same key, by any tool
/// (`openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum`). Its text is the same
/// for ever: 35 bytes (the hash, then its ``SlipCheck``) as 56 characters of ``Base32``, in
/// fourteen groups of four.
package struct Fingerprint: Hashable, Comparable, Sendable, CustomStringConvertible {
    package static let byteCount = 32

    package let bytes: [UInt8]

    /// - Parameter bytes: the 32 of a SHA-256.
    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count == Self.byteCount else {
            throw TrustError(
                .malformed, "fingerprint", "has \(bytes.count) bytes instead of \(Self.byteCount)")
        }
        self.bytes = bytes
    }

    /// - Parameter hash: 32 bytes.
    init(hash: [UInt8]) {
        precondition(hash.count == Self.byteCount)
        bytes = hash
    }

    /// The fingerprint that a person has typed: in any case, with or without hyphens and blanks.
    package init(_ text: String) throws(TrustError) {
        let all = try Base32.bytes(
            text, count: Self.byteCount + SlipCheck.byteCount, "fingerprint")
        let bytes = Array(all[..<Self.byteCount])
        guard SlipCheck.bytes(of: bytes) == Array(all[Self.byteCount...]) else {
            throw TrustError(
                .malformed, "fingerprint", "has a slip somewhere; compare it with the original")
        }
        self.bytes = bytes
    }

    package var description: String {
        Base32.grouped(Base32.text(bytes + SlipCheck.bytes(of: bytes)))
    }

    /// The first two groups, for a column of a table. Nothing is ever looked up by it: 40 bits can
    /// be had by trying.
    package var short: String { String(description.prefix(9)) }

    package static func < (a: Self, b: Self) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}
