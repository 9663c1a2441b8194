import Crypto

/// One deed of a member: it founded the household, admitted somebody, removed a seat or renamed it.
///
/// A **seat** is one admission of one key. It is known by the number of its record, and who signs
/// says from which seat. So records hang together as a tree with the founding at its root, and a
/// key that is removed and admitted again sits on another seat: what it signed on the old one says
/// nothing about the new.
///
/// A record's number is the SHA-256 of what is signed, with 16 bytes of chance in it: nobody can
/// name a record, and with it a seat, before it is made. The signature is not part of it, because
/// for ECDSA anybody can make a second valid signature out of one.
package struct MemberRecord: Hashable, Sendable {
    package static let version: UInt8 = 1
    package static let saltByteCount = 16
    /// Records that a removal can list: twice what each of the most members would need.
    package static let longestSeal = 128
    /// Highest revision of a name. One more each time leads here only by somebody's ill will; higher
    /// ones are no names.
    package static let mostRevision: UInt32 = 65_536
    /// Bytes of a record with the longest seal.
    package static let longest = 4_352

    package struct Number: Hashable, Comparable, Sendable {
        package let bytes: [UInt8]

        package static func < (a: Self, b: Self) -> Bool {
            a.bytes.lexicographicallyPrecedes(b.bytes)
        }
    }

    package enum Deed: Hashable, Sendable {
        /// The founder admits itself; the only record without a seat to sign from.
        case found(PublicKey, MemberName)
        case admit(PublicKey, MemberName)
        /// Nobody sits there any more. Of what the seat has signed, only what the **seal** lists
        /// counts from now on: what the remover had seen by then, and wanted to keep.
        case remove(Number, seal: Set<Number>)
        /// The newest name wins: the higher revision, of equal ones the higher record number.
        case rename(Number, MemberName, revision: UInt32)
    }

    /// The seat it is signed from; its own number for a founding.
    package let seat: Number
    package let deed: Deed
    /// Seconds since 1970 by the signer's clock. Shown, and never compared: clocks may be wrong.
    package let signedAt: Int64
    package let salt: [UInt8]
    package let signature: [UInt8]
    package let number: Number

    /// The record as bytes without its signature: what is signed, after a label.
    let body: [UInt8]

    /// Makes and signs a record.
    ///
    /// - Parameters:
    ///   - seat: where the signer sits; `nil` for a founding.
    ///   - salt: 16 bytes that nobody can guess.
    init(
        _ deed: Deed, from seat: Number?, by signer: any NodeSigner, salt: [UInt8], at time: Int64
    ) throws(TrustError) {
        guard salt.count == Self.saltByteCount else {
            throw TrustError(
                .malformed, "member record",
                "needs \(Self.saltByteCount) bytes of chance, not \(salt.count)")
        }
        let body = Self.body(deed, seat: seat, salt: salt, signedAt: time)
        let signature = try signer.signature(over: Label.record + body)
        guard signature.count == PublicKey.signatureByteCount else {
            throw TrustError(
                .malformed, "node key", "made a signature of \(signature.count) bytes")
        }
        self.init(
            deed, seat: seat, salt: salt, signedAt: time, body: body, signature: signature)
    }

    init(
        _ deed: Deed, seat: Number?, salt: [UInt8], signedAt: Int64, body: [UInt8],
        signature: [UInt8]
    ) {
        number = Number(bytes: Array(SHA256.hash(data: Label.record + body)))
        self.seat = seat ?? number
        self.deed = deed
        self.salt = salt
        self.signedAt = signedAt
        self.body = body
        self.signature = signature
    }

    /// Whether `key` has signed it.
    func isSigned(by key: PublicKey) -> Bool {
        key.verifies(signature, over: Label.record + body)
    }

    /// Whom it seats; `nil` for a removal or a new name.
    package var admitted: (key: PublicKey, name: MemberName)? {
        switch deed {
        case .found(let key, let name), .admit(let key, let name): (key, name)
        case .remove, .rename: nil
        }
    }

    /// The same record may come with another valid signature: it is the same.
    package static func == (a: Self, b: Self) -> Bool { a.number == b.number }
    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
