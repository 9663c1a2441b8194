package import TuttiTiming

/// The invites that a member has given out, until they are used or expire.
///
/// They are kept in memory alone: no disk that is stolen has one, and a member that was restarted
/// makes new ones.
package struct InviteBook: Sendable {
    /// Invites at once that nobody has used: a few machines that are set up together. As many used
    /// ones are remembered at least.
    package static let most = 8
    package static let longestLife = Nanoseconds.seconds(24 * 3_600)
    /// Wrong proofs that an invite stands. Its number is known to nobody but who has the code and who
    /// stands between the two; after so many it is the latter, and the invite is withdrawn. Claims
    /// of other numbers cost a look into a table, and are not counted.
    package static let mostWrongProofs = 16

    private enum Use: Equatable, Sendable {
        case open
        /// By this key alone; it may ask again where the answer got lost.
        case used(Fingerprint)
    }

    private struct Page: Sendable {
        var invite: Invite
        /// Who has asked for it, and answers for whom it lets in.
        var issuer: Fingerprint
        var expiry: LocalInstant
        var use: Use
        var wrongProofCount = 0
    }

    private let own: PublicKey
    private var pages: [[UInt8]: Page] = [:]

    package init(own: PublicKey) { self.own = own }

    /// Gives out an invite.
    ///
    /// - Parameters:
    ///   - secret: 16 bytes that nobody can guess.
    ///   - life: above zero, at most a day.
    ///   - issuer: the member that has asked for it.
    package mutating func issue(
        secret: [UInt8], for life: Nanoseconds, by issuer: Fingerprint, at now: LocalInstant
    ) throws(TrustError) -> Invite {
        guard life > .zero, life <= Self.longestLife else {
            throw TrustError(
                .outOfRange, "invite", "can be good for up to a day; give a time above zero")
        }
        advance(to: now)
        guard openCount < Self.most else {
            throw TrustError(
                .tooMany, "invite",
                "\(Self.most) are out already; wait until one is used or expires")
        }
        let invite = try Invite(secret: secret)
        guard pages[invite.number] == nil else {
            throw TrustError(.refused, "invite", "is out already; draw other bytes")
        }
        if pages.count >= 2 * Self.most { forgetUsed() }
        pages[invite.number] = Page(
            invite: invite, issuer: issuer, expiry: now + life, use: .open)
        return invite
    }

    /// Whether a candidate may be let in. If so, let in its key unless it is a member already, then
    /// ``grant(_:to:_:)`` it.
    ///
    /// - Parameters:
    ///   - candidate: the key of the certificate that it has proved to have in this link.
    ///   - household: as it is now: an invite is as good as the member that has asked for it, and
    ///     leads nobody back who was removed.
    /// - Returns: the member that has asked for the invite.
    /// - Throws: one error for an invite that is wrong, expired, unknown or used: a stranger learns
    ///   nothing from it.
    package mutating func redeem(
        _ claim: InviteClaim, of candidate: PublicKey, _ household: Household, at now: LocalInstant
    ) throws(TrustError) -> Fingerprint {
        advance(to: now)
        withdraw(household)
        let fingerprint = candidate.fingerprint
        guard var page = pages[claim.number] else { throw Self.refusal }
        let proof = page.invite.candidateProof(candidate: fingerprint, member: own.fingerprint)
        guard claim.proof.isSecretlyEqual(to: proof) else {
            page.wrongProofCount += 1
            let isWithdrawn = page.wrongProofCount >= Self.mostWrongProofs
            pages[claim.number] = isWithdrawn ? nil : page
            throw Self.refusal
        }
        guard page.use == .open || page.use == .used(fingerprint) else { throw Self.refusal }
        // It has the code, and may know why.
        if case .removed = household.standing(of: fingerprint) { throw Self.wasRemoved }
        page.use = .used(fingerprint)
        pages[claim.number] = page
        return page.issuer
    }

    private static let refusal = TrustError(
        .notAuthentic, "invite",
        "is not good here: wrong, used or too old; ask for another (`tutti household invite`)")

    private static let wasRemoved = TrustError(
        .refused, "invite",
        "leads back nobody who was removed; pair this machine by digits (`tutti join` without a code)"
    )

    /// The household has changed: the invites of who belongs to it no more are good for nothing, and
    /// neither are those that were used by somebody who was removed since.
    package mutating func withdraw(_ household: Household) {
        pages = pages.filter { _, page in
            guard household.member(page.issuer) != nil else { return false }
            guard case .used(let user) = page.use,
                case .removed = household.standing(of: user)
            else { return true }
            return false
        }
    }

    /// The answer to a claim that ``redeem(_:of:at:)`` has found good.
    ///
    /// - Parameter household: with the candidate in it.
    /// - Returns: `nil` where the invite has expired meanwhile.
    package func grant(
        _ claim: InviteClaim, to candidate: PublicKey, _ household: Household
    ) -> InviteGrant? {
        guard let page = pages[claim.number], page.use == .used(candidate.fingerprint) else {
            return nil
        }
        let proof = page.invite.memberProof(
            candidate: candidate.fingerprint, member: own.fingerprint)
        return InviteGrant(proof: proof, household: household.bytes)
    }

    /// Of those that are used, the one that would expire first: it is kept only so that its answer
    /// can be asked for again.
    private mutating func forgetUsed() {
        let used = pages.filter { $0.value.use != .open }
        if let oldest = used.min(by: { $0.value.expiry < $1.value.expiry }) {
            pages[oldest.key] = nil
        }
    }

    /// Forgets what has expired.
    package mutating func advance(to now: LocalInstant) {
        pages = pages.filter { now < $0.value.expiry }
    }

    /// When the next one expires; `nil` while none is out.
    package var nextDeadline: LocalInstant? { pages.values.map(\.expiry).min() }

    /// How many could still be used by anybody.
    package var openCount: Int { pages.values.count { $0.use == .open } }
}
