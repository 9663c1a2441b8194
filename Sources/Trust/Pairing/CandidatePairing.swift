package import TuttiTiming

/// The side that belongs to nobody yet: commits, reveals, shows digits, waits to be welcomed.
///
/// ``receive(_:at:)`` takes in what happened, ``advance(to:)`` does what is due, ``nextDeadline``
/// says when. Whatever is not the one message that may come now ends it: a try is cheap for a
/// person, and more than one answer is a gift to somebody who is guessing.
package struct CandidatePairing: Sendable {
    package enum State: Equatable, Sendable {
        case fresh
        /// The commitment is out.
        case committed
        /// The nonce is out too; both sides show the digits.
        case comparing(PairingDigits)
        case ended(PairingOutcome)
    }

    package private(set) var state = State.fresh
    private let parties: PairingParties
    private let nonce: [UInt8]
    private let end: LocalInstant
    private let start: LocalInstant
    private let digitCount: Int

    /// - Parameter nonce: 32 bytes that nobody can guess, for this pairing alone.
    package init(
        _ parties: PairingParties, nonce: [UInt8], at now: LocalInstant
    ) {
        self.init(parties, nonce: nonce, at: now, digitCount: PairingDigits.count)
    }

    init(_ parties: PairingParties, nonce: [UInt8], at now: LocalInstant, digitCount: Int) {
        precondition(
            nonce.count == PairingMessage.nonceByteCount, "a nonce of \(nonce.count) bytes")
        self.parties = parties
        self.nonce = nonce
        self.digitCount = digitCount
        start = now
        end = now + pairingLimit
    }

    package mutating func receive(
        _ input: PairingInput, at now: LocalInstant
    ) -> [PairingEffect] {
        if case .ended = state { return [] }
        guard now < end else { return advance(to: now) }
        switch input {
        case .message(let bytes): return received(bytes)
        case .declined: return fail("it was declined here", tellsPeer: true)
        case .closed: return fail("the other side is gone; try again", tellsPeer: false)
        case .accepted, .admitted, .notAdmitted:
            return fail("only a member can accept", tellsPeer: true)
        }
    }

    package mutating func advance(to now: LocalInstant) -> [PairingEffect] {
        if case .ended = state { return [] }
        guard now < end else {
            return fail("nobody accepted within a minute; try again", tellsPeer: true)
        }
        guard case .fresh = state, now >= start else { return [] }
        state = .committed
        let hash = PairingDigits.commitment(ground, nonce: nonce)
        return [.send(PairingMessage.commit(hash, parties.ownName).bytes)]
    }

    /// `nil` when it is over.
    package var nextDeadline: LocalInstant? {
        switch state {
        case .fresh: start
        case .committed, .comparing: end
        case .ended: nil
        }
    }

    private var ground: PairingDigits.Ground {
        PairingDigits.Ground(
            candidate: parties.own.fingerprint, member: parties.peer.fingerprint,
            candidateName: parties.ownName)
    }

    private mutating func received(_ bytes: [UInt8]) -> [PairingEffect] {
        if case .refused(let reason)? = try? HouseholdMessage(bytes: bytes) {
            return fail(reason, tellsPeer: false)
        }
        let message: PairingMessage
        do {
            message = try PairingMessage(bytes: bytes, limit: PairingMessage.longestForCandidate)
        } catch {
            return fail("\(error)", tellsPeer: true)
        }
        switch (state, message) {
        case (_, .end): return fail("the other side ended it", tellsPeer: false)
        case (.committed, .nonce(let memberNonce, let name)):
            let digits = PairingDigits(
                ground, candidateNonce: nonce, memberNonce: memberNonce, memberName: name,
                count: digitCount)
            state = .comparing(digits)
            return [.send(PairingMessage.reveal(nonce).bytes), .show(digits, name)]
        case (.comparing, .welcome(let bytes)): return welcomed(bytes)
        case (.fresh, _), (.committed, _), (.comparing, _), (.ended, _):
            return fail("a message came that has no place now", tellsPeer: true)
        }
    }

    private mutating func welcomed(_ bytes: [UInt8]) -> [PairingEffect] {
        do {
            let household = try Household(bytes: bytes)
            guard household.member(parties.own.fingerprint) != nil,
                household.member(parties.peer.fingerprint) != nil
            else {
                throw TrustError(
                    .notAuthentic, "household", "does not have both of us as members; try again")
            }
            state = .ended(.paired)
            return [.join(household), .end(.paired)]
        } catch {
            return fail("\(error)", tellsPeer: true)
        }
    }

    private mutating func fail(_ reason: String, tellsPeer: Bool) -> [PairingEffect] {
        let outcome = PairingOutcome.failed(reason: reason)
        state = .ended(outcome)
        return (tellsPeer ? [.send(PairingMessage.end.bytes)] : []) + [.end(outcome)]
    }
}
