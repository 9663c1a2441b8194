/// "I have an invite": of a candidate, on a link whose keys nobody vouches for yet.
///
/// 42 bytes: version 1, kind 1, the invite's number, 8 bytes, the proof, 32 bytes.
package struct InviteClaim: Equatable, Sendable {
    package static let byteCount = 2 + Invite.numberByteCount + Invite.proofByteCount
    static let version: UInt8 = 1

    let number: [UInt8]
    let proof: [UInt8]

    /// - Parameters:
    ///   - own: the candidate's key.
    ///   - peer: the key of the certificate that the other side has proved to have in this link.
    package init(_ invite: Invite, own: PublicKey, peer: PublicKey) {
        number = invite.number
        proof = invite.candidateProof(candidate: own.fingerprint, member: peer.fingerprint)
    }

    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count == Self.byteCount else {
            throw TrustError(
                .malformed, "invite claim",
                "has \(bytes.count) bytes instead of \(Self.byteCount)")
        }
        var reader = ByteReader(bytes, "invite claim")
        try reader.head(kind: 1)
        number = try reader.bytes(Invite.numberByteCount, "number")
        proof = try reader.bytes(Invite.proofByteCount, "proof")
    }

    package var bytes: [UInt8] { [Self.version, 1] + number + proof }
}

/// "Welcome": of the member that has made the invite.
///
/// Version 1, kind 2, the proof, 32 bytes, and the household with the candidate in it.
package struct InviteGrant: Equatable, Sendable {
    package static let longest = 2 + Invite.proofByteCount + Household.longest

    let proof: [UInt8]
    let household: [UInt8]

    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count <= Self.longest else {
            throw TrustError(
                .tooMany, "invite grant", "has \(bytes.count) bytes of at most \(Self.longest)")
        }
        var reader = ByteReader(bytes, "invite grant")
        try reader.head(kind: 2)
        proof = try reader.bytes(Invite.proofByteCount, "proof")
        household = try reader.bytes(reader.remaining, "household")
    }

    init(proof: [UInt8], household: [UInt8]) {
        self.proof = proof
        self.household = household
    }

    package var bytes: [UInt8] { [InviteClaim.version, 2] + proof + household }

    /// The household that the candidate belongs to now.
    ///
    /// - Throws: where the other side does not know the invite, or has not let the candidate in.
    package func household(
        by invite: Invite, own: PublicKey, peer: PublicKey
    ) throws(TrustError) -> Household {
        let expected = invite.memberProof(candidate: own.fingerprint, member: peer.fingerprint)
        guard proof.isSecretlyEqual(to: expected) else {
            throw TrustError(
                .notAuthentic, "invite",
                "the other side does not know it: it is not whom the invite is from")
        }
        let household = try Household(bytes: household)
        guard household.member(own.fingerprint) != nil, household.member(peer.fingerprint) != nil
        else {
            throw TrustError(
                .notAuthentic, "household",
                "does not have both of us as members; ask for another invite")
        }
        return household
    }
}

extension ByteReader {
    fileprivate mutating func head(kind: UInt8) throws(TrustError) {
        let version: UInt8 = try number("version")
        guard version == InviteClaim.version else {
            throw TrustError(
                .otherVersion, subject,
                "is of version \(version) and this Tutti speaks \(InviteClaim.version); "
                    + "update the older machine")
        }
        let found: UInt8 = try number("kind")
        guard found == kind else {
            throw TrustError(.malformed, "\(subject).kind", "is \(found) instead of \(kind)")
        }
    }
}
