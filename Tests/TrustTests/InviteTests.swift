import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiTrust

@Suite struct `Invites` {
    private let member = key(1).publicKey
    private let candidate = key(2).publicKey
    /// As the member knows it.
    private let household = Node(founding: 1).household
    private var fingerprint: Fingerprint { member.fingerprint }

    private func secret(_ seed: UInt64) -> [UInt8] {
        var random = SplitMix64(seed: seed)
        return random.bytes(16)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `a code's text leads back to it, however it is typed`(seed: UInt64) throws {
        let invite = try Invite(secret: secret(seed))
        let text = invite.text
        #expect(text.count == 39 && invite.symbolText.count == 38)
        let alphanumeric = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:")
        #expect(invite.symbolText.allSatisfy { alphanumeric.contains($0) })
        for typed in [
            text, invite.symbolText, text.lowercased(), " " + invite.symbolText.lowercased() + " ",
            text.replacing("-", with: " "), text.filter { $0 != "-" },
        ] {
            #expect(try Invite(typed) == invite)
        }
    }

    /// The format is for ever: a text that was written down once.
    @Test func `the text of 0, 1, 2 … 15 never changes`() throws {
        #expect(
            try Invite(secret: Array(0..<16)).text
                == "0400-20G3-0G2G-C1R8-1450-P30D-1R7V-H3E2")
    }

    @Test func `every slip of one character is found, and every other text refused`() throws {
        let text = Array(try Invite(secret: secret(3)).text)
        for place in text.indices where text[place] != "-" {
            for other in Base32.alphabet.map({ Character(Unicode.Scalar($0)) })
            where other != text[place] {
                var typed = text
                typed[place] = other
                #expect(throws: TrustError.self) { try Invite(String(typed)) }
            }
        }
        for text in ["", "TUTTI:", "TUTTI:TUTTI:", "hello", String(repeating: "0", count: 5_000)] {
            #expect(throws: TrustError.self) { try Invite(text) }
        }
        let newer = [2] + secret(1)
        let error = #expect(throws: TrustError.self) {
            try Invite(Base32.text(newer + SlipCheck.bytes(of: newer)))
        }
        #expect(error?.code == .otherVersion)
    }

    @Test func `who has the code is let in, and knows whom it has joined`() throws {
        var house = Node(founding: 1)
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret(1), for: .seconds(600), by: fingerprint, at: instant(0))
        let typed = try Invite(invite.text)
        let claim = InviteClaim(typed, own: candidate, peer: member)
        let read = try InviteClaim(bytes: claim.bytes)
        #expect(read == claim)
        _ = try book.redeem(read, of: candidate, household, at: instant(1))
        try house.admit(2)
        let grant = try #require(book.grant(read, to: candidate, house.household))
        let joined = try InviteGrant(bytes: grant.bytes)
            .household(by: typed, own: candidate, peer: member)
        #expect(joined.holdsTheSame(as: house.household))
        #expect(book.openCount == 0)
    }

    @Test func `nothing of the code is on the wire`() throws {
        let secret = secret(4)
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret, for: .seconds(600), by: fingerprint, at: instant(0))
        let claim = InviteClaim(invite, own: candidate, peer: member)
        _ = try book.redeem(claim, of: candidate, household, at: instant(1))
        let grant = try #require(book.grant(claim, to: candidate, Node(founding: 1).household))
        for bytes in [claim.bytes, grant.bytes] {
            for start in 0..<secret.count - 3 {
                #expect(!bytes.contains(Array(secret[start..<start + 4])))
            }
        }
    }

    @Test func `what is printed of a secret says nothing of it`() throws {
        let secret = secret(4)
        let invite = try Invite(secret: secret)
        let printed = [
            "\(invite)", "\([invite])", "\(try GroupKey(term: 7, secret: secret + secret))",
        ]
        let start = secret.prefix(4).map(String.init).joined(separator: ", ")
        for text in printed {
            #expect(!text.contains(invite.text.prefix(9)) && !text.contains(start))
        }
        #expect(printed[2].contains("7"))
        let node = key(1)
        #expect("\(node)".contains(node.publicKey.fingerprint.description))
    }

    @Test func `somebody in between cannot use what it sees`() throws {
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret(5), for: .seconds(600), by: fingerprint, at: instant(0))
        let between = key(3).publicKey
        // The candidate's link ends at the one in between, whose own link goes to the member.
        let seen = InviteClaim(invite, own: candidate, peer: between)
        #expect(throws: TrustError.self) {
            _ = try book.redeem(seen, of: between, household, at: instant(1))
        }
        #expect(throws: TrustError.self) {
            _ = try book.redeem(seen, of: candidate, household, at: instant(1))
        }
        // Nor can it play the member: it has no proof for the candidate.
        var house = Node(founding: 3)
        try house.admit(2)
        let fake = InviteGrant(proof: seen.proof, household: house.household.bytes)
        let error = #expect(throws: TrustError.self) {
            try fake.household(by: invite, own: candidate, peer: between)
        }
        #expect(error?.code == .notAuthentic)
        // And the invite is as good as before.
        let claim = InviteClaim(invite, own: candidate, peer: member)
        _ = try book.redeem(claim, of: candidate, household, at: instant(2))
    }

    @Test func `an invite is used once, by one key, which may ask again`() throws {
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret(6), for: .seconds(600), by: fingerprint, at: instant(0))
        let claim = InviteClaim(invite, own: candidate, peer: member)
        _ = try book.redeem(claim, of: candidate, household, at: instant(1))
        _ = try book.redeem(claim, of: candidate, household, at: instant(2))
        let other = key(4).publicKey
        let second = InviteClaim(invite, own: other, peer: member)
        let error = #expect(throws: TrustError.self) {
            _ = try book.redeem(second, of: other, household, at: instant(3))
        }
        #expect(error?.code == .notAuthentic)
        #expect(book.grant(second, to: other, Node(founding: 1).household) == nil)
    }

    @Test func `an invite expires, and there are a few at a time`() throws {
        var book = InviteBook(own: member)
        var invites: [Invite] = []
        for count in 0..<UInt64(InviteBook.most) {
            let life = Nanoseconds.seconds(60 * Int64(count + 1))
            invites.append(
                try book.issue(secret: secret(count), for: life, by: fingerprint, at: instant(0)))
        }
        let error = #expect(throws: TrustError.self) {
            try book.issue(secret: secret(99), for: .seconds(60), by: fingerprint, at: instant(59))
        }
        #expect(error?.code == .tooMany)
        #expect(book.nextDeadline == instant(60))
        let claim = InviteClaim(invites[0], own: candidate, peer: member)
        #expect(throws: TrustError.self) {
            _ = try book.redeem(claim, of: candidate, household, at: instant(60))
        }
        _ = try book.issue(secret: secret(99), for: .seconds(60), by: fingerprint, at: instant(60))
        for life in [Nanoseconds.zero, .seconds(-1), .seconds(86_401), Nanoseconds(.max)] {
            #expect(throws: TrustError.self) {
                try book.issue(secret: secret(100), for: life, by: fingerprint, at: instant(1_000))
            }
        }
    }

    @Test func `used invites take nobody's place`() throws {
        var book = InviteBook(own: member)
        for count in 0..<100 as Range<UInt64> {
            let invite = try book.issue(
                secret: secret(count), for: InviteBook.longestLife, by: fingerprint, at: instant(0))
            let claim = InviteClaim(invite, own: candidate, peer: member)
            _ = try book.redeem(claim, of: candidate, household, at: instant(1))
            // The last few can still be answered once more.
            _ = try book.redeem(claim, of: candidate, household, at: instant(2))
        }
        #expect(book.openCount == 0)
    }

    @Test func `strangers cannot use an invite up, and somebody in between withdraws it`() throws {
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret(7), for: .seconds(600), by: fingerprint, at: instant(0))
        let unknown = InviteClaim(try Invite(secret: secret(8)), own: candidate, peer: member)
        let between = InviteClaim(invite, own: candidate, peer: key(3).publicKey)
        let claim = InviteClaim(invite, own: candidate, peer: member)
        func isRefused(_ claim: InviteClaim) -> Bool {
            do {
                _ = try book.redeem(claim, of: candidate, household, at: instant(1))
                return false
            } catch {
                return error.code == .notAuthentic
            }
        }
        for _ in 0..<1_000 { #expect(isRefused(unknown)) }
        for _ in 1..<InviteBook.mostWrongProofs { #expect(isRefused(between)) }
        #expect(!isRefused(claim))
        #expect(isRefused(between))
        #expect(isRefused(claim))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `changed or noisy claims and grants are refused`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret(9), for: .seconds(600), by: fingerprint, at: instant(0))
        let claim = InviteClaim(invite, own: candidate, peer: member)
        let changed = random.mutated(claim.bytes)
        #expect(throws: TrustError.self) {
            _ = try book.redeem(
                InviteClaim(bytes: changed), of: candidate, household, at: instant(1))
        }
        _ = try book.redeem(claim, of: candidate, household, at: instant(1))
        var house = Node(founding: 1)
        try house.admit(2)
        let grant = try #require(book.grant(claim, to: candidate, house.household)).bytes
        let changedGrant = random.mutated(grant)
        #expect(throws: TrustError.self) {
            try InviteGrant(bytes: changedGrant)
                .household(by: invite, own: candidate, peer: member)
        }
        let noise = random.bytes(Int.random(in: 0...100, using: &random))
        #expect(throws: TrustError.self) { try InviteClaim(bytes: noise) }
        #expect(throws: TrustError.self) { try InviteGrant(bytes: noise) }
    }

    /// Neither by the code with which it came the first time, nor by another that is out.
    @Test func `who was removed does not come back by an invite`() throws {
        var house = Node(founding: 1)
        var book = InviteBook(own: member)
        let invite = try book.issue(
            secret: secret(1), for: .seconds(600), by: fingerprint, at: instant(0))
        let other = try book.issue(
            secret: secret(2), for: .seconds(600), by: fingerprint, at: instant(0))
        let claim = InviteClaim(invite, own: candidate, peer: member)
        _ = try book.redeem(claim, of: candidate, house.household, at: instant(1))
        try house.admit(2)
        _ = try book.redeem(claim, of: candidate, house.household, at: instant(2))
        try house.remove(2)
        let used = #expect(throws: TrustError.self) {
            _ = try book.redeem(claim, of: candidate, house.household, at: instant(3))
        }
        #expect(used?.code == .notAuthentic)
        let fresh = InviteClaim(other, own: candidate, peer: member)
        let removed = #expect(throws: TrustError.self) {
            _ = try book.redeem(fresh, of: candidate, house.household, at: instant(4))
        }
        #expect(removed?.code == .refused)
        // The other invite is as good as before, for somebody else.
        let third = key(3).publicKey
        let claimed = InviteClaim(other, own: third, peer: member)
        let issuer = try book.redeem(claimed, of: third, house.household, at: instant(5))
        #expect(issuer == fingerprint)
    }

    @Test func `the invites of who was removed are withdrawn, also if it is let in again`() throws {
        var house = Node(founding: 1)
        try house.admit(2)
        var book = InviteBook(own: member)
        let invites = try (1...2 as ClosedRange<UInt64>).map {
            try book.issue(
                secret: secret($0), for: .seconds(600), by: candidate.fingerprint, at: instant(0))
        }
        let third = key(3).publicKey
        func isRefused(_ invite: Invite) -> Bool {
            do {
                let claim = InviteClaim(invite, own: third, peer: member)
                _ = try book.redeem(claim, of: third, house.household, at: instant(1))
                return false
            } catch {
                return error.code == .notAuthentic
            }
        }
        try house.remove(2)
        #expect(isRefused(invites[0]))
        #expect(book.openCount == 0)
        try house.admit(2)
        #expect(isRefused(invites[0]) && isRefused(invites[1]))
    }
}
