import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `Excerpts of a household` {
    /// 1 founded it, and has let in 2; 2 has let in 3, 3 has let in 4; and there is 9.
    private func line() throws -> [Node] {
        var nodes = try house(2)
        for number in 3...4 as ClosedRange<UInt64> {
            try nodes[nodes.count - 1].admit(number)
            nodes.append(Node(number, in: nodes[nodes.count - 1].household))
        }
        try nodes[3].admit(9)
        return nodes
    }

    @Test func `it says how one came in, and nothing of others`() throws {
        let four = try line()[3]
        let excerpt = four.household.excerpt(seating: four.fingerprint)
        #expect(excerpt.map { $0.admitted?.key } == (1...4).map { key($0).publicKey })
        #expect(four.household.excerpt(seating: key(8).publicKey.fingerprint).isEmpty)
    }

    @Test func `with it, who was away gets to know a member`() throws {
        let nodes = try line()
        let excerpt = nodes[3].household.excerpt(seating: nodes[3].fingerprint)
        let joined = try nodes[0].household.seating(nodes[3].fingerprint, by: excerpt)
        #expect(joined?.member(nodes[3].fingerprint) != nil)
        #expect(joined?.member(key(9).publicKey.fingerprint) == nil)
    }

    @Test func `of who is no member nothing is taken`() throws {
        let nodes = try line()
        let excerpt = nodes[3].household.excerpt(seating: nodes[3].fingerprint)
        let stranger = key(8).publicKey.fingerprint
        #expect(try nodes[0].household.seating(stranger, by: excerpt) == nil)
        // Removals and names are not told by strangers, though they be signed by members.
        var third = nodes[2]
        let removal = try third.remove(2)
        #expect(try nodes[0].household.seating(nodes[3].fingerprint, by: excerpt + removal) == nil)
        let long = [MemberRecord](
            repeating: excerpt[0], count: Household.longestExcerpt + 1)
        #expect(throws: TrustError.self) {
            _ = try nodes[0].household.seating(nodes[3].fingerprint, by: long)
        }
    }

    @Test func `who was removed does not come back by what it shows`() throws {
        var nodes = try line()
        try nodes[0].household.merge(nodes[3].household)
        let excerpt = nodes[3].household.excerpt(seating: nodes[3].fingerprint)
        try nodes[0].remove(4)
        #expect(try nodes[0].household.seating(nodes[3].fingerprint, by: excerpt) == nil)
    }

    @Test func `who was removed learns so, and nothing more`() throws {
        var nodes = try line()
        try nodes[0].household.merge(nodes[3].household)
        try nodes[0].remove(4)
        let excerpt = nodes[0].household.excerpt(removing: nodes[3].fingerprint)
        #expect(!excerpt.contains { $0.admitted?.key == key(9).publicKey })
        try nodes[3].household.merge(excerpt)
        guard case .removed(let by, _) = nodes[3].household.standing(of: nodes[3].fingerprint)
        else {
            Issue.record("it does not know")
            return
        }
        #expect(by == nodes[0].fingerprint)
        #expect(nodes[0].household.excerpt(removing: nodes[0].fingerprint).isEmpty)
    }
}
