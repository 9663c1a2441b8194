import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `A household` {
    @Test func `begins with one member, which is itself`() {
        let node = Node(founding: 1)
        #expect(node.household.members.map(\.fingerprint) == [node.fingerprint])
        #expect(node.household.members[0].addedBy == node.fingerprint)
        #expect(node.household.standing(of: key(2).publicKey.fingerprint) == .unknown)
    }

    @Test func `every member may admit, rename and remove, the founder too`() throws {
        var nodes = try house(3)
        try nodes[2].admit(4)
        try nodes[0].household.merge(nodes[2].household)
        #expect(nodes[0].has(4))
        var fourth = Node(4, in: nodes[0].household)
        try fourth.rename(1, "attic")
        try fourth.remove(2)
        try nodes[0].household.merge(fourth.household)
        #expect(nodes[0].name(of: 1) == "attic" && !nodes[0].has(2))
        try fourth.remove(1)
        try nodes[2].household.merge(fourth.household)
        #expect(!nodes[2].has(1) && nodes[2].has(3) && nodes[2].has(4))
    }

    @Test func `who is removed learns it, by whom and when, and can do nothing any more`() throws {
        var nodes = try house(3)
        try nodes[2].remove(2, at: 4_711)
        try nodes[1].household.merge(nodes[2].household)
        #expect(
            nodes[1].household.standing(of: nodes[1].fingerprint)
                == .removed(by: nodes[2].fingerprint, at: 4_711))
        let error = #expect(throws: TrustError.self) { try nodes[1].admit(9) }
        #expect(error?.code == .refused)
    }

    @Test(arguments: [0, 1, -1] as [Int64])
    func `what a removed member signs afterwards counts for nothing, whatever its clock says`(
        shift: Int64
    ) throws {
        var nodes = try house(3)
        // Its copy is from before the removal, its clock years off in either direction.
        try nodes[0].remove(2, at: 1_000_000)
        let time = 1_000_000 + shift * 900_000
        let forged = [
            try nodes[1].admit(9, at: time), try nodes[1].rename(3, "mine", at: time),
        ]
        try nodes[2].household.merge(nodes[0].household)
        try nodes[2].household.merge(nodes[0].household.records + forged)
        #expect(!nodes[2].has(9) && !nodes[2].has(2) && nodes[2].name(of: 3) == "node 3")
        // Nor does what it removes, though it finds somebody who has not heard.
        let removal = try nodes[1].remove(3, at: time)
        try nodes[2].household.merge(removal)
        #expect(nodes[2].has(3))
        // Nor who came in by it.
        var ninth = Node(9, in: nodes[1].household)
        let deed = try ninth.admit(10)
        try nodes[2].household.merge([deed])
        #expect(!nodes[2].has(10))
    }

    @Test func `what the remover had seen stays, what it had not is paired again`() throws {
        var nodes = try house(3)
        try nodes[1].admit(4)
        try nodes[0].household.merge(nodes[1].household)
        try nodes[1].admit(5)
        try nodes[2].household.merge(nodes[1].household)
        #expect(nodes[2].has(4) && nodes[2].has(5))
        try nodes[0].remove(2)
        try nodes[2].household.merge(nodes[0].household)
        #expect(nodes[2].has(4) && !nodes[2].has(5) && !nodes[2].has(2))
        // The other way round it comes to the same.
        try nodes[0].household.merge(nodes[2].household)
        #expect(nodes[0].has(4) && !nodes[0].has(5))
    }

    @Test func `a key in wrong hands takes with it whom it let in`() throws {
        var nodes = try house(3)
        try nodes[1].admit(4)
        try nodes[0].household.merge(nodes[1].household)
        try nodes[0].remove(2, keepsDeeds: false)
        #expect(!nodes[0].has(4) && nodes[0].has(3))
        // But never who removes it, though it was let in by it.
        var fourth = Node(4, in: nodes[1].household)
        try fourth.remove(2, keepsDeeds: false)
        #expect(fourth.has(4) && !fourth.has(2))
    }

    @Test func `removed and admitted again, nothing of before comes back`() throws {
        var nodes = try house(3)
        try nodes[0].remove(2)
        let forged = try nodes[1].admit(9)
        try nodes[0].admit(2)
        try nodes[0].household.merge([forged])
        #expect(nodes[0].has(2) && !nodes[0].has(9))
        // From its new seat it may.
        try nodes[1].household.merge(nodes[0].household)
        try nodes[1].admit(10)
        try nodes[0].household.merge(nodes[1].household)
        #expect(nodes[0].has(10))
    }

    @Test func `a removal wins over a name, and of two names the same wins everywhere`() throws {
        var nodes = try house(4)
        try nodes[0].rename(4, "bath")
        try nodes[1].rename(4, "cellar")
        try nodes[0].household.merge(nodes[1].household)
        try nodes[1].household.merge(nodes[0].household)
        #expect(nodes[0].name(of: 4) == nodes[1].name(of: 4))
        // A later one wins over both, though its clock is years behind.
        try nodes[0].rename(4, "hall", at: -5_000_000_000)
        try nodes[1].household.merge(nodes[0].household)
        #expect(nodes[1].name(of: 4) == "hall")
        try nodes[2].remove(4)
        try nodes[1].rename(4, "stairs")
        try nodes[1].household.merge(nodes[2].household)
        try nodes[2].household.merge(nodes[1].household)
        #expect(!nodes[1].has(4) && !nodes[2].has(4))
    }

    @Test func `who leaves is out, and whom it has let in stays`() throws {
        var nodes = try house(3)
        try nodes[0].remove(1)
        try nodes[1].household.merge(nodes[0].household)
        #expect(!nodes[1].has(1) && nodes[1].has(2) && nodes[1].has(3))
        try nodes[1].admit(4)
        #expect(nodes[1].has(4))
        // What it signs after it has left is nothing, a second leave with another seal included.
        var ghost = Node(1, in: try house(3)[0].household)
        let again = try ghost.remove(1, keepsDeeds: false)
        try nodes[1].household.merge(again)
        #expect(nodes[1].has(2) && nodes[1].has(3) && nodes[1].has(4))
    }

    @Test func `admitted by two at the same time, it is one member, and two removals of one`()
        throws
    {
        var nodes = try house(3)
        try nodes[0].admit(4)
        try nodes[1].admit(4)
        try nodes[0].household.merge(nodes[1].household)
        try nodes[1].household.merge(nodes[0].household)
        #expect(nodes[0].household.members == nodes[1].household.members)
        #expect(nodes[0].household.members.count == 4)
        #expect(try nodes[2].household.merge(nodes[0].household).count == 2)
        #expect(try nodes[2].remove(4).count == 2)
        #expect(!nodes[2].has(4))
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `removed by several, it is told of one removal, the same by everybody`(
        seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        var nodes = try house(4)
        let start = nodes[0].household
        // Two seats, each removed by two members who do not know of one another.
        var deeds = [try nodes[0].admit(9), try nodes[1].admit(9)]
        try nodes[0].household.merge(nodes[1].household)
        for place in 2...3 {
            try nodes[place].household.merge(nodes[0].household)
            deeds += try nodes[place].remove(9, at: Int64(place))
        }
        var told: [Household.Standing] = []
        for _ in 0..<4 {
            var household = start
            for deed in deeds.shuffled(using: &random) { try household.merge([deed]) }
            told.append(household.standing(of: key(9).publicKey.fingerprint))
        }
        #expect(told.allSatisfy { $0 == told[0] && $0 != .unknown })
    }

    @Test func `two households that meet stay two, and say how to move`() throws {
        var mine = Node(founding: 1)
        let other = Node(founding: 2)
        let before = mine.household
        let error = #expect(throws: TrustError.self) { try mine.household.merge(other.household) }
        #expect(error?.code == .refused && error?.description.contains("leave") == true)
        #expect(mine.household.holdsTheSame(as: before))
        #expect(mine.household.number != other.household.number)
    }

    @Test func `a forged, foreign or rootless record is refused, and nothing else taken`() throws {
        var nodes = try house(2)
        let before = nodes[0].household
        let good = try nodes[1].admit(3)
        // Node 9 signs from a seat that is not its own.
        let forged = try MemberRecord(
            .admit(key(9).publicKey, name("thief")), from: before.records[1].number, by: key(9),
            salt: .init(repeating: 1, count: 16), at: 0)
        var error = #expect(throws: TrustError.self) {
            try nodes[0].household.merge([good, forged])
        }
        #expect(error?.code == .notAuthentic)
        let rootless = try MemberRecord(
            .admit(key(9).publicKey, name("thief")), from: forged.number, by: key(9),
            salt: .init(repeating: 1, count: 16), at: 0)
        error = #expect(throws: TrustError.self) {
            try nodes[0].household.merge([good, rootless])
        }
        #expect(error?.code == .unknown)
        #expect(nodes[0].household.holdsTheSame(as: before))
        try nodes[0].household.merge([good])
        #expect(nodes[0].has(3))
    }

    @Test func `there is an end to members and to records`() throws {
        var founder = Node(founding: 1)
        for number in 2...UInt64(Household.mostMembers) { try founder.admit(number) }
        let error = #expect(throws: TrustError.self) { try founder.admit(1_000) }
        #expect(error?.code == .tooMany)
        #expect(founder.household.members.count == Household.mostMembers)
        let many = Array(repeating: founder.household.records[1], count: Household.mostRecords + 1)
        #expect(throws: TrustError.self) { try founder.household.merge(many) }
    }
}
