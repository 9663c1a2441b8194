import Crypto

/// A code that lets one node in, once, without a person at the other end: for scripts and cameras.
///
/// 16 bytes that nobody can guess. Its text is the same for ever: 20 bytes (a 1 for the version, the
/// secret, the ``SlipCheck`` of both) as 32 characters of ``Base32`` in eight groups of four; in a QR
/// symbol without groups and after `TUTTI:`, which makes 38 characters, as many as version 2 takes
/// at level M.
///
/// It never goes over the wire. What does is a proof of having it, an HMAC-SHA-256 over the keys of
/// both sides as TLS has seen them: who stands in between has another key and cannot use it.
package struct Invite: Hashable, Sendable, CustomStringConvertible {
    package static let secretByteCount = 16
    static let proofByteCount = 32
    static let numberByteCount = 8
    private static let version: UInt8 = 1
    private static let mark = "TUTTI:"

    private let secret: [UInt8]

    /// - Parameter secret: 16 bytes that nobody can guess.
    package init(secret: [UInt8]) throws(TrustError) {
        guard secret.count == Self.secretByteCount else {
            throw TrustError(
                .malformed, "invite",
                "needs \(Self.secretByteCount) bytes of chance, not \(secret.count)")
        }
        self.secret = secret
    }

    /// The invite that a person has typed or a camera has read: in any case, with or without hyphens,
    /// blanks and the mark.
    package init(_ text: String) throws(TrustError) {
        let start = text.drop { $0 == " " }
        let hasMark = start.prefix(Self.mark.count).uppercased() == Self.mark
        let bytes = try Base32.bytes(
            String(hasMark ? start.dropFirst(Self.mark.count) : start),
            count: 1 + Self.secretByteCount + SlipCheck.byteCount, "invite")
        let body = Array(bytes.dropLast(SlipCheck.byteCount))
        guard SlipCheck.bytes(of: body) == Array(bytes.suffix(SlipCheck.byteCount)) else {
            throw TrustError(.malformed, "invite", "has a slip somewhere; type it once more")
        }
        guard body[0] == Self.version else {
            throw TrustError(
                .otherVersion, "invite",
                "is of version \(body[0]) and this Tutti reads \(Self.version); update this machine"
            )
        }
        secret = Array(body.dropFirst())
    }

    /// The code, for a person to type.
    package var text: String { Base32.grouped(characters) }

    /// Says nothing of the code: this is what gets into logs.
    package var description: String { "an invite" }

    /// For a QR symbol in alphanumeric mode.
    package var symbolText: String { Self.mark + characters }

    private var characters: String {
        let body = [Self.version] + secret
        return Base32.text(body + SlipCheck.bytes(of: body))
    }

    /// What it is asked for by; says nothing about the secret.
    var number: [UInt8] { Array(code(Label.inviteNumber).prefix(Self.numberByteCount)) }

    /// That the candidate with this key has the code, and means the member with that one.
    func candidateProof(candidate: Fingerprint, member: Fingerprint) -> [UInt8] {
        code(Label.inviteCandidate + candidate.bytes + member.bytes)
    }

    /// That the member has it too: the candidate joins nobody else.
    func memberProof(candidate: Fingerprint, member: Fingerprint) -> [UInt8] {
        code(Label.inviteMember + candidate.bytes + member.bytes)
    }

    private func code(_ bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: secret)))
    }

    package static func == (a: Self, b: Self) -> Bool { a.secret.isSecretlyEqual(to: b.secret) }
}
