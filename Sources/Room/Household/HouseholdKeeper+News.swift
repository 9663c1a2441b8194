import TuttiSecureLinks
import TuttiTrust

// What a node says of its household, and believes of what others say.

extension HouseholdKeeper {
    /// What came of another node's records.
    enum Hearing: Equatable {
        /// They are of another household, or this node has none.
        case ofAnotherHousehold
        /// Who sent them is no member, also by what they say: nothing of them was kept.
        case ofStranger
        /// They were taken in; as many came.
        case taken(Int)
    }

    /// Takes in what another node of the household knows.
    ///
    /// - Parameter peer: who says so, as its link has proved.
    @discardableResult
    func merge(_ bytes: [UInt8], from peer: PublicKey) throws(RoomError) -> Hearing {
        guard let own = household, Household.number(of: bytes) == own.number else {
            return .ofAnotherHousehold
        }
        // As it was told the last time, as a rule.
        if own.bytes == bytes {
            return isMember(peer) ? .taken(own.records.count) : .ofStranger
        }
        let other: Household
        do throws(TrustError) {
            other = try Household(bytes: bytes)
        } catch {
            throw RoomError(.protocolViolation, "\(error)")
        }
        let isTaken = try change { household throws(TrustError) in
            var union = household
            try union.merge(other)
            let peer = peer.fingerprint
            guard household.member(peer) != nil || union.member(peer) != nil else { return false }
            household = union
            return true
        }
        return isTaken ? .taken(other.records.count) : .ofStranger
    }

    /// Takes in how somebody says that it came in, who is not known here.
    ///
    /// - Returns: whether it is a member.
    func seat(_ peer: PublicKey, by excerpt: [MemberRecord]) throws(RoomError) -> Bool {
        // Most often it is for nothing, and need not be written.
        guard try seated(household, peer, excerpt) != nil else { return false }
        return try change { household throws(TrustError) in
            guard let seated = try household.seating(peer.fingerprint, by: excerpt) else {
                return household.member(peer.fingerprint) != nil
            }
            household = seated
            return true
        }
    }

    private func seated(
        _ household: Household?, _ peer: PublicKey, _ excerpt: [MemberRecord]
    ) throws(RoomError) -> Household? {
        do throws(TrustError) {
            return try household?.seating(peer.fingerprint, by: excerpt)
        } catch {
            throw RoomError(.protocolViolation, "\(error)")
        }
    }

    /// Takes in that this node was put out, from whomever: it is signed by a member.
    ///
    /// - Returns: whether it was.
    private func learnsOfRemoval(_ excerpt: [MemberRecord]) throws(RoomError) -> Bool {
        try change { household throws(TrustError) in
            var union = household
            try union.merge(excerpt)
            guard case .removed = union.standing(of: self.fingerprint) else { return false }
            household = union
            return true
        }
    }

    /// The first message to another node.
    var greeting: HouseholdMessage {
        guard let household else {
            return .stranger(
                founding: [UInt8](repeating: 0, count: Fingerprint.byteCount), name)
        }
        return .excerpt(
            founding: household.number.bytes, household.excerpt(seating: fingerprint))
    }

    /// What the first message of another node says.
    struct Heard {
        /// Why the two do not belong together; `nil`: they do.
        var reason: RoomError?
        /// The other side is a member, and does not know all that this node knows.
        var hasNewsForPeer = false
    }

    /// Takes in the first message of another node.
    func take(
        _ greeting: HouseholdMessage, of peer: LinkPeer, at address: HostPort
    ) throws(RoomError) -> Heard {
        let toMove =
            "leave the household of this machine with `tutti household leave`, then `tutti join`"
        switch greeting {
        case .records(let records):
            switch try merge(records, from: peer.key) {
            case .ofAnotherHousehold:
                return Heard(
                    reason: RoomError(
                        .stranger,
                        household == nil
                            ? "this machine belongs to no household: `tutti join` pairs it with that of \(address)"
                            : "the leader at \(address) belongs to another household; to move to that, \(toMove)"
                    ))
            case .ofStranger: return Heard(reason: noMember(peer, address))
            case .taken(let count):
                let isMember = isMember(peer.key)
                return Heard(
                    reason: ownRemoval ?? (isMember ? nil : noMember(peer, address)),
                    hasNewsForPeer: isMember && household?.records.count ?? 0 > count)
            }
        case .excerpt(let founding, let records):
            guard founding == household?.number.bytes else {
                return Heard(reason: noMember(peer, address))
            }
            if try learnsOfRemoval(records) { return Heard(reason: ownRemoval) }
            return Heard(
                reason: RoomError(
                    .stranger,
                    "the leader at \(address) has heard that this machine was removed, and not that it was let in again: `tutti household` on the machine that let it in tells it so"
                ))
        case .stranger(let founding, let name):
            if founding == household?.number.bytes {
                return Heard(
                    reason: RoomError(
                        .stranger,
                        "\"\(name)\" at \(address) does not know this machine, though it is of the same household; try again in a minute, or let one in that it knows (`tutti household accept` there)"
                    ))
            }
            return Heard(
                reason: RoomError(
                    .stranger,
                    household == nil
                        ? "this machine belongs to no household: `tutti join` pairs it with that of \"\(name)\""
                        : "the leader at \(address), \"\(name)\", belongs to another household; to move to that, \(toMove)"
                ))
        case .accept, .decline, .invite, .question, .invited, .presence, .done, .refused,
            .busy, .candidate:
            return Heard(
                reason: RoomError(
                    .protocolViolation,
                    "\(address) does not begin as a node does: is it of this version?"))
        }
    }

    private func noMember(_ peer: LinkPeer, _ address: HostPort) -> RoomError {
        RoomError(
            .stranger,
            "what listens at \(address) is \(peer.fingerprint.short), and no member of this household"
        )
    }

    private var ownRemoval: RoomError? {
        guard case .removed(let by, _)? = ownStanding else { return nil }
        let remover = household?.member(by).map { "\"\($0.name)\"" } ?? by.short
        return RoomError(
            .stranger,
            "\(remover) has removed this machine from the household; `tutti join` pairs it anew")
    }
}
