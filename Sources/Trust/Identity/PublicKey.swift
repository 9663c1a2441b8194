package import Crypto

/// The public half of a node's key, a point of the curve P-256.
///
/// P-256 and not Ed25519, because the same key is in the node's TLS certificate: BoringSSL, which
/// swift-nio-ssl is made of, neither offers nor takes Ed25519 signatures unless both sides set
/// their lists of algorithms, browsers take no such certificates at all, and key stores of phones
/// and machines (TPM 2.0, Secure Enclave) hold P-256 only. What is lost: a signature is not the
/// same twice, so that nothing here is ever known by its signature.
package struct PublicKey: Hashable, Sendable {
    /// x and y, 32 bytes each, big-endian.
    package static let byteCount = 64
    package static let signatureByteCount = 64

    /// x, then y.
    package let bytes: [UInt8]

    /// What comes before the point in a SubjectPublicKeyInfo (RFC 5480): id-ecPublicKey, prime256v1,
    /// a bit string of an uncompressed point.
    private static let prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]

    /// - Parameter bytes: x and y of a point that lies on the curve.
    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count == Self.byteCount else {
            throw TrustError(
                .malformed, "public key", "has \(bytes.count) bytes instead of \(Self.byteCount)")
        }
        guard (try? P256.Signing.PublicKey(rawRepresentation: bytes)) != nil else {
            throw TrustError(.malformed, "public key", "is no point of the curve P-256")
        }
        self.bytes = bytes
    }

    /// The key of a certificate.
    ///
    /// - Parameter information: SubjectPublicKeyInfo in DER, 91 bytes. Any other kind of key, and
    ///   any other way to write the same point, is refused: one key, one fingerprint.
    package init(subjectPublicKeyInfo information: [UInt8]) throws(TrustError) {
        guard information.count == Self.prefix.count + Self.byteCount,
            information.starts(with: Self.prefix)
        else {
            throw TrustError(
                .malformed, "public key",
                "is no key of the curve P-256, written as an uncompressed point")
        }
        try self.init(bytes: Array(information[Self.prefix.count...]))
    }

    /// As it stands in a certificate: 91 bytes of DER.
    package var subjectPublicKeyInfo: [UInt8] { Self.prefix + bytes }

    package var fingerprint: Fingerprint {
        Fingerprint(hash: Array(SHA256.hash(data: subjectPublicKeyInfo)))
    }

    /// Whether `signature` was made over `message` with this key's private half.
    ///
    /// - Parameter signature: r and s, 32 bytes each.
    package func verifies(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        guard let key = try? P256.Signing.PublicKey(rawRepresentation: bytes),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return key.isValidSignature(signature, for: message)
    }
}

/// What signs for a node: its key in a file, or a chip that never shows it.
package protocol NodeSigner {
    var publicKey: PublicKey { get }

    /// ECDSA over the SHA-256 of `message`: r and s, 32 bytes each.
    func signature(over message: [UInt8]) throws(TrustError) -> [UInt8]
}

/// A node's private key as it lies in its state folder, readable for its owner only.
package struct NodeKey: NodeSigner, Sendable, CustomStringConvertible {
    package static let byteCount = 32

    package let publicKey: PublicKey
    private let key: P256.Signing.PrivateKey

    /// For the node's certificate; never to be shown or written anywhere else.
    package var signingKey: P256.Signing.PrivateKey { key }
    /// 32 bytes, for the node's own file.
    package var secretBytes: [UInt8] { Array(key.rawRepresentation) }

    /// - Parameter bytes: 32 bytes that nobody can guess; the number is taken as it is. One in 2³²
    ///   is none of the curve's and is refused: draw again.
    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count == Self.byteCount,
            let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes)
        else {
            throw TrustError(
                .malformed, "node key",
                "is not \(Self.byteCount) bytes of a private key of the curve P-256")
        }
        self.key = key
        publicKey = try PublicKey(bytes: Array(key.publicKey.rawRepresentation))
    }

    /// Says nothing of the private half: this is what gets into logs.
    package var description: String { "the key of \(publicKey.fingerprint)" }

    /// The library mixes chance of its own into each signature, which no verdict depends on.
    package func signature(over message: [UInt8]) throws(TrustError) -> [UInt8] {
        do {
            return Array(try key.signature(for: message).rawRepresentation)
        } catch {
            throw TrustError(.refused, "node key", "cannot sign (\(error))")
        }
    }
}
