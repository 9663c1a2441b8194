import TuttiChance
import TuttiTiming

@testable import TuttiTrust

/// A household of three that has seen every kind of deed; the founder's alone beside it.
struct House {
    let founding: Household
    let household: Household

    static func key(_ number: UInt64) throws -> NodeKey {
        try NodeKey(bytes: (1...32).map { UInt8(truncatingIfNeeded: $0 * number) })
    }

    init() throws {
        let founder = try Self.key(1)
        func salt(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 16) }
        var household = try Household(
            foundedBy: founder, name: try MemberName("kitchen"), salt: salt(0), at: 1_000)
        founding = household
        for number in 2...4 as ClosedRange<UInt64> {
            _ = try household.admit(
                try Self.key(number).publicKey, as: try MemberName("room \(number)"), by: founder,
                salt: salt(UInt8(number)), at: 2_000)
        }
        let last = try Self.key(4).publicKey.fingerprint
        _ = try household.rename(
            last, to: try MemberName("küche"), by: try Self.key(2), salt: salt(5), at: 3_000)
        _ = try household.remove(last, by: founder, salt: salt(6), at: 4_000)
        self.household = household
    }
}

enum PairingSeeds {
    static func nonce(_ number: UInt8) -> [UInt8] {
        [UInt8](repeating: number, count: PairingMessage.nonceByteCount)
    }

    static func parties() throws -> (member: PairingParties, candidate: PairingParties) {
        let (one, other) = (try House.key(1).publicKey, try House.key(5).publicKey)
        return (
            PairingParties(own: one, peer: other, ownName: try MemberName("kitchen")),
            PairingParties(own: other, peer: one, ownName: try MemberName("attic"))
        )
    }

    static func messages() throws -> [PairingMessage] {
        let name = try MemberName("attic")
        return [
            .commit(nonce(3), name), .nonce(nonce(4), name), .reveal(nonce(5)),
            .welcome(try House().founding.bytes), .end,
        ]
    }

    /// One that goes its way until somebody has to look, and one with every message.
    static func conversations() throws -> [[UInt8]] {
        let parties = try parties()
        let now = LocalInstant(nanoseconds: 0)
        var member = MemberPairing(parties.member, nonce: nonce(1), at: now)
        var candidate = CandidatePairing(parties.candidate, nonce: nonce(2), at: now)
        var script: [UInt8] = []
        var waiting = candidate.advance(to: now).map { (effect: $0, isToMember: true) }
        while let next = waiting.popLast() {
            guard case .send(let bytes) = next.effect else { continue }
            script += [1, next.isToMember ? 0 : 1, 4, UInt8(bytes.count)] + bytes
            let effects =
                next.isToMember
                ? member.receive(.message(bytes), at: now)
                : candidate.receive(.message(bytes), at: now)
            waiting += effects.map { ($0, !next.isToMember) }
        }
        let all = try messages().map(\.bytes).filter { $0.count < 256 }.flatMap { bytes in
            [1, 0, 5, UInt8(bytes.count)] as [UInt8] + bytes
        }
        return [script, all]
    }

    static func invite() throws -> Invite {
        try Invite(secret: [UInt8](repeating: 7, count: Invite.secretByteCount))
    }

    static func invites() throws -> [[UInt8]] {
        let (own, peer) = (try House.key(5).publicKey, try House.key(1).publicKey)
        let invite = try invite()
        let proof = invite.memberProof(candidate: own.fingerprint, member: peer.fingerprint)
        return [
            InviteClaim(invite, own: own, peer: peer).bytes,
            InviteGrant(proof: proof, household: try House().founding.bytes).bytes,
        ]
    }
}

enum GateScript {
    private static let channel = DatagramChannel(.commit, .fromLeader)

    private static func key() throws -> GroupKey {
        try GroupKey(term: 9, secret: [UInt8](repeating: 3, count: GroupKey.byteCount))
    }

    static func sealed(_ payload: [UInt8]) throws -> [UInt8] {
        var sealer = DatagramSealer(try key(), channel, as: .leader)
        return sealer.seal(payload, to: .everybody) ?? []
    }

    static func gate() throws -> DatagramGate {
        var gate = DatagramGate(try key(), channel, as: SenderNumber(4))
        try gate.allow(.leader)
        return gate
    }
}
