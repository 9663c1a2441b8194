// A record as bytes, big-endian, and back; the same bytes on the wire, on disk and under the
// signature:
//
//      0  version, 1
//      1  kind: 1 found, 2 admit, 3 remove, 4 rename
//      2  seat it is signed from, 32 bytes; zero for a founding
//     34  salt, 16 bytes
//     50  seconds since 1970, 64 bits, two's complement
//     58  found, admit: key, 64 bytes; length of the name, 16 bits; the name
//         remove: seat, 32 bytes; count of the seal, 16 bits; its numbers, 32 bytes each, rising
//         rename: seat, 32 bytes; revision, 32 bits; length of the name, 16 bits; the name
//    end  signature over a label and all of the above: r, s, 32 bytes each

extension MemberRecord {
    /// With the signature.
    package var bytes: [UInt8] { body + signature }

    private enum Kind: UInt8 { case found = 1, admit, remove, rename }

    static func body(_ deed: Deed, seat: Number?, salt: [UInt8], signedAt: Int64) -> [UInt8] {
        var bytes: [UInt8] = [version, kind(of: deed).rawValue]
        bytes += seat?.bytes ?? [UInt8](repeating: 0, count: Fingerprint.byteCount)
        bytes += salt
        bytes.append(number: UInt64(bitPattern: signedAt))
        switch deed {
        case .found(let key, let name), .admit(let key, let name):
            bytes += key.bytes
            bytes.append(name)
        case .remove(let seat, let seal):
            bytes += seat.bytes
            bytes.append(number: UInt16(seal.count))
            for number in seal.sorted() { bytes += number.bytes }
        case .rename(let seat, let name, let revision):
            bytes += seat.bytes
            bytes.append(number: revision)
            bytes.append(name)
        }
        return bytes
    }

    private static func kind(of deed: Deed) -> Kind {
        switch deed {
        case .found: .found
        case .admit: .admit
        case .remove: .remove
        case .rename: .rename
        }
    }

    /// Reads a record. Whether its signer may say so is not looked at here.
    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count <= Self.longest else {
            throw TrustError(
                .tooMany, "member record", "has \(bytes.count) bytes of at most \(Self.longest)")
        }
        var reader = ByteReader(bytes, "member record")
        let version: UInt8 = try reader.number("version")
        guard version == Self.version else {
            throw TrustError(
                .otherVersion, "member record",
                "is of version \(version) and this Tutti reads \(Self.version); update this machine"
            )
        }
        let code: UInt8 = try reader.number("kind")
        guard let kind = Kind(rawValue: code) else {
            throw TrustError(.malformed, "member record.kind", "\(code) is none")
        }
        let seat = Number(bytes: try reader.bytes(Fingerprint.byteCount, "seat"))
        let salt = try reader.bytes(Self.saltByteCount, "salt")
        let signedAt = Int64(bitPattern: try reader.number("time"))
        let isFounding = kind == .found
        guard seat.bytes.allSatisfy({ $0 == 0 }) == isFounding else {
            throw TrustError(.malformed, "member record.seat", "does not go with the kind \(code)")
        }
        let deed = try Self.deed(kind, &reader)
        let signature = try reader.bytes(PublicKey.signatureByteCount, "signature")
        try reader.end()
        self.init(
            deed, seat: isFounding ? nil : seat, salt: salt, signedAt: signedAt,
            body: Array(bytes.dropLast(PublicKey.signatureByteCount)), signature: signature)
    }

    private static func deed(_ kind: Kind, _ reader: inout ByteReader) throws(TrustError) -> Deed {
        switch kind {
        case .found, .admit:
            let key = try PublicKey(bytes: try reader.bytes(PublicKey.byteCount, "key"))
            let name = try reader.name()
            return kind == .found ? .found(key, name) : .admit(key, name)
        case .remove:
            let seat = Number(bytes: try reader.bytes(Fingerprint.byteCount, "removed seat"))
            return .remove(seat, seal: try seal(&reader))
        case .rename:
            let seat = Number(bytes: try reader.bytes(Fingerprint.byteCount, "renamed seat"))
            let revision: UInt32 = try reader.number("revision")
            guard revision <= mostRevision else {
                throw TrustError(
                    .outOfRange, "member record.revision",
                    "is \(revision) of at most \(mostRevision)")
            }
            return .rename(seat, try reader.name(), revision: revision)
        }
    }

    private static func seal(_ reader: inout ByteReader) throws(TrustError) -> Set<Number> {
        let count = Int(try reader.number("seal", as: UInt16.self))
        guard count <= longestSeal else {
            throw TrustError(
                .tooMany, "member record.seal", "lists \(count) records of at most \(longestSeal)")
        }
        var numbers: [Number] = []
        for _ in 0..<count {
            let number = Number(bytes: try reader.bytes(Fingerprint.byteCount, "seal"))
            // One order, each once: one text for one seal.
            if let last = numbers.last, !(last < number) {
                throw TrustError(.malformed, "member record.seal", "is not in rising order")
            }
            numbers.append(number)
        }
        return Set(numbers)
    }
}

extension [UInt8] {
    /// Its length in 16 bits, and a name.
    mutating func append(_ name: MemberName) {
        append(number: UInt16(name.text.utf8.count))
        append(contentsOf: name.text.utf8)
    }
}

extension ByteReader {
    mutating func name() throws(TrustError) -> MemberName {
        let count = Int(try number("name", as: UInt16.self))
        guard count <= MemberName.longestBytes else {
            throw TrustError(
                .outOfRange, "\(subject).name",
                "has \(count) bytes of at most \(MemberName.longestBytes)")
        }
        guard let text = String(validating: try bytes(count, "name"), as: UTF8.self) else {
            throw TrustError(.malformed, "\(subject).name", "is no UTF-8")
        }
        return try MemberName(text)
    }
}
