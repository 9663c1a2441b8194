// What a node shows of its household to who may not belong to it: no more than how one of the two came
// in, or was put out.

extension Household {
    /// Admissions in an excerpt of who is not known for a member: what it costs to look at them is no
    /// more than a handshake or ten. Who sits deeper leaves out the first ones, which all know.
    package static let longestExcerpt = 64

    /// What says how a key came to sit: the admissions from the founding to its own, or the last of
    /// them. Empty for who does not sit.
    package func excerpt(seating fingerprint: Fingerprint) -> [MemberRecord] {
        guard let seat = verdicts.seats[fingerprint]?.min() else { return [] }
        return verdicts.support(ofSeat: seat).prefix(Self.longestExcerpt).reversed()
    }

    /// What says that a key was put out: its seats, their removals, and what both rest upon. Empty for
    /// who was not.
    package func excerpt(removing fingerprint: Fingerprint) -> [MemberRecord] {
        guard case .removed = standing(of: fingerprint) else { return [] }
        let seats = Set(verdicts.formerSeats[fingerprint] ?? [])
        var numbers: Set<MemberRecord.Number> = []
        for record in records where verdicts.counts(record.number) {
            guard case .remove(let seat, _) = record.deed, seats.contains(seat) else { continue }
            numbers.insert(record.number)
            for start in [seat, record.seat] {
                numbers.formUnion(verdicts.support(ofSeat: start).map(\.number))
            }
        }
        return records.filter { numbers.contains($0.number) }
    }

    /// This household with an excerpt in it.
    ///
    /// - Parameters:
    ///   - excerpt: what somebody says of itself, who need not be a member.
    ///   - fingerprint: who says so.
    /// - Returns: `nil` where that does not make it a member: then nothing of it is kept.
    package func seating(
        _ fingerprint: Fingerprint, by excerpt: [MemberRecord]
    ) throws(TrustError) -> Household? {
        guard excerpt.count <= Self.longestExcerpt else {
            throw TrustError(
                .tooMany, "excerpt",
                "has \(excerpt.count) records of at most \(Self.longestExcerpt)")
        }
        // Nothing else is needed for it, and nothing else is let in with it.
        guard standing(of: fingerprint) == .unknown,
            excerpt.allSatisfy({ $0.admitted != nil })
        else { return nil }
        let known = Set(records)
        var household = self
        try household.merge(excerpt.filter { !known.contains($0) })
        return household.member(fingerprint) == nil ? nil : household
    }
}
