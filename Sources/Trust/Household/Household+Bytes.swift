// A household as bytes, big-endian: its file, and what one member tells another.
//
//      0  magic "TuHh"
//      4  version, 1
//      5  count of records, 16 bits
//      7  for each, in the order in which they came here, the founding first:
//         its length, 16 bits, and the record

extension Household {
    package static let version: UInt8 = 1
    private static let magic = Array("TuHh".utf8)

    package var bytes: [UInt8] {
        var bytes = Self.magic + [Self.version]
        bytes.append(records)
        return bytes
    }

    static func byteCount(of records: [MemberRecord]) -> Int {
        records.reduce(7) { $0 + 2 + $1.body.count + PublicKey.signatureByteCount }
    }

    /// Reads and checks all of a household.
    ///
    /// - Throws: `.otherVersion` for bytes of a newer Tutti, which are to be left as they are: the
    ///   machine is updated, its file is not written. Anything else is damaged: set aside.
    package init(bytes: [UInt8]) throws(TrustError) {
        guard bytes.count <= Self.longest else {
            throw TrustError(
                .tooMany, "household", "has \(bytes.count) bytes of at most \(Self.longest)")
        }
        var reader = ByteReader(bytes, "household")
        guard try reader.bytes(4, "magic") == Self.magic else {
            throw TrustError(.malformed, "household", "does not begin as one")
        }
        let version: UInt8 = try reader.number("version")
        guard version == Self.version else {
            throw TrustError(
                .otherVersion, "household",
                "is of version \(version) and this Tutti reads \(Self.version); update this machine"
            )
        }
        let records = try reader.records()
        try reader.end()
        try self.init(records: records)
    }

    /// Which household it is, before anything of it is believed or a signature looked at: what another
    /// one says costs no more than this.
    ///
    /// - Returns: the number of its founding; `nil` for what cannot be read.
    package static func number(of bytes: [UInt8]) -> MemberRecord.Number? {
        var reader = ByteReader(bytes.prefix(9 + MemberRecord.longest), "household")
        guard (try? reader.bytes(4, "magic")) == magic,
            (try? reader.number("version", as: UInt8.self)) == version,
            (try? reader.number("count", as: UInt16.self)) != nil,
            let length = try? reader.number("record", as: UInt16.self),
            let record = try? reader.bytes(Int(length), "record")
        else { return nil }
        return try? MemberRecord(bytes: record).number
    }

    private init(records: [MemberRecord]) throws(TrustError) {
        guard let founding = records.first, case .found(let key, _) = founding.deed else {
            throw TrustError(.malformed, "household", "does not begin with its founding")
        }
        guard founding.isSigned(by: key) else {
            throw TrustError(.notAuthentic, "household", "is not signed by who founded it")
        }
        self.init(founding: founding)
        try merge(records)
    }
}

extension [UInt8] {
    /// Their count in 16 bits, and each with its length in 16 bits before it.
    mutating func append(_ records: [MemberRecord]) {
        append(number: UInt16(records.count))
        for record in records {
            let record = record.bytes
            append(number: UInt16(record.count))
            append(contentsOf: record)
        }
    }
}

extension ByteReader {
    mutating func records() throws(TrustError) -> [MemberRecord] {
        let count = Int(try number("count", as: UInt16.self))
        guard count <= Household.mostRecords else {
            throw TrustError(
                .tooMany, subject, "has \(count) records of at most \(Household.mostRecords)")
        }
        var records: [MemberRecord] = []
        for _ in 0..<count {
            let length = Int(try number("record", as: UInt16.self))
            records.append(try MemberRecord(bytes: try bytes(length, "record")))
        }
        return records
    }
}
