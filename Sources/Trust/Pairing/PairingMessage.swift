/// What the two sides of a pairing tell each other, on a link whose keys nobody vouches for yet.
///
/// Big-endian: version 1, kind, then
///
///     1  commit   candidate: SHA-256 of its nonce and what it stands for, 32 bytes; its name
///     2  nonce    member: 32 bytes; its name
///     3  reveal   candidate: its nonce, 32 bytes
///     4  welcome  member: the household with the candidate in it, to the end
///     5  end      either: it is over, and nothing came of it
///
/// A name is its length in 16 bits, and UTF-8. A member says why nothing comes of it, where a person
/// has declined, by ``HouseholdMessage/refused(_:)``.
enum PairingMessage: Equatable, Sendable {
    case commit([UInt8], MemberName)
    case nonce([UInt8], MemberName)
    case reveal([UInt8])
    case welcome([UInt8])
    case end

    static let version: UInt8 = 1
    static let nonceByteCount = 32
    /// Longest message that a member reads: a commitment with the longest name.
    static let longestForMember = 2 + nonceByteCount + 2 + MemberName.longestBytes
    /// Longest message that a candidate reads: a welcome.
    static let longestForCandidate = 2 + Household.longest

    var bytes: [UInt8] {
        switch self {
        case .commit(let hash, let name):
            var bytes = [Self.version, 1] + hash
            bytes.append(name)
            return bytes
        case .nonce(let nonce, let name):
            var bytes = [Self.version, 2] + nonce
            bytes.append(name)
            return bytes
        case .reveal(let nonce): return [Self.version, 3] + nonce
        case .welcome(let household): return [Self.version, 4] + household
        case .end: return [Self.version, 5]
        }
    }

    init(bytes: [UInt8], limit: Int) throws(TrustError) {
        guard bytes.count <= limit else {
            throw TrustError(
                .tooMany, "pairing message", "has \(bytes.count) bytes of at most \(limit)")
        }
        var reader = ByteReader(bytes, "pairing message")
        let version: UInt8 = try reader.number("version")
        guard version == Self.version else {
            throw TrustError(
                .otherVersion, "pairing message",
                "is of version \(version) and this Tutti speaks \(Self.version); "
                    + "update the older machine")
        }
        let kind: UInt8 = try reader.number("kind")
        switch kind {
        case 1:
            let hash = try reader.bytes(Self.nonceByteCount, "commitment")
            self = .commit(hash, try reader.name())
        case 2:
            let nonce = try reader.bytes(Self.nonceByteCount, "nonce")
            self = .nonce(nonce, try reader.name())
        case 3: self = .reveal(try reader.bytes(Self.nonceByteCount, "nonce"))
        case 4: self = .welcome(try reader.bytes(reader.remaining, "household"))
        case 5: self = .end
        default: throw TrustError(.malformed, "pairing message.kind", "\(kind) is none")
        }
        try reader.end()
    }
}
