package import TuttiTiming

/// The side that belongs to a household: answers a commitment, checks what is revealed, shows
/// digits, and lets the candidate in once a person says that they are the same.
///
/// The verbs, and the rule for what does not belong, are those of ``CandidatePairing``.
package struct MemberPairing: Sendable {
    package enum State: Equatable, Sendable {
        case awaitsCommitment
        /// The own nonce is out.
        case awaitsReveal(commitment: [UInt8], MemberName)
        /// Both sides show the digits.
        case comparing(PairingDigits, MemberName)
        /// A person has accepted; the shell makes the record.
        case admitting
        case ended(PairingOutcome)
    }

    package private(set) var state = State.awaitsCommitment
    private let parties: PairingParties
    private let nonce: [UInt8]
    private let end: LocalInstant
    private let digitCount: Int

    /// - Parameter nonce: 32 bytes that nobody can guess, for this pairing alone.
    package init(_ parties: PairingParties, nonce: [UInt8], at now: LocalInstant) {
        self.init(parties, nonce: nonce, at: now, digitCount: PairingDigits.count)
    }

    init(_ parties: PairingParties, nonce: [UInt8], at now: LocalInstant, digitCount: Int) {
        precondition(
            nonce.count == PairingMessage.nonceByteCount, "a nonce of \(nonce.count) bytes")
        self.parties = parties
        self.nonce = nonce
        self.digitCount = digitCount
        end = now + pairingLimit
    }

    package mutating func receive(
        _ input: PairingInput, at now: LocalInstant
    ) -> [PairingEffect] {
        if case .ended = state { return [] }
        guard now < end else { return advance(to: now) }
        switch input {
        case .message(let bytes): return received(bytes)
        case .accepted(let digits): return accepted(digits)
        case .declined:
            return [.send(Self.declining.bytes)] + fail("it was declined here", tellsPeer: false)
        case .admitted(let household):
            guard case .admitting = state else { return [] }
            state = .ended(.paired)
            return [.send(PairingMessage.welcome(household).bytes), .end(.paired)]
        case .notAdmitted(let reason): return fail(reason, tellsPeer: true)
        case .closed: return fail("the other side is gone; try again", tellsPeer: false)
        }
    }

    package mutating func advance(to now: LocalInstant) -> [PairingEffect] {
        if case .ended = state { return [] }
        // What a person has accepted is being written down, which does not take a minute.
        if case .admitting = state { return [] }
        guard now >= end else { return [] }
        return fail("nobody accepted within a minute; try again", tellsPeer: true)
    }

    /// Of the words about households, which a candidate reads at any time.
    private static let declining = HouseholdMessage.refused("this machine was declined there")

    /// `nil` when it is over, or in the shell's hands.
    package var nextDeadline: LocalInstant? {
        switch state {
        case .awaitsCommitment, .awaitsReveal, .comparing: end
        case .admitting, .ended: nil
        }
    }

    /// What is shown now; `nil` before and after.
    package var digits: PairingDigits? {
        if case .comparing(let digits, _) = state { digits } else { nil }
    }

    /// The key that the other side has proved to have.
    var candidate: PublicKey { parties.peer }

    private mutating func accepted(_ typed: String) -> [PairingEffect] {
        guard case .comparing(let digits, let name) = state else {
            return fail("it was accepted before there was anything to compare", tellsPeer: true)
        }
        guard digits.matches(typed) else {
            return fail(
                "the digits are not the same: somebody may stand between the two; try again",
                tellsPeer: true)
        }
        state = .admitting
        return [.admit(parties.peer, name)]
    }

    private mutating func received(_ bytes: [UInt8]) -> [PairingEffect] {
        let message: PairingMessage
        do {
            message = try PairingMessage(bytes: bytes, limit: PairingMessage.longestForMember)
        } catch {
            return fail("\(error)", tellsPeer: true)
        }
        switch (state, message) {
        case (_, .end): return fail("the other side ended it", tellsPeer: false)
        case (.awaitsCommitment, .commit(let hash, let name)):
            state = .awaitsReveal(commitment: hash, name)
            return [.send(PairingMessage.nonce(nonce, parties.ownName).bytes)]
        case (.awaitsReveal(let commitment, let name), .reveal(let revealed)):
            let ground = PairingDigits.Ground(
                candidate: parties.peer.fingerprint, member: parties.own.fingerprint,
                candidateName: name)
            guard PairingDigits.commitment(ground, nonce: revealed) == commitment else {
                return fail("the other side does not keep to what it committed to", tellsPeer: true)
            }
            let digits = PairingDigits(
                ground, candidateNonce: revealed, memberNonce: nonce, memberName: parties.ownName,
                count: digitCount)
            state = .comparing(digits, name)
            return [.show(digits, name)]
        case (.awaitsCommitment, _), (.awaitsReveal, _), (.comparing, _), (.admitting, _),
            (.ended, _):
            return fail("a message came that has no place now", tellsPeer: true)
        }
    }

    private mutating func fail(_ reason: String, tellsPeer: Bool) -> [PairingEffect] {
        let outcome = PairingOutcome.failed(reason: reason)
        state = .ended(outcome)
        return (tellsPeer ? [.send(PairingMessage.end.bytes)] : []) + [.end(outcome)]
    }
}
