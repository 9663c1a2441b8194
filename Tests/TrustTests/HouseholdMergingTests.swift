import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `Merging of households` {
    /// Deeds of six nodes that hear of one another now and then, with clocks that are years off.
    private static func deeds(_ random: inout SplitMix64, removes: Bool) throws -> [Node] {
        var nodes = try house(3)
        for number in 4...6 as ClosedRange<UInt64> {
            nodes.append(Node(number, in: nodes[0].household))
        }
        for _ in 0..<30 {
            let who = Int.random(in: nodes.indices, using: &random)
            let whom = UInt64.random(in: 1...7, using: &random)
            let time = Int64(truncatingIfNeeded: random.next())
            do {
                switch Int.random(in: 0..<(removes ? 8 : 7), using: &random) {
                case 0, 1, 2:
                    let other = Int.random(in: nodes.indices, using: &random)
                    try nodes[who].household.merge(nodes[other].household)
                case 3, 4: try nodes[who].admit(whom, at: time)
                case 5, 6: try nodes[who].rename(whom, "name \(time)", at: time)
                default: try nodes[who].remove(whom, keepsDeeds: random.chance(0.7), at: time)
                }
            } catch {
                // Not a member, or one already: what people try, too.
                #expect([.refused, .unknown].contains(error.code), "\(error)")
            }
        }
        return nodes
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `is the same in any order, in any portions, any number of times`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let nodes = try Self.deeds(&random, removes: true)
        var all = nodes[0].household
        for node in nodes { try all.merge(node.household) }
        for _ in 0..<3 {
            var other = Household(founding: all.records[0])
            var waiting = Array(all.records.dropFirst()).shuffled(using: &random)
            while !waiting.isEmpty {
                let portion = Array(waiting.prefix(Int.random(in: 1...8, using: &random)))
                do {
                    try other.merge(portion)
                    waiting.removeFirst(portion.count)
                } catch {
                    // It rests upon a record that has not come yet.
                    #expect(error.code == .unknown)
                    waiting.shuffle(using: &random)
                }
            }
            #expect(other.holdsTheSame(as: all))
            if all.verdicts.contradictionCount == 0 {
                #expect(other.members == all.members)
                for number in 1...7 as ClosedRange<UInt64> {
                    let fingerprint = key(number).publicKey.fingerprint
                    #expect(other.standing(of: fingerprint) == all.standing(of: fingerprint))
                }
            }
            #expect(try other.merge(all).isEmpty)
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `is idempotent, commutative and associative`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let nodes = try Self.deeds(&random, removes: seed % 2 == 0)
        let (a, b, c) = (nodes[0].household, nodes[1].household, nodes[2].household)
        func joined(_ x: Household, _ y: Household) throws -> Household {
            var x = x
            try x.merge(y)
            return x
        }
        #expect(try joined(a, a).holdsTheSame(as: a))
        #expect(try joined(a, b).holdsTheSame(as: joined(b, a)))
        let left = try joined(joined(a, b), c)
        let right = try joined(a, joined(b, c))
        #expect(left.holdsTheSame(as: right))
        if left.verdicts.contradictionCount == 0 { #expect(left.members == right.members) }
    }

    /// Otherwise the two tests above would say nothing of members.
    @Test func `most histories hold no contradiction, and some do`() throws {
        var counts = [0, 0]
        for seed in 1...30 as ClosedRange<UInt64> {
            var random = SplitMix64(seed: seed)
            let nodes = try Self.deeds(&random, removes: true)
            var all = nodes[0].household
            for node in nodes { try all.merge(node.household) }
            counts[all.verdicts.contradictionCount == 0 ? 0 : 1] += 1
        }
        #expect(counts[0] > counts[1])
        #expect(counts[1] > 0)
    }

    @Test func `two that remove each other: each goes by what it heard first, a third settles it`()
        throws
    {
        var nodes = try house(5)
        try nodes[1].remove(3)
        try nodes[2].remove(2)
        // Node 4 hears of one deed first, node 5 of the other.
        try nodes[3].household.merge(nodes[1].household)
        try nodes[3].household.merge(nodes[2].household)
        try nodes[4].household.merge(nodes[2].household)
        try nodes[4].household.merge(nodes[1].household)
        #expect(nodes[3].has(2) && !nodes[3].has(3))
        #expect(nodes[4].has(3) && !nodes[4].has(2))
        #expect(nodes[3].household.verdicts.contradictionCount > 0)
        #expect(nodes[3].household.holdsTheSame(as: nodes[4].household))
        // It does not change with what comes later, or with a restart.
        let read = try Household(bytes: nodes[3].household.bytes)
        #expect(read.members == nodes[3].household.members)
        try nodes[0].household.merge(nodes[3].household)
        try nodes[0].remove(3)
        for place in 3...4 { try nodes[place].household.merge(nodes[0].household) }
        #expect(nodes[3].household.members == nodes[4].household.members)
        #expect(nodes[3].has(2) && !nodes[3].has(3))
    }

    @Test func `a removed member cannot take revenge on who has heard of it`() throws {
        var nodes = try house(4)
        try nodes[3].remove(2)
        for place in [0, 2] { try nodes[place].household.merge(nodes[3].household) }
        // It removes everybody, by a copy in which it still sits.
        var revenge: [MemberRecord] = []
        for number in [1, 3, 4] as [UInt64] { revenge += try nodes[1].remove(number) }
        for place in [0, 2, 3] {
            try nodes[place].household.merge(revenge)
            #expect(nodes[place].has(1) && nodes[place].has(3) && nodes[place].has(4))
            #expect(!nodes[place].has(2))
        }
    }

    /// It has let in everybody, who rest upon its deeds, and says that it keeps none of them.
    @Test func `a removed founder cannot take all others with it`() throws {
        var nodes = try house(4)
        try nodes[3].remove(1)
        for place in [1, 2] { try nodes[place].household.merge(nodes[3].household) }
        let revenge = try nodes[0].remove(1, keepsDeeds: false)
        for place in 1...3 {
            try nodes[place].household.merge(revenge)
            #expect(nodes[place].household.members.count == 3)
            #expect(!nodes[place].has(1))
        }
    }

    @Test func `who was removed by a stolen key stays out, though nothing else of it is kept`()
        throws
    {
        var nodes = try house(4)
        try nodes[1].remove(4)
        try nodes[1].admit(5)
        try nodes[0].household.merge(nodes[1].household)
        try nodes[0].remove(2, keepsDeeds: false)
        #expect(!nodes[0].has(2) && !nodes[0].has(4) && !nodes[0].has(5) && nodes[0].has(3))
    }

    @Test func `a ring of removals ends, and leaves somebody`() throws {
        var nodes = try house(5)
        for place in 1...4 { try nodes[place].remove(UInt64(place % 4) + 2) }
        for node in nodes { try nodes[0].household.merge(node.household) }
        #expect(nodes[0].has(1))
        #expect((2...4).contains(nodes[0].household.members.count))
    }

    @Test func `too many records: what counts for nothing makes way`() throws {
        var nodes = try house(3)
        try nodes[0].remove(2)
        let before = nodes[0].household.members
        // The removed one goes on letting in, from a copy in which it still sits.
        let seat = nodes[1].household.records[1].number
        var flood: [MemberRecord] = []
        for count in 0..<Household.mostRecords {
            flood.append(
                try MemberRecord(
                    .admit(key(9).publicKey, name("nobody \(count)")), from: seat,
                    by: nodes[1].key, salt: nodes[1].random.bytes(16), at: 0))
        }
        try nodes[0].household.merge(flood)
        #expect(nodes[0].household.records.count <= Household.mostRecords)
        #expect(nodes[0].household.members == before)
        try nodes[0].admit(4)
        #expect(nodes[0].has(4))
    }

    @Test func `a member that fills the household can still be removed`() throws {
        var nodes = try house(3)
        let seat = nodes[1].household.records[1].number
        let room = Household.mostRecords - nodes[2].household.records.count
        let flood = try (0..<room).map { _ in
            try MemberRecord(
                .admit(key(9).publicKey, name("nobody")), from: seat, by: nodes[1].key,
                salt: nodes[1].random.bytes(16), at: 0)
        }
        try nodes[2].household.merge(flood)
        let error = #expect(throws: TrustError.self) { try nodes[2].rename(1, "attic") }
        #expect(error?.code == .tooMany)
        try nodes[2].remove(2)
        #expect(!nodes[2].has(2) && nodes[2].has(1))
        try nodes[2].remove(9)
        try nodes[2].rename(1, "attic")
        #expect(nodes[2].household.members.map(\.name.text).sorted() == ["attic", "node 3"])
    }

    /// A set that was cut down once could not be read again: its records had lost their seats.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `whatever is dropped, what is left can be read`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let nodes = try Self.deeds(&random, removes: true)
        var all = nodes[0].household
        for node in nodes { try all.merge(node.household) }
        let seats = all.records.filter { $0.admitted != nil }
        let filler = try #require(seats.randomElement(using: &random))
        let number = try #require(
            (1...7 as ClosedRange<UInt64>).first { key($0).publicKey == filler.admitted?.key })
        var news: [MemberRecord] = []
        for _ in 0..<Household.mostRecords {
            news.append(
                try MemberRecord(
                    .admit(key(99).publicKey, name("x")), from: filler.number, by: key(number),
                    salt: random.bytes(16), at: 0))
        }
        do {
            try all.merge(news)
        } catch {
            #expect(error.code == .tooMany)
        }
        let read = try Household(bytes: all.bytes)
        #expect(read.holdsTheSame(as: all) && read.members == all.members)
        let numbers = Set(all.records.map(\.number))
        #expect(all.records.allSatisfy { numbers.contains($0.seat) })
    }

    /// The worst that members can do to the arithmetic: everything voids everything.
    @Test func `everybody removes everybody: it ends, and somebody is left`() throws {
        var random = SplitMix64(seed: 1)
        let count: UInt64 = 24
        var all = try house(count)[0].household
        let seats = all.records.map(\.number)
        var removals: [MemberRecord] = []
        for (place, signer) in seats.enumerated() {
            for seat in seats where seat != signer {
                removals.append(
                    try MemberRecord(
                        .remove(seat, seal: []), from: signer, by: key(UInt64(place + 1)),
                        salt: random.bytes(16), at: 0))
            }
        }
        try all.merge(removals.reversed())
        #expect(all.records.count == Int(count * count))
        #expect(!all.members.isEmpty)
    }
}
