extension Household {
    /// Takes in what another member knows. All of it or, where something is wrong, nothing.
    ///
    /// - Parameter news: in any order, known records among them; what each rests upon is here or
    ///   among them. Members send one another all they have.
    /// - Returns: what was new here.
    /// - Complexity: one signature is checked for each new record, about 0.1 ms.
    @discardableResult
    package mutating func merge(_ news: [MemberRecord]) throws(TrustError) -> [MemberRecord] {
        guard news.count <= Self.mostRecords else {
            throw TrustError(
                .tooMany, "household", "\(news.count) records of at most \(Self.mostRecords) came")
        }
        var keys: [MemberRecord.Number: PublicKey] = [:]
        var known: Set<MemberRecord.Number> = []
        for record in records {
            known.insert(record.number)
            keys[record.number] = record.admitted?.key
        }
        var waiting: [MemberRecord] = []
        for record in news where known.insert(record.number).inserted { waiting.append(record) }
        let fresh = try Self.checked(waiting, keys)
        guard !fresh.isEmpty else { return [] }
        try take(fresh)
        // What has made way at once is no news.
        let kept = Set(records)
        return fresh.filter(kept.contains)
    }

    /// Takes in another household's records.
    ///
    /// - Throws: where it is another household: those never merge. Who moves leaves the one, and is
    ///   paired with the other.
    @discardableResult
    package mutating func merge(_ other: Household) throws(TrustError) -> [MemberRecord] {
        try merge(other.records)
    }

    /// The records in an order in which each comes after what it rests upon.
    private static func checked(
        _ waiting: [MemberRecord], _ keys: [MemberRecord.Number: PublicKey]
    ) throws(TrustError) -> [MemberRecord] {
        var (waiting, keys) = (waiting, keys)
        var checked: [MemberRecord] = []
        while !waiting.isEmpty {
            var later: [MemberRecord] = []
            for record in waiting {
                if case .found = record.deed {
                    throw TrustError(
                        .refused, "household",
                        "this is another one; leave yours (`tutti household leave`), then pair")
                }
                guard let key = keys[record.seat] else {
                    later.append(record)
                    continue
                }
                guard record.isSigned(by: key) else {
                    throw TrustError(
                        .notAuthentic, "member record",
                        "is not signed by \(key.fingerprint.short), who is said to have made it")
                }
                // It would be one more seat to remove it from, as often as it likes.
                if record.admitted?.key == key {
                    throw TrustError(
                        .refused, "member record",
                        "lets \(key.fingerprint.short) in, who has made it and is a member")
                }
                keys[record.number] = record.admitted?.key
                checked.append(record)
            }
            guard later.count < waiting.count else {
                throw TrustError(
                    .unknown, "member record", "is signed from a seat that nobody was admitted to")
            }
            waiting = later
        }
        return checked
    }

    private mutating func take(_ fresh: [MemberRecord]) throws(TrustError) {
        var union = records + fresh
        var verdicts = Verdicts(of: union)
        if !Self.fits(union) { Self.makeRoom(&union, &verdicts) }
        guard Self.fits(union) else {
            throw TrustError(
                .tooMany, "household",
                "has seen \(Self.mostRecords) deeds, the most that are kept; "
                    + "found a new one and pair its members")
        }
        records = union
        self.verdicts = verdicts
    }

    private static func fits(_ records: [MemberRecord]) -> Bool {
        records.count <= mostRecords && byteCount(of: records) <= longest
    }

    /// Drops what counts for nothing and names that were overtaken, until all that is left counts: so
    /// nothing that stays has lost what it rests upon.
    private static func makeRoom(_ records: inout [MemberRecord], _ verdicts: inout Verdicts) {
        var before = 0
        repeat {
            before = records.count
            records = withoutOldNames(records.filter { verdicts.counts($0.number) })
            verdicts = Verdicts(of: records)
        } while records.count < before
    }

    /// Of the names that one seat gave another and that count, only the newest is kept.
    private static func withoutOldNames(_ records: [MemberRecord]) -> [MemberRecord] {
        struct Pair: Hashable {
            var from: MemberRecord.Number
            var to: MemberRecord.Number
        }
        var newest: [Pair: (revision: UInt32, number: MemberRecord.Number)] = [:]
        for record in records {
            guard case .rename(let seat, _, let revision) = record.deed else { continue }
            let pair = Pair(from: record.seat, to: seat)
            if let known = newest[pair], known >= (revision, record.number) { continue }
            newest[pair] = (revision, record.number)
        }
        return records.filter { record in
            guard case .rename(let seat, _, _) = record.deed else { return true }
            return newest[Pair(from: record.seat, to: seat)]?.number == record.number
        }
    }
}
