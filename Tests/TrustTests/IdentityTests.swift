import Crypto
import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `Who a node is` {
    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `a fingerprint is the hash of what a certificate has, and its text leads back`(
        seed: UInt64
    ) throws {
        let public_ = key(seed).publicKey
        // What swift-crypto writes for a certificate.
        let der = try P256.Signing.PublicKey(rawRepresentation: public_.bytes).derRepresentation
        #expect(public_.subjectPublicKeyInfo == Array(der))
        #expect(public_.fingerprint.bytes == Array(SHA256.hash(data: der)))
        #expect(try PublicKey(subjectPublicKeyInfo: Array(der)) == public_)
        let text = public_.fingerprint.description
        #expect(text.count == 69 && text.split(separator: "-").count == 14)
        #expect(try Fingerprint(text) == public_.fingerprint)
        #expect(try Fingerprint(text.lowercased()) == public_.fingerprint)
        #expect(try Fingerprint(text.filter { $0 != "-" }) == public_.fingerprint)
        #expect(text.hasPrefix(public_.fingerprint.short))
    }

    /// The format is for ever: bytes and text that were written down once.
    @Test func `the text of 0, 1, 2 … 31 never changes`() throws {
        let fingerprint = try Fingerprint(bytes: Array(0..<32))
        #expect(
            fingerprint.description
                == "000G-40R4-0M30-E209-185G-R38E-1W81-24GK-2GAH-C5RR-34D1-P70X-3RFT-5WF7")
    }

    /// The check value of RFC 9580's CRC in the catalogue of CRCs.
    @Test func `the slip check is the CRC-24 of OpenPGP`() {
        #expect(SlipCheck.bytes(of: Array("123456789".utf8)) == [0x21, 0xCF, 0x02])
    }

    @Test func `letters that look like digits are taken for them`() throws {
        let fingerprint = try Fingerprint(bytes: Array(0..<32))
        let misread = fingerprint.description.replacing("0", with: "O").replacing("1", with: "l")
        #expect(try Fingerprint(misread) == fingerprint)
        #expect(try Fingerprint(misread.replacing("l", with: "I")) == fingerprint)
    }

    @Test func `every wrong character, and every two that changed places, are found`() throws {
        let text = Array(key(3).publicKey.fingerprint.description.filter { $0 != "-" })
        for place in text.indices {
            for other in Base32.alphabet.map({ Character(Unicode.Scalar($0)) })
            where other != text[place] {
                var typed = text
                typed[place] = other
                #expect(throws: TrustError.self) { try Fingerprint(String(typed)) }
            }
            guard place > 0, text[place] != text[place - 1] else { continue }
            var typed = text
            typed.swapAt(place, place - 1)
            #expect(throws: TrustError.self) { try Fingerprint(String(typed)) }
        }
    }

    @Test(arguments: ["", "-", "0", "hello", "000G-40R4!", String(repeating: "0", count: 57), "ü"])
    func `what is no fingerprint is refused with a sentence`(text: String) {
        let error = #expect(throws: TrustError.self) { try Fingerprint(text) }
        #expect(error?.code == .malformed)
        #expect(error?.description.hasPrefix("fingerprint: ") == true)
    }

    @Test func `a point beside the curve is no key, nor is another writing of one`() throws {
        let good = key(1).publicKey
        var bytes = good.bytes
        bytes[63] ^= 1
        #expect(throws: TrustError.self) { try PublicKey(bytes: bytes) }
        #expect(throws: TrustError.self) { try PublicKey(bytes: Array(bytes.dropLast())) }
        #expect(throws: TrustError.self) { try PublicKey(bytes: .init(repeating: 0, count: 64)) }
        let compressed = try P256.Signing.PublicKey(rawRepresentation: good.bytes)
            .compressedRepresentation
        #expect(throws: TrustError.self) {
            try PublicKey(subjectPublicKeyInfo: Array(compressed))
        }
        // The same point as a key for another curve, and one for agreement only.
        for place in [10, 20, 22, 25] {
            var information = good.subjectPublicKeyInfo
            information[place] ^= 1
            #expect(throws: TrustError.self) { try PublicKey(subjectPublicKeyInfo: information) }
        }
        let other = Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation)
        #expect(throws: TrustError.self) { try PublicKey(subjectPublicKeyInfo: other) }
        #expect(throws: TrustError.self) { try NodeKey(bytes: .init(repeating: 0, count: 32)) }
        #expect(throws: TrustError.self) { try NodeKey(bytes: .init(repeating: 255, count: 32)) }
    }

    @Test func `a signature is good for its key and its message alone`() throws {
        let message = Array("kitchen".utf8)
        let signature = try key(1).signature(over: message)
        #expect(key(1).publicKey.verifies(signature, over: message))
        #expect(!key(2).publicKey.verifies(signature, over: message))
        #expect(!key(1).publicKey.verifies(signature, over: message + [0]))
        #expect(!key(1).publicKey.verifies([], over: message))
        #expect(!key(1).publicKey.verifies(.init(repeating: 0, count: 64), over: message))
    }
}
