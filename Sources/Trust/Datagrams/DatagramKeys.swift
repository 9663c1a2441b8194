import Crypto

/// The secret of a term: 32 bytes that its leader draws and hands to the members over TLS.
package struct GroupKey: Sendable, CustomStringConvertible {
    package static let byteCount = 32

    /// Of the key: a new one comes with every leader, and with every member that is removed. It only
    /// rises: the term of the leader's session is its upper half, see ``LeaderTags/firstTerm(of:)``.
    package let term: UInt64
    private let secret: SymmetricKey

    /// - Parameter secret: 32 bytes that nobody can guess.
    package init(term: UInt64, secret: [UInt8]) throws(TrustError) {
        guard secret.count == Self.byteCount else {
            throw TrustError(
                .malformed, "group key", "has \(secret.count) bytes instead of \(Self.byteCount)")
        }
        self.term = term
        self.secret = SymmetricKey(data: secret)
    }

    /// For whoever may have it: goes over a link that nobody else reads, and nowhere else.
    package var secretBytes: [UInt8] { secret.withUnsafeBytes { Array($0) } }

    /// Whether it is the same key, of the same term.
    package func isSame(as other: GroupKey) -> Bool {
        term == other.term && secret == other.secret
    }

    /// Says nothing of the secret: this is what gets into logs.
    package var description: String { "the group key of term \(term)" }

    /// HKDF-SHA-256 (RFC 5869): salt a label, info the channel's byte and the term. A tag for one
    /// purpose, direction or term is worth nothing in another.
    func tagKey(for channel: DatagramChannel) -> TagKey {
        var info = [channel.byte]
        info.append(number: term)
        return TagKey(
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: secret, salt: Label.datagram, info: info,
                outputByteCount: SHA256.byteCount))
    }
}

/// What a datagram is for, and which way it goes.
package struct DatagramChannel: Hashable, Sendable, CaseIterable {
    package enum Purpose: UInt8, CaseIterable, Sendable {
        /// Time requests and replies.
        case clock = 1
        /// Reference broadcasts.
        case beacon
        case commit
        /// A new leader that calls the rooms.
        case herald
    }

    package enum Direction: UInt8, CaseIterable, Sendable {
        case fromLeader = 0
        case toLeader = 0x80
    }

    package let purpose: Purpose
    package let direction: Direction

    package init(_ purpose: Purpose, _ direction: Direction) {
        self.purpose = purpose
        self.direction = direction
    }

    var byte: UInt8 { purpose.rawValue | direction.rawValue }

    package static let allCases = Purpose.allCases.flatMap { purpose in
        Direction.allCases.map { DatagramChannel(purpose, $0) }
    }
}

/// Makes tags: HMAC-SHA-256 cut to 16 bytes. Who guesses wins once in 2¹²⁸; RFC 2104 asks for half of
/// the hash at least.
struct TagKey: Sendable {
    static let tagByteCount = 16

    /// With the key mixed in: two of four blocks need not be hashed for each packet.
    private let prepared: HMAC<SHA256>

    init(_ key: SymmetricKey) { prepared = HMAC<SHA256>(key: key) }

    func tag(over bytes: ArraySlice<UInt8>) -> [UInt8] {
        var code = prepared
        code.update(data: bytes)
        return Array(code.finalize().prefix(Self.tagByteCount))
    }

    func isTag(_ tag: ArraySlice<UInt8>, over bytes: ArraySlice<UInt8>) -> Bool {
        self.tag(over: bytes).isSecretlyEqual(to: tag)
    }
}
