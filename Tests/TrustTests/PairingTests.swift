import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiTrust

/// Both sides of a pairing and the wire between them, in a test's hand.
struct PairingStage {
    var candidate: CandidatePairing
    var member: MemberPairing
    var household: Node
    var now = instant(100)
    /// Sent and not delivered yet.
    var toMember: [[UInt8]] = []
    var toCandidate: [[UInt8]] = []
    var shownByCandidate: PairingDigits?
    var shownByMember: PairingDigits?
    var joined: Household?
    private static let founder = Node(founding: 1)

    /// - Parameter seen: whose key each side sees; the other's, unless somebody stands between.
    init(
        seed: UInt64, candidateSees: UInt64 = 1, memberSees: UInt64 = 2,
        digitCount: Int = PairingDigits.count
    ) {
        var random = SplitMix64(seed: seed)
        household = Self.founder
        candidate = CandidatePairing(
            PairingParties(
                own: key(2).publicKey, peer: key(candidateSees).publicKey, ownName: name("bath")),
            nonce: random.bytes(32), at: now, digitCount: digitCount)
        member = MemberPairing(
            PairingParties(
                own: key(1).publicKey, peer: key(memberSees).publicKey, ownName: name("attic")),
            nonce: random.bytes(32), at: now, digitCount: digitCount)
    }

    mutating func perform(_ effects: [PairingEffect], ofCandidate: Bool) {
        for effect in effects {
            switch effect {
            case .send(let bytes):
                if ofCandidate { toMember.append(bytes) } else { toCandidate.append(bytes) }
            case .show(let digits, _):
                if ofCandidate { shownByCandidate = digits } else { shownByMember = digits }
            case .admit:
                do {
                    try household.admit(2)
                    tellMember(.admitted(household.household.bytes))
                } catch {
                    tellMember(.notAdmitted(reason: "\(error)"))
                }
            case .join(let household): joined = household
            case .end: break
            }
        }
    }

    mutating func tellCandidate(_ input: PairingInput) {
        perform(candidate.receive(input, at: now), ofCandidate: true)
    }

    mutating func tellMember(_ input: PairingInput) {
        perform(member.receive(input, at: now), ofCandidate: false)
    }

    mutating func advance() {
        perform(candidate.advance(to: now), ofCandidate: true)
        perform(member.advance(to: now), ofCandidate: false)
    }

    /// Delivers until nothing is under way.
    mutating func deliver() {
        while !toMember.isEmpty || !toCandidate.isEmpty {
            if !toMember.isEmpty { tellMember(.message(toMember.removeFirst())) }
            if !toCandidate.isEmpty { tellCandidate(.message(toCandidate.removeFirst())) }
        }
    }

    var hasEnded: Bool {
        if case .ended = candidate.state, case .ended = member.state { true } else { false }
    }

    /// No half pairing: who has joined was admitted by a person.
    var isConsistent: Bool {
        let isIn = household.has(2)
        return (candidate.state != .ended(.paired) || isIn)
            && (member.state == .ended(.paired)) == isIn
            && (joined != nil) == (candidate.state == .ended(.paired))
    }
}

@Suite struct `Pairing` {
    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `both show the same six digits, a person accepts, and both have the household`(
        seed: UInt64
    ) throws {
        var stage = PairingStage(seed: seed)
        stage.advance()
        stage.deliver()
        let digits = try #require(stage.shownByCandidate)
        #expect(stage.shownByMember == digits)
        #expect(digits.text.count == 6 && digits.text.allSatisfy(\.isNumber))
        #expect(digits.matches(digits.description) && digits.matches(digits.text))
        #expect(stage.joined == nil && !stage.household.has(2))
        stage.tellMember(.accepted(digits: digits.description))
        stage.deliver()
        #expect(stage.candidate.state == .ended(.paired))
        #expect(stage.member.state == .ended(.paired))
        #expect(stage.joined?.holdsTheSame(as: stage.household.household) == true)
        #expect(stage.household.name(of: 2) == "node 2")
    }

    @Test func `nobody is let in by other digits, too early, or by the candidate itself`() throws {
        for wrong in ["", "000000", "12345", "٠٠٠٠٠٠", String(repeating: "1", count: 1_000)] {
            var stage = PairingStage(seed: 1)
            stage.advance()
            stage.deliver()
            try #require(stage.shownByMember?.text != wrong)
            stage.tellMember(.accepted(digits: wrong))
            stage.deliver()
            #expect(stage.hasEnded && stage.isConsistent && stage.joined == nil)
        }
        var early = PairingStage(seed: 2)
        early.advance()
        early.tellMember(.accepted(digits: "000000"))
        early.deliver()
        #expect(early.hasEnded && early.isConsistent && early.joined == nil)
        var own = PairingStage(seed: 3)
        own.advance()
        own.deliver()
        own.tellCandidate(.accepted(digits: own.shownByCandidate!.text))
        own.deliver()
        #expect(own.hasEnded && own.isConsistent && own.joined == nil)
    }

    @Test func `who is declined is told so, and not that it just ended`() {
        var stage = PairingStage(seed: 5)
        stage.advance()
        stage.deliver()
        stage.tellMember(.declined)
        stage.deliver()
        #expect(stage.candidate.state == .ended(.failed(reason: "this machine was declined there")))
        #expect(stage.member.state == .ended(.failed(reason: "it was declined here")))
        #expect(stage.joined == nil)
    }

    @Test func `after a minute both give up, and nothing comes of a late word`() {
        for seconds in [59.9, 60] {
            var stage = PairingStage(seed: 4)
            stage.advance()
            stage.deliver()
            let digits = stage.shownByMember!.text
            #expect(stage.member.nextDeadline == stage.candidate.nextDeadline)
            stage.now = instant(100 + seconds)
            stage.advance()
            stage.tellMember(.accepted(digits: digits))
            stage.deliver()
            #expect(stage.hasEnded && stage.isConsistent)
            #expect((stage.joined != nil) == (seconds < 60))
            #expect(stage.member.nextDeadline == nil && stage.candidate.nextDeadline == nil)
        }
    }

    /// Each side without the other's messages, and with each message lost, doubled, changed, swapped,
    /// from another pairing, or far too long.
    @Test(arguments: 1...300 as ClosedRange<UInt64>)
    func `whatever happens to the messages, both end, and never one alone as paired`(
        seed: UInt64
    ) {
        var random = SplitMix64(seed: seed)
        var stage = PairingStage(seed: seed)
        var other = PairingStage(seed: seed + 1_000)
        other.advance()
        let old = other.toMember[0]
        stage.advance()
        for _ in 0..<40 {
            let isToMember = random.chance(0.5)
            var queue = isToMember ? stage.toMember : stage.toCandidate
            if !queue.isEmpty {
                var message = queue.removeFirst()
                switch Int.random(in: 0..<24, using: &random) {
                case 0: message = random.mutated(message)
                case 1: queue.insert(message, at: 0)
                case 2: queue.append(old)
                case 3: message = Array(message.dropLast())
                case 4: message += random.bytes(1_000)
                case 5: continue
                case 6: queue.shuffle(using: &random)
                default: break
                }
                if isToMember { stage.toMember = queue } else { stage.toCandidate = queue }
                if isToMember { stage.tellMember(.message(message)) }
                if !isToMember { stage.tellCandidate(.message(message)) }
            } else if let digits = stage.shownByCandidate, random.chance(0.3) {
                stage.tellMember(.accepted(digits: digits.text))
            }
            #expect(stage.isConsistent)
        }
        stage.now = instant(161)
        stage.advance()
        #expect(stage.hasEnded && stage.isConsistent)
    }

    @Test func `messages of every kind come back as they were, and no other bytes are one`() throws
    {
        let messages: [PairingMessage] = [
            .commit(.init(repeating: 3, count: 32), name("Küche")),
            .nonce(.init(repeating: 4, count: 32), name("b")),
            .reveal(.init(repeating: 5, count: 32)), .welcome([1, 2, 3]), .end,
        ]
        for message in messages {
            let bytes = message.bytes
            #expect(try PairingMessage(bytes: bytes, limit: 1_000) == message)
            #expect(throws: TrustError.self) { try PairingMessage(bytes: bytes, limit: 1) }
            if case .welcome = message { continue }
            #expect(throws: TrustError.self) {
                try PairingMessage(bytes: bytes + [0], limit: 1_000)
            }
            #expect(throws: TrustError.self) {
                try PairingMessage(bytes: Array(bytes.dropLast()), limit: 1_000)
            }
        }
        let newer = #expect(throws: TrustError.self) {
            try PairingMessage(bytes: [2, 5], limit: 1_000)
        }
        #expect(newer?.code == .otherVersion)
    }

    /// Two that differ in one thing agree by chance alone: of 60, none with nearly certainty.
    @Test func `digits and commitment depend on both keys, both names and both nonces`() {
        func ground(_ candidate: UInt64, _ member: UInt64, _ text: String) -> PairingDigits.Ground {
            PairingDigits.Ground(
                candidate: key(candidate).publicKey.fingerprint,
                member: key(member).publicKey.fingerprint, candidateName: name(text))
        }
        func digits(
            _ ground: PairingDigits.Ground, _ a: UInt8 = 0, _ b: UInt8 = 0, _ text: String = "m"
        ) -> PairingDigits {
            PairingDigits(
                ground, candidateNonce: .init(repeating: a, count: 32),
                memberNonce: .init(repeating: b, count: 32), memberName: name(text))
        }
        let plain = ground(1, 2, "c")
        var texts = [digits(plain).text]
        var commitments = [PairingDigits.commitment(plain, nonce: .init(repeating: 0, count: 32))]
        for other in 3...12 as ClosedRange<UInt64> {
            let byte = UInt8(other)
            for changed in [
                ground(other, 2, "c"), ground(1, other, "c"), ground(1, 2, "c\(other)"),
            ] {
                texts.append(digits(changed).text)
                commitments.append(
                    PairingDigits.commitment(changed, nonce: .init(repeating: 0, count: 32)))
            }
            texts += [digits(plain, byte).text, digits(plain, 0, byte).text]
            texts.append(digits(plain, 0, 0, "m\(other)").text)
            commitments.append(
                PairingDigits.commitment(plain, nonce: .init(repeating: byte, count: 32)))
        }
        // Nor do they stay the same where the two sides change places.
        texts.append(digits(ground(2, 1, "c")).text)
        #expect(Set(texts).count == texts.count)
        #expect(Set(commitments).count == commitments.count)
    }

    @Test func `a member's welcome without both in it is not joined`() throws {
        // One without the candidate, one without the member that it has talked to.
        let foreign = Node(founding: 9)
        var other = Node(founding: 9)
        try other.admit(2)
        for household in [foreign.household, other.household] {
            var stage = PairingStage(seed: 5)
            stage.advance()
            stage.deliver()
            stage.toCandidate = [PairingMessage.welcome(household.bytes).bytes]
            stage.deliver()
            #expect(stage.hasEnded && stage.joined == nil)
        }
    }
}
