import Testing
import TuttiChance

@testable import TuttiTrust

/// Somebody (key 3) stands between candidate (2) and member (1), with a link of its own to each.
///
/// With three digits instead of six, so that chance can be seen: it must win one time in a thousand,
/// whatever it does. Seeds are fixed; with 4000 runs and a mean of 4, more than 13 come once in ten
/// thousand seeds.
@Suite struct `Somebody in between` {
    private static let runs = 4_000
    private static let mostWins = 13

    /// Plays one pairing; `choose` draws the nonces of who is in between once it knows all that it
    /// can know by then.
    private func digitsAgree(
        seed: UInt64,
        nonceForCandidate: (_ seen: [PairingMessage]) -> [UInt8],
        nonceForMember: [UInt8]
    ) throws -> Bool {
        var stage = PairingStage(seed: seed, candidateSees: 3, memberSees: 3, digitCount: 3)
        stage.advance()
        let commit = try PairingMessage(bytes: stage.toMember.removeFirst(), limit: 1_000)
        // Towards the member: bound to a nonce before the member's is out.
        let ground = PairingDigits.Ground(
            candidate: key(3).publicKey.fingerprint, member: key(1).publicKey.fingerprint,
            candidateName: name("bath"))
        let own = PairingDigits.commitment(ground, nonce: nonceForMember)
        stage.tellMember(.message(PairingMessage.commit(own, name("bath")).bytes))
        let answer = try PairingMessage(bytes: stage.toCandidate.removeFirst(), limit: 1_000)
        // Towards the candidate: all that came is known but for what the candidate hides.
        let chosen = nonceForCandidate([commit, answer])
        stage.tellCandidate(.message(PairingMessage.nonce(chosen, name("attic")).bytes))
        stage.tellMember(.message(PairingMessage.reveal(nonceForMember).bytes))
        let candidate = try #require(stage.shownByCandidate)
        let member = try #require(stage.shownByMember)
        return candidate == member
    }

    @Test func `who passes nonces on, or draws them, wins as often as chance has it`() throws {
        var random = SplitMix64(seed: 11)
        var wins = [0, 0]
        for run in 0..<UInt64(Self.runs) {
            let own = random.bytes(32)
            let passesOn = run % 2 == 0
            let agrees = try digitsAgree(
                seed: run,
                nonceForCandidate: { seen in
                    guard passesOn, case .nonce(let nonce, _) = seen[1] else { return own }
                    return nonce
                },
                nonceForMember: own)
            if agrees { wins[passesOn ? 1 : 0] += 1 }
        }
        #expect(wins[0] + wins[1] <= Self.mostWins)
        // Otherwise there would be something that never agrees, and the test would say nothing.
        #expect(wins[0] + wins[1] > 0)
    }

    /// It tries nonces until the digits of both sides agree for a nonce of the candidate that it
    /// supposes: all it can do before the candidate reveals.
    @Test func `who tries a thousand nonces against what it supposes wins no more often`() throws {
        var random = SplitMix64(seed: 12)
        var wins = 0
        let runs = 400
        for run in 0..<UInt64(runs) {
            let supposed = random.bytes(32)
            let own = random.bytes(32)
            let agrees = try digitsAgree(
                seed: run,
                nonceForCandidate: { seen in
                    guard case .nonce(let memberNonce, _) = seen[1] else { return own }
                    let target = Self.memberDigits(own, memberNonce)
                    return Self.grind(
                        towards: target, supposing: supposed, tries: 100, &random) ?? own
                },
                nonceForMember: own)
            if agrees { wins += 1 }
        }
        // Mean 0.4; five come once in ten thousand seeds.
        #expect(wins < 5)
    }

    /// The same trying does win where the candidate's nonce is known: what the commitment is for.
    @Test func `without the commitment trying would win`() {
        var random = SplitMix64(seed: 13)
        let (revealed, own, memberNonce) = (random.bytes(32), random.bytes(32), random.bytes(32))
        let target = Self.memberDigits(own, memberNonce)
        let found = Self.grind(towards: target, supposing: revealed, tries: 20_000, &random)
        #expect(found != nil)
    }

    @Test func `who reveals another nonce than it committed to is refused`() throws {
        var stage = PairingStage(seed: 1)
        stage.advance()
        stage.tellMember(.message(stage.toMember.removeFirst()))
        stage.tellMember(.message(PairingMessage.reveal(.init(repeating: 7, count: 32)).bytes))
        guard case .ended(.failed(let reason)) = stage.member.state else {
            Issue.record("it goes on")
            return
        }
        #expect(reason.contains("committed"))
        #expect(stage.shownByMember == nil)
    }

    private static func memberDigits(_ own: [UInt8], _ memberNonce: [UInt8]) -> PairingDigits {
        PairingDigits(
            PairingDigits.Ground(
                candidate: key(3).publicKey.fingerprint, member: key(1).publicKey.fingerprint,
                candidateName: name("bath")),
            candidateNonce: own, memberNonce: memberNonce, memberName: name("attic"), count: 3)
    }

    private static func grind(
        towards target: PairingDigits, supposing nonce: [UInt8], tries: Int,
        _ random: inout SplitMix64
    ) -> [UInt8]? {
        let ground = PairingDigits.Ground(
            candidate: key(2).publicKey.fingerprint, member: key(3).publicKey.fingerprint,
            candidateName: name("bath"))
        var tried = random.bytes(32)
        for count in 0..<tries {
            tried[0] = UInt8(truncatingIfNeeded: count)
            tried[1] = UInt8(truncatingIfNeeded: count >> 8)
            let digits = PairingDigits(
                ground, candidateNonce: nonce, memberNonce: tried, memberName: name("attic"),
                count: 3)
            if digits == target { return tried }
        }
        return nil
    }
}
