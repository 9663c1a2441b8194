/// Who belongs together: a set of signed records, the same for every member, and what follows from
/// them.
///
/// The set only grows, and two sets are merged by union: in any order, any number of times, with
/// the same result. *Who is a member* is worked out from the set alone (``Verdicts``), by no clock.
/// Every member may admit, remove and rename; who was removed is not listened to any more.
///
/// Only where two members remove each other, neither knowing of the other's deed, nothing in the set
/// can say who was first. Then each node goes by what it has heard first, which is why records are
/// kept in the order in which they came, and a third member's word settles it for all.
package struct Household: Sendable {
    /// Most members at once: as many as a group may well have rooms, and a few phones.
    package static let mostMembers = 64
    /// Most records: some ten deeds for each member. What counts for nothing makes way first.
    package static let mostRecords = 640
    /// Longest form as bytes: what a node reads from its disk or takes from a link.
    package static let longest = 1 << 18

    /// In the order in which they came; the founding first.
    package internal(set) var records: [MemberRecord]
    /// Who sits where, as the records have it; kept with every change.
    package internal(set) var verdicts: Verdicts

    /// One key that belongs to the household.
    package struct Member: Equatable, Sendable {
        package var key: PublicKey
        package var name: MemberName
        /// Who let it in; itself for the founder.
        package var addedBy: Fingerprint
        /// Seconds since 1970 by the clock of who let it in; for showing.
        package var addedAt: Int64

        package var fingerprint: Fingerprint { key.fingerprint }
    }

    /// What a household has to say of a key.
    package enum Standing: Equatable, Sendable {
        case member(MemberName)
        /// Seconds since 1970 by the clock of who removed it; for showing.
        case removed(by: Fingerprint, at: Int64)
        case unknown
    }

    /// A household of one, as every node is at its first start.
    ///
    /// - Parameters:
    ///   - salt: 16 bytes that nobody can guess.
    ///   - time: seconds since 1970.
    package init(
        foundedBy signer: any NodeSigner, name: MemberName, salt: [UInt8], at time: Int64
    ) throws(TrustError) {
        let founding = try MemberRecord(
            .found(signer.publicKey, name), from: nil, by: signer, salt: salt, at: time)
        self.init(founding: founding)
    }

    init(founding: MemberRecord) {
        records = [founding]
        verdicts = Verdicts(of: [founding])
    }

    /// The number of its founding: what tells one household from another, whatever they are called.
    package var number: MemberRecord.Number { records[0].number }

    /// By fingerprint, so that every node lists them in one order.
    package var members: [Member] {
        verdicts.members.values.sorted { $0.fingerprint < $1.fingerprint }
    }

    package func member(_ fingerprint: Fingerprint) -> Member? { verdicts.members[fingerprint] }

    package func standing(of fingerprint: Fingerprint) -> Standing {
        if let member = member(fingerprint) { return .member(member.name) }
        if let removal = verdicts.removals[fingerprint] {
            return .removed(by: removal.by, at: removal.at)
        }
        return .unknown
    }

    /// Whether both have the same records, in whichever order they came.
    package func holdsTheSame(as other: Household) -> Bool {
        Set(records) == Set(other.records)
    }
}
