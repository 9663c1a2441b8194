import Crypto

/// Six digits that both sides of a pairing show, for a person to compare.
///
/// They are made of both keys as TLS has seen them, both names and a fresh nonce of each side. Who
/// stands between the two has a key of its own towards each, and so makes each side compute other
/// digits. They agree by chance, once in a million, and nothing but another try, before the eyes of
/// the person, gives another chance: the candidate is bound to its nonce before it sees the
/// member's, and the member's is out before it sees the candidate's.
package struct PairingDigits: Equatable, Sendable, CustomStringConvertible {
    package static let count = 6

    /// With leading zeros.
    package let text: String

    /// What goes into the digits and into the commitment.
    struct Ground: Equatable, Sendable {
        var candidate: Fingerprint
        var member: Fingerprint
        var candidateName: MemberName
    }

    /// - Parameter count: digits, 1 to 9; other than six only for tests that want chance to be seen.
    init(
        _ ground: Ground, candidateNonce: [UInt8], memberNonce: [UInt8], memberName: MemberName,
        count: Int = Self.count
    ) {
        var bytes = Label.digits + ground.candidate.bytes + ground.member.bytes
        bytes += candidateNonce + memberNonce
        bytes.append(ground.candidateName)
        bytes.append(memberName)
        // 64 bits taken modulo a million: no digits are likelier than others by more than 1e-13.
        let number = SHA256.hash(data: bytes).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let range = (0..<count).reduce(UInt64(1)) { range, _ in range * 10 }
        let digits = String(number % range)
        text = String(repeating: "0", count: count - digits.count) + digits
    }

    /// Whether a person has typed these, with or without blanks and hyphens.
    package func matches(_ typed: String) -> Bool {
        typed.utf8.count <= 2 * Self.count && typed.filter { $0 != " " && $0 != "-" } == text
    }

    /// As people read it: "482 913".
    package var description: String {
        "\(text.prefix(text.count / 2)) \(text.suffix((text.count + 1) / 2))"
    }

    /// What binds the candidate to its nonce.
    static func commitment(_ ground: Ground, nonce: [UInt8]) -> [UInt8] {
        var bytes = Label.commitment + ground.candidate.bytes + ground.member.bytes + nonce
        bytes.append(ground.candidateName)
        return Array(SHA256.hash(data: bytes))
    }
}
