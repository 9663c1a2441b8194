// What a member does. Each deed becomes a record, which the other members are to be told.

extension Household {
    /// Lets a key in.
    ///
    /// - Parameters:
    ///   - signer: a member.
    ///   - salt: 16 bytes that nobody can guess; the same for all deeds.
    ///   - time: seconds since 1970, for showing.
    package mutating func admit(
        _ key: PublicKey, as name: MemberName, by signer: any NodeSigner, salt: [UInt8],
        at time: Int64
    ) throws(TrustError) -> MemberRecord {
        if let member = member(key.fingerprint) {
            throw TrustError(
                .refused, "household", "\(member.name) is a member already; nothing is to be done")
        }
        guard verdicts.members.count < Self.mostMembers else {
            throw TrustError(
                .tooMany, "household",
                "has \(Self.mostMembers) members, the most there can be; remove one first")
        }
        return try add(.admit(key, name), by: signer, salt: salt, at: time)
    }

    /// Gives a member another name. Of two that are given at the same time one wins, the same
    /// everywhere; against a removal none does.
    package mutating func rename(
        _ fingerprint: Fingerprint, to name: MemberName, by signer: any NodeSigner, salt: [UInt8],
        at time: Int64
    ) throws(TrustError) -> MemberRecord {
        let seat = try seats(of: fingerprint)[0]
        var revision: UInt32 = 0
        for record in records where verdicts.counts(record.number) {
            guard case .rename(let other, _, let given) = record.deed,
                verdicts.seats[fingerprint]?.contains(other) == true
            else { continue }
            revision = max(revision, given)
        }
        guard revision < MemberRecord.mostRevision else {
            throw TrustError(
                .tooMany, "household",
                "this member cannot be renamed any more, because somebody has given it the last "
                    + "name there can be; remove who did, or remove and pair it")
        }
        return try add(
            .rename(seat, name, revision: revision + 1), by: signer, salt: salt, at: time)
    }

    /// Removes a member, or lets it leave where it is the signer itself.
    ///
    /// Where members have removed each other (``Verdicts/contradictionCount``), who is out here may
    /// still be in elsewhere: then a removal can be said once more, and settles it for all.
    ///
    /// - Parameter keepsDeeds: whether whom it has let in stays, with the names that it gave; `false`
    ///   where its key is in wrong hands: then who came in by it has to be paired anew. Whom it has
    ///   removed stays removed either way.
    /// - Returns: a record for each seat of it that would still stand after the others, usually one.
    package mutating func remove(
        _ fingerprint: Fingerprint, keepsDeeds: Bool = true, by signer: any NodeSigner,
        salt: [UInt8], at time: Int64
    ) throws(TrustError) -> [MemberRecord] {
        let own = try seat(of: signer)
        let isSaidAgain =
            verdicts.contradictionCount > 0 && verdicts.seats[fingerprint] == nil
            && verdicts.formerSeats[fingerprint] != nil
        let seats =
            isSaidAgain
            ? verdicts.formerSeats[fingerprint] ?? [] : try self.seats(of: fingerprint)
        // Those that others rest upon first, and the one that is signed from last: whatever is made
        // before is in its seal.
        let ordered = seats.map { ($0 == own ? 1 : 0, depth(of: $0), $0) }.sorted(by: <)
        // Apart from what is kept: in between there may be more records than can be.
        var known = records
        var verdicts = self.verdicts
        var made: [MemberRecord] = []
        for (_, _, seat) in ordered {
            // Its own removals are among what the signer's seal keeps.
            if seat == own, !made.isEmpty { verdicts = Verdicts(of: known) }
            guard isSaidAgain || verdicts.seats[fingerprint]?.contains(seat) == true else {
                continue
            }
            let seal = Self.seal(
                of: seat, whose: fingerprint, keepsDeeds: keepsDeeds, known, verdicts)
            let record = try MemberRecord(
                .remove(seat, seal: seal), from: own, by: signer, salt: salt, at: time)
            made.append(record)
            let voidsSomething = known.contains { $0.seat == seat && !seal.contains($0.number) }
            known.append(record)
            // Other seats may have fallen with it.
            if voidsSomething { verdicts = Verdicts(of: known) }
        }
        do throws(TrustError) {
            try merge(made)
        } catch  where error.code == .tooMany && made.count > 1 {
            throw tooManySeats(seats, keepsDeeds: keepsDeeds)
        }
        return made
    }

    /// How many admissions a seat rests upon.
    private func depth(of seat: MemberRecord.Number) -> Int {
        verdicts.support(ofSeat: seat).count
    }

    private func tooManySeats(
        _ seats: [MemberRecord.Number], keepsDeeds: Bool
    ) -> TrustError {
        let admissions = Set(seats)
        var names: Set<String> = []
        for record in records where admissions.contains(record.number) {
            let signer = verdicts.key(ofSeat: record.seat)?.fingerprint
            names.insert(signer.flatMap { member($0)?.name.text } ?? signer?.short ?? "?")
        }
        let whatToDo =
            keepsDeeds
            ? "remove it with --stolen"
            : "remove those who did, with --stolen, and then it: "
                + names.sorted().joined(separator: ", ")
        return TrustError(
            .tooMany, "household", "this member was let in \(seats.count) times; \(whatToDo)")
    }

    /// What a removal of `seat` leaves standing of its deeds that count. Where that is more than can
    /// be listed, removals come first, so that nobody comes back, and names last. It leaves no other
    /// way in for the key that is removed, and no name after which there can be none.
    private static func seal(
        of seat: MemberRecord.Number, whose fingerprint: Fingerprint, keepsDeeds: Bool,
        _ records: [MemberRecord], _ verdicts: Verdicts
    ) -> Set<MemberRecord.Number> {
        func weight(_ record: MemberRecord) -> Int? {
            switch record.deed {
            case .remove: 0
            case .found: keepsDeeds ? 1 : nil
            case .admit(let key, _): keepsDeeds && key.fingerprint != fingerprint ? 1 : nil
            case .rename(_, _, let revision):
                keepsDeeds && revision < MemberRecord.mostRevision ? 2 : nil
            }
        }
        let deeds = records.compactMap { record in
            record.seat == seat && verdicts.counts(record.number)
                ? weight(record).map { ($0, record.number) } : nil
        }
        return Set(deeds.sorted(by: <).prefix(MemberRecord.longestSeal).map(\.1))
    }

    private mutating func add(
        _ deed: MemberRecord.Deed, by signer: any NodeSigner, salt: [UInt8], at time: Int64
    ) throws(TrustError) -> MemberRecord {
        let record = try MemberRecord(
            deed, from: try seat(of: signer), by: signer, salt: salt, at: time)
        try merge([record])
        return record
    }

    private func seat(of signer: any NodeSigner) throws(TrustError) -> MemberRecord.Number {
        guard let seat = verdicts.seats[signer.publicKey.fingerprint]?.min() else {
            throw TrustError(
                .refused, "household",
                "this node is no member and cannot change it; pair it with one that is")
        }
        return seat
    }

    private func seats(of fingerprint: Fingerprint) throws(TrustError) -> [MemberRecord.Number] {
        guard let seats = verdicts.seats[fingerprint], !seats.isEmpty else {
            throw TrustError(
                .unknown, "household",
                "\(fingerprint.short) is no member; `tutti household` lists who is")
        }
        return seats.sorted()
    }
}
