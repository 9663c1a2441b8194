import TuttiChance
import TuttiTiming

@testable import TuttiTrust

extension Harness {
    static let trust = [
        records, households, pairingMessages, pairing, householdLink, invites, codes, keys, gate,
    ]

    // MARK: Household

    private static let records = Harness(
        name: "member-records",
        seeds: { try House().household.records.map(\.bytes) },
        longest: MemberRecord.longest + 64,
        check: .plain { bytes in
            guard let record = try? MemberRecord(bytes: bytes) else { return }
            try expectEqual(record.bytes, bytes, "a record has one text")
        })

    private static let households = Harness(
        name: "households",
        seeds: {
            let house = try House()
            return [house.household.bytes, house.founding.bytes]
        },
        longest: 8_192,
        check: .plain { bytes in
            let number = Household.number(of: bytes)
            guard let household = try? Household(bytes: bytes) else { return }
            try expectEqual(number, household.number, "which one it is")
            let again = try Household(bytes: household.bytes)
            try expect(again.holdsTheSame(as: household), "written and read again")
            try expectEqual(again.members, household.members, "who is a member")
            try expect(household.bytes.count <= bytes.count, "it has grown by reading")
            var merged = household
            let news = try merged.merge(again)
            try expect(news.isEmpty, "it learns \(news.count) records from itself")
        })

    // MARK: Pairing

    private static let pairingMessages = Harness(
        name: "pairing-messages",
        seeds: { try PairingSeeds.messages().map(\.bytes) },
        check: .plain { bytes in
            let limit = PairingMessage.longestForCandidate
            guard let message = try? PairingMessage(bytes: bytes, limit: limit) else { return }
            try expectEqual(message.bytes, bytes, "a message has one text")
        })

    /// Messages to both sides: a byte says to whom, one what, one how long it is.
    private static let pairing = Harness(
        name: "pairing",
        seeds: { try PairingSeeds.conversations() },
        check: .plain { bytes in
            var script = InputBytes(bytes)
            var now = LocalInstant(nanoseconds: 0)
            let parties = try PairingSeeds.parties()
            var member = MemberPairing(parties.member, nonce: PairingSeeds.nonce(1), at: now)
            var candidate = CandidatePairing(
                parties.candidate, nonce: PairingSeeds.nonce(2), at: now)
            var sent = candidate.advance(to: now).count
            try expectEqual(sent, 1, "it begins with a commitment")
            while !script.isEmpty {
                now += .milliseconds(Int64(script.byte()))
                let (isMember, kind) = (script.byte() & 1 == 0, script.number(below: 6))
                let input: PairingInput =
                    switch kind {
                    case 0: .declined
                    case 1: .closed
                    // Too few: what is found by chance is no finding.
                    case 2: .accepted(digits: "12 345")
                    case 3: .notAdmitted(reason: "there is no room")
                    default: .message(script.bytes(Int(script.byte())))
                    }
                let effects =
                    isMember
                    ? member.receive(input, at: now) : candidate.receive(input, at: now)
                for case .send(let bytes) in effects {
                    sent += 1
                    // Who is declined is told so in a word about households.
                    if case .refused? = try? HouseholdMessage(bytes: bytes) { continue }
                    _ = try PairingMessage(bytes: bytes, limit: bytes.count)
                }
                for effect in effects {
                    if case .admit = effect {
                        throw Finding(description: "admitted by digits that nobody saw")
                    }
                    if case .join = effect { throw Finding(description: "joined a stranger") }
                }
            }
            try expect(sent <= 6, "\(sent) messages are sent in one pairing")
        })

    private static let householdLink = Harness(
        name: "household-link",
        seeds: {
            let household = try House().founding
            let founder = try House.key(1).publicKey.fingerprint
            let messages: [HouseholdMessage] = [
                .records(household.bytes),
                .stranger(founding: household.number.bytes, try MemberName("kitchen")),
                .accept(digits: "482913"), .invite(seconds: 600), .question, .done,
                .invited(try PairingSeeds.invite().text), .refused("no"),
                .excerpt(founding: household.number.bytes, household.records),
                .candidate(try House.key(1).publicKey, try MemberName("phone")),
                .presence(
                    [.init(fingerprint: founder, secondsAgo: 7)],
                    [.init(digits: "482913", name: try MemberName("bedroom"))]),
            ]
            return messages.map(\.bytes)
        },
        check: .plain { bytes in
            guard let message = try? HouseholdMessage(bytes: bytes) else { return }
            try expectEqual(message.bytes, bytes, "a message has one text")
            if case .records(let records) = message, let number = Household.number(of: records),
                let household = try? Household(bytes: records)
            {
                try expectEqual(number, household.number, "whose it is, looked at first")
            }
        })

    // MARK: Texts of people

    private static let invites = Harness(
        name: "invites",
        seeds: { try PairingSeeds.invites() },
        check: .plain { bytes in
            if let claim = try? InviteClaim(bytes: bytes) {
                try expectEqual(claim.bytes, bytes, "a claim has one text")
            }
            if let grant = try? InviteGrant(bytes: bytes) {
                try expectEqual(grant.bytes, bytes, "a grant has one text")
            }
        })

    private static let codes = Harness(
        name: "codes",
        seeds: {
            let invite = try PairingSeeds.invite()
            let fingerprint = try House.key(1).publicKey.fingerprint
            return [invite.text, invite.symbolText, fingerprint.description].map { Array($0.utf8) }
        },
        longest: 256,
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            if let invite = try? Invite(text) {
                try expectEqual(invite, try Invite(invite.text), "an invite typed again")
                try expectEqual(invite, try Invite(invite.symbolText), "an invite scanned")
            }
            if let fingerprint = try? Fingerprint(text) {
                try expectEqual(
                    fingerprint, try Fingerprint(fingerprint.description), "a fingerprint typed")
            }
            if let name = try? MemberName(text) {
                try expect(name.text.utf8.elementsEqual(text.utf8), "a name is kept as it is")
            }
        })

    private static let keys = Harness(
        name: "public-keys",
        seeds: {
            let key = try House.key(1).publicKey
            return [key.bytes, key.subjectPublicKeyInfo]
        },
        longest: 128,
        check: .plain { bytes in
            if let key = try? PublicKey(bytes: bytes) {
                try expectEqual(key.bytes, bytes, "a key has one text")
                try expect(!key.verifies(bytes, over: bytes), "a key signs")
            }
            if let key = try? PublicKey(subjectPublicKeyInfo: bytes) {
                try expectEqual(key.subjectPublicKeyInfo, bytes, "a key has one text")
            }
        })

    // MARK: Datagrams

    /// What was sealed, with changes: pairs of a place and what is done to the byte there. What
    /// remains is thrown at the gate as it is.
    private static let gate = Harness(
        name: "datagram-gate",
        seeds: { [[0], [1, 2, 9, 0xFF, 40, 1], [0] + (try GateScript.sealed(Array(0..<20)))] },
        longest: 1_600,
        check: .plain { bytes in
            var script = InputBytes(bytes)
            let payload = Array(0..<script.byte())
            let sealed = try GateScript.sealed(payload)
            var gate = try GateScript.gate()
            let now = LocalInstant(nanoseconds: 0)
            var changed = sealed
            for _ in 0..<min(8, script.rest.count / 2) {
                let place = Int(script.byte()) % changed.count
                changed[place] ^= script.byte()
            }
            if changed != sealed {
                let verdict = gate.receive(changed, at: now)
                guard case .dropped = verdict else {
                    throw Finding(description: "forged, and let in: \(verdict)")
                }
            }
            let rest = script.all()
            if rest != sealed, case .payload = gate.receive(rest, at: now) {
                throw Finding(description: "nobody sealed it, and it was let in")
            }
            guard case .payload(let got, _, _) = gate.receive(sealed, at: now) else {
                throw Finding(description: "what was sealed is dropped: \(gate.dropped)")
            }
            try expectEqual(Array(got), payload, "what was sealed")
            try expectEqual(gate.receive(sealed, at: now), .dropped(.replay), "a second time")
        })
}
