import Crypto
import SwiftASN1
import TuttiTrust
import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The certificate in which a node shows its key: signed by itself, and never looked at but for the
/// key in it.
///
/// Its names and dates say nothing. It is made anew at each start and is good from 2000 to 9999: the
/// clock of a machine that has none while it is off is wrong by years when it begins.
enum NodeCertificate {
    /// - Returns: X.509 version 3 in DER (RFC 5280).
    static func make(for key: P256.Signing.PrivateKey) throws -> [UInt8] {
        try make(for: Certificate.PrivateKey(key))
    }

    static func make(for own: Certificate.PrivateKey) throws -> [UInt8] {
        let name = try DistinguishedName { CommonName("tutti") }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: own.publicKey,
            notValidBefore: Date(timeIntervalSince1970: 946_684_800),
            notValidAfter: Date(timeIntervalSince1970: 253_402_300_799),
            issuer: name, subject: name, extensions: Certificate.Extensions(),
            issuerPrivateKey: own)
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}
