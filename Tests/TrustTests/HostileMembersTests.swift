import Testing

@testable import TuttiTrust

/// What members that mean ill, and former ones, try with records of their own.
@Suite struct `Hostile members` {
    /// What a member has planted before its removal hangs on the contradiction that it makes with its
    /// revenge, and has no say in it.
    @Test func `revenge does not bring back a removal that is void with its signer's admission`()
        throws
    {
        var nodes = try house(4)
        // 3 lets in 5, which removes 4; then 2 removes 3, and keeps nothing of it.
        try nodes[2].admit(5)
        var five = Node(5, in: nodes[2].household)
        try five.remove(4)
        let revenge = nodes[2]
        try nodes[1].household.merge(five.household)
        try nodes[1].remove(3, keepsDeeds: false)
        #expect(nodes[1].has(4) && !nodes[1].has(5))
        var late = revenge
        try nodes[1].household.merge(try late.remove(2))
        #expect(nodes[1].has(2) && nodes[1].has(4) && !nodes[1].has(3) && !nodes[1].has(5))
    }

    /// … nor does it where the remover itself hangs on who is removed in revenge.
    @Test func `revenge upon who let in the remover comes too late`() throws {
        var founder = Node(founding: 1)
        try founder.admit(2)
        try founder.admit(3)
        var second = Node(2, in: founder.household)
        try second.admit(4)
        var third = Node(3, in: second.household)
        var fourth = Node(4, in: second.household)
        try fourth.remove(3)
        try founder.household.merge(fourth.household)
        #expect(!founder.has(3))
        try founder.household.merge(try third.remove(2, keepsDeeds: false))
        #expect(founder.has(2) && founder.has(4) && !founder.has(3))
    }

    /// Each was let in by one whom the other has removed: nobody's seat is certain.
    @Test func `two removals whose signers void each other's admissions: the first counts`() throws
    {
        var nodes = try house(3)
        try nodes[1].admit(4)
        try nodes[2].admit(5)
        var four = Node(4, in: nodes[1].household)
        var five = Node(5, in: nodes[2].household)
        try four.remove(3, keepsDeeds: false)
        try five.remove(2, keepsDeeds: false)
        try nodes[0].household.merge(four.household)
        try nodes[0].household.merge(five.household)
        #expect(nodes[0].has(2) && nodes[0].has(4) && !nodes[0].has(3) && !nodes[0].has(5))
    }

    @Test func `nobody lets itself in once more`() throws {
        var nodes = try house(2)
        let seat = nodes[1].household.records[1].number
        let own = try MemberRecord(
            .admit(nodes[1].key.publicKey, name("twice")), from: seat, by: nodes[1].key,
            salt: nodes[1].random.bytes(16), at: 0)
        let error = #expect(throws: TrustError.self) { try nodes[0].household.merge([own]) }
        #expect(error?.code == .refused)
        #expect(nodes[0].household.records.count == 2)
    }

    /// By somebody else whom it has let in, and who lets it in as often as there is room.
    @Test func `a member that was let in many times can be removed`() throws {
        var nodes = try house(2)
        try nodes[1].admit(3)
        var third = Node(3, in: nodes[1].household)
        let seat = third.household.records[2].number
        let again = try (0..<Household.mostRecords - 3).map { _ in
            try MemberRecord(
                .admit(nodes[1].key.publicKey, name("again")), from: seat, by: third.key,
                salt: third.random.bytes(16), at: 0)
        }
        try nodes[0].household.merge(nodes[1].household)
        try nodes[0].household.merge(again)
        let error = #expect(throws: TrustError.self) { try nodes[0].remove(2) }
        #expect(error?.code == .tooMany && error?.detail.contains("--stolen") == true)
        let made = try nodes[0].remove(2, keepsDeeds: false)
        #expect(made.count == 1)
        #expect(nodes[0].household.members.map(\.fingerprint) == [nodes[0].fingerprint])
    }

    @Test func `a removal keeps no way in for who is removed`() throws {
        var nodes = try house(3)
        // 2 has let in 4, and 4 has let in 2, each without knowing that it sits.
        try nodes[1].admit(4)
        var four = Node(4, in: nodes[1].household)
        let seat = four.household.records[3].number
        let again = try MemberRecord(
            .admit(key(2).publicKey, name("again")), from: seat, by: four.key,
            salt: four.random.bytes(16), at: 0)
        try nodes[0].household.merge(four.household)
        try nodes[0].household.merge([again])
        let made = try nodes[0].remove(2)
        #expect(made.count == 2)
        #expect(!nodes[0].has(2) && nodes[0].has(4) && nodes[0].has(3))
    }

    @Test func `who has two seats leaves both`() throws {
        var nodes = try house(3)
        let seat = nodes[2].household.records[2].number
        let again = try MemberRecord(
            .admit(key(2).publicKey, name("again")), from: seat, by: nodes[2].key,
            salt: nodes[2].random.bytes(16), at: 0)
        try nodes[1].household.merge([again])
        try nodes[1].remove(2)
        #expect(!nodes[1].has(2) && nodes[1].has(1) && nodes[1].has(3))
    }

    @Test func `a name that counts is not lost to a later one that does not`() throws {
        var nodes = try house(4)
        try nodes[1].rename(4, "attic")
        try nodes[0].household.merge(nodes[1].household)
        var late = nodes[1]
        try nodes[0].remove(2)
        #expect(nodes[0].name(of: 4) == "attic")
        let revenge = try late.rename(4, "nobody's")
        try nodes[0].household.merge([revenge])
        #expect(nodes[0].name(of: 4) == "attic")
    }

    @Test func `a member can be renamed as often as anybody likes`() throws {
        var node = try house(2)[0]
        let seats = node.household.records.map(\.number)
        let most = UInt32(Household.mostRecords - seats.count)
        let names = try (1...most).map { revision in
            try MemberRecord(
                .rename(seats[1], name("name \(revision)"), revision: revision), from: seats[0],
                by: node.key, salt: node.random.bytes(16), at: 0)
        }
        try node.household.merge(names)
        #expect(node.household.records.count == Household.mostRecords)
        for count in 1...3 { try node.rename(2, "again \(count)") }
        #expect(node.name(of: 2) == "again 3")
        #expect(node.household.records.count < 10)
    }

    @Test func `the last name there can be goes with who gave it`() throws {
        var nodes = try house(3)
        let seats = nodes[1].household.records.map(\.number)
        let last = try MemberRecord(
            .rename(seats[2], name("for ever"), revision: MemberRecord.mostRevision),
            from: seats[1], by: nodes[1].key, salt: nodes[1].random.bytes(16), at: 0)
        try nodes[0].household.merge([last])
        let error = #expect(throws: TrustError.self) { try nodes[0].rename(3, "attic") }
        #expect(error?.code == .tooMany)
        try nodes[0].remove(2)
        #expect(nodes[0].name(of: 3) == "node 3")
        try nodes[0].rename(3, "attic")
        #expect(nodes[0].name(of: 3) == "attic")
        var beyond = last.bytes
        // The revision stands after 58 bytes and the seat.
        beyond[58 + 32 + 1] = 2
        let wrong = #expect(throws: TrustError.self) { try MemberRecord(bytes: beyond) }
        #expect(wrong?.code == .outOfRange)
    }
}
