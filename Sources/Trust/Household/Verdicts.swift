/// What a set of records amounts to: which of them count, and who sits where.
///
/// A record counts if its signer sits: if the admission of the seat it is signed from counts, and
/// no removal of that seat counts that does not list the record in its seal. The founding always
/// counts, and a removal never voids what it rests upon itself. A member sits if its admission
/// counts and no removal of its seat does.
///
/// What follows from this is found by going round until nothing new comes of it, and does not depend
/// on any order: a record is *in* once all it needs is in and all that could void it is out, and
/// *out* once one that voids it is in. What stays open then are contradictions: removals that void
/// each other. Of those the one that came first is taken to be in, and so on.
package struct Verdicts: Sendable {
    enum Verdict { case open, counts, void }

    /// Those who sit, by fingerprint.
    private(set) var members: [Fingerprint: Household.Member] = [:]
    /// Of those who do not sit any more, the removal.
    private(set) var removals: [Fingerprint: (by: Fingerprint, at: Int64)] = [:]
    /// The seats of each key that sits.
    private(set) var seats: [Fingerprint: [MemberRecord.Number]] = [:]
    /// The seats of each key from which it was removed.
    private(set) var formerSeats: [Fingerprint: [MemberRecord.Number]] = [:]
    private var counting: Set<MemberRecord.Number> = []
    /// Removals that contradict one another, of which this node went by what it heard first.
    package private(set) var contradictionCount = 0

    private var known: [MemberRecord.Number: MemberRecord] = [:]
    private var removalsOfSeat: [MemberRecord.Number: [MemberRecord]] = [:]

    /// - Parameter records: the founding first; each from a seat that is among them.
    /// - Complexity: that of ``Contradictions``.
    init(of records: [MemberRecord]) {
        for record in records {
            known[record.number] = record
            if case .remove(let seat, _) = record.deed {
                removalsOfSeat[seat, default: []].append(record)
            }
        }
        decide(records)
        seat(records)
        name(records)
    }

    func counts(_ number: MemberRecord.Number) -> Bool { counting.contains(number) }

    // MARK: Which records count

    private mutating func decide(_ records: [MemberRecord]) {
        var places: [MemberRecord.Number: Int] = [:]
        for (place, record) in records.enumerated() { places[record.number] = place }
        let admission = records.map { record in
            guard let place = places[record.seat] else {
                preconditionFailure("a record of a seat that is not known")
            }
            return place
        }
        var removals = [[Int]](repeating: [], count: records.count)
        var spared = [Set<Int>](repeating: [], count: records.count)
        for (place, record) in records.enumerated() {
            guard case .remove(let seat, let seal) = record.deed else { continue }
            if let target = places[seat] { removals[target].append(place) }
            spared[place] = Set(seal.compactMap { places[$0] })
            // Not what it rests upon, and not itself.
            var support = place
            while spared[place].insert(support).inserted || support != admission[support] {
                support = admission[support]
            }
        }
        let voiders = records.indices.map { place in
            removals[admission[place]].filter { !spared[$0].contains(place) }
        }
        let contradictions = Contradictions(
            isRemoval: records.map { if case .remove = $0.deed { true } else { false } },
            admission: admission, voiders: voiders)
        contradictionCount = contradictions.count
        for (record, verdict) in zip(records, contradictions.verdicts) where verdict == .counts {
            counting.insert(record.number)
        }
    }

    // MARK: Who sits

    private mutating func seat(_ records: [MemberRecord]) {
        var shown: [Fingerprint: MemberRecord.Number] = [:]
        for record in records where counts(record.number) {
            guard let (key, name) = record.admitted else { continue }
            let fingerprint = key.fingerprint
            let removal = (removalsOfSeat[record.number] ?? []).filter { counts($0.number) }
                .min { $0.number < $1.number }
            if let removal {
                formerSeats[fingerprint, default: []].append(record.number)
                // Removed from several seats: one of them speaks for all, the same everywhere.
                if let known = shown[fingerprint], known < removal.number { continue }
                shown[fingerprint] = removal.number
                removals[fingerprint] = (signer(of: removal), removal.signedAt)
                continue
            }
            seats[fingerprint, default: []].append(record.number)
            // Admitted twice at the same time: the lower record speaks for both.
            if seats[fingerprint]?.min() == record.number {
                members[fingerprint] = Household.Member(
                    key: key, name: name, addedBy: signer(of: record), addedAt: record.signedAt)
            }
        }
        for fingerprint in members.keys { removals[fingerprint] = nil }
    }

    private mutating func name(_ records: [MemberRecord]) {
        for fingerprint in Array(members.keys) {
            let own = Set(seats[fingerprint] ?? [])
            var newest: (revision: UInt32, number: MemberRecord.Number)?
            for record in records where counts(record.number) {
                guard case .rename(let seat, let name, let revision) = record.deed,
                    own.contains(seat)
                else { continue }
                if let newest, (newest.revision, newest.number) >= (revision, record.number) {
                    continue
                }
                newest = (revision, record.number)
                members[fingerprint]?.name = name
            }
        }
    }

    /// The admissions that a seat rests upon, from its own to the founding.
    func support(ofSeat seat: MemberRecord.Number) -> [MemberRecord] {
        var support: [MemberRecord] = []
        var next = known[seat]
        while let admission = next {
            support.append(admission)
            next = admission.seat == admission.number ? nil : known[admission.seat]
        }
        return support
    }

    func key(ofSeat seat: MemberRecord.Number) -> PublicKey? { known[seat]?.admitted?.key }

    private func signer(of record: MemberRecord) -> Fingerprint {
        // Every record's seat is among the records: the household takes no others.
        guard let key = key(ofSeat: record.seat) else {
            preconditionFailure("a record of a seat that is not known")
        }
        return key.fingerprint
    }
}
