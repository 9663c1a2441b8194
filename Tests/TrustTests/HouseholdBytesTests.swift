import Testing
import TuttiChance

@testable import TuttiTrust

@Suite struct `A household as bytes` {
    private static func sample() throws -> Household {
        var nodes = try house(3)
        try nodes[1].rename(3, "Küche")
        try nodes[1].admit(4)
        try nodes[0].household.merge(nodes[1].household)
        try nodes[0].remove(2)
        return nodes[0].household
    }

    @Test func `comes back as it was`() throws {
        let household = try Self.sample()
        let read = try Household(bytes: household.bytes)
        #expect(read.records == household.records)
        #expect(read.members == household.members)
        #expect(read.bytes == household.bytes)
        for record in household.records {
            #expect(try MemberRecord(bytes: record.bytes).bytes == record.bytes)
            #expect(record.bytes.count <= MemberRecord.longest)
        }
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `with any byte changed is refused, or says the same`(seed: UInt64) throws {
        let household = try Self.sample()
        var random = SplitMix64(seed: seed)
        for _ in 0..<10 {
            let bytes = random.mutated(household.bytes)
            #expect(throws: TrustError.self) { try Household(bytes: bytes) }
        }
    }

    @Test func `cut off anywhere, or with more behind it, is refused`() throws {
        let bytes = try Self.sample().bytes
        for count in 0..<bytes.count {
            #expect(throws: TrustError.self) { try Household(bytes: Array(bytes.prefix(count))) }
        }
        #expect(throws: TrustError.self) { try Household(bytes: bytes + [0]) }
        let long = bytes + [UInt8](repeating: 0, count: Household.longest)
        #expect(throws: TrustError.self) { try Household(bytes: long) }
    }

    @Test func `of a newer version says so and what to do`() throws {
        var bytes = try Self.sample().bytes
        bytes[4] = 2
        var error = #expect(throws: TrustError.self) { try Household(bytes: bytes) }
        #expect(error?.code == .otherVersion && error?.description.contains("update") == true)
        bytes = try Self.sample().bytes
        bytes[9] = 2
        error = #expect(throws: TrustError.self) { try Household(bytes: bytes) }
        #expect(error?.code == .otherVersion)
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `noise is refused`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let noise = random.bytes(Int.random(in: 0...400, using: &random))
            #expect(throws: TrustError.self) {
                try Household(bytes: Array("TuHh\u{1}".utf8) + noise)
            }
            #expect(throws: TrustError.self) { try MemberRecord(bytes: [1, 3] + noise) }
        }
    }

    /// Written once, by the first version: what it has written is read for ever. Numbers and signatures
    /// were checked by other tools (Python's hashlib, openssl dgst) by what `Trust.md` says.
    @Test func `the household that was written once is read as what it was`() throws {
        let written = """
            5475486801000400c101010000000000000000000000000000000000000000000000000000000000
            000000a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5000000006553f100515c3d6eb9e396b904d3feca7f
            54fdcd0cc1e997bf375dca515ad0a6c3b4035f4536be3a50f318fbf9a5475902a221502bef0d57e0
            8c53b2cc0a56f17d9f93540005617474696303ef3ba38727e871cea86aea9f82752c1f2c0620a548
            ff7c08581b19066dc2f4e7d63a24ba3481299a1337721dab4d17119fdd153a393fcdc43214dadcc1
            341700c20102fdeaf227a16e61ce0bec83107e1afa2fe5b914689aa28d4be629558bf3da7d405a5a
            5a5a5a5a5a5a5a5a5a5a5a5a5a5affffffffffffffffac46d2953dbf5a008416ff406aac929c32a9
            1ed62fd515d17d48282773a1497e2d850f4dfd02b06d69d3fd3592559d217d73ca5670b02fbb692e
            3cf95c076c3700064bc3bc636865bf175c6089c67f5f0e57271059d306859d2af62a64c95fbab1a5
            4f024e50b643f640917a44614bbd7afb8abc565735921fe9dbfbfb01ddf62e0305b17990784900a4
            01046728b1cf11b369c3680709910ce0b6e853b2522308b5c092890d7dbc0ebe8698111111111111
            1111111111111111111100000000000000056728b1cf11b369c3680709910ce0b6e853b2522308b5
            c092890d7dbc0ebe86980000000100046261746826ee91fd79f96125a0f8007f39a9b3b52e96ff84
            9eb48fb85cfe2de184e961cfeeb5efa13712f43ec2cc37321393ec6622a17686e1b9e4aa408a97dc
            8b03db2b00dc01036728b1cf11b369c3680709910ce0b6e853b2522308b5c092890d7dbc0ebe8698
            222222222222222222222222222222220000000000000006fdeaf227a16e61ce0bec83107e1afa2f
            e5b914689aa28d4be629558bf3da7d4000026728b1cf11b369c3680709910ce0b6e853b2522308b5
            c092890d7dbc0ebe8698fdeaf227a16e61ce0bec83107e1afa2fe5b914689aa28d4be629558bf3da
            7d402771278402f3d97e0a108ab86548150e4264f07fabffac46d16685c17f20eee7c573f369b0c8
            2eb0f2aa0bf4881ef9cecdddcd23b5dc84a0ef3f683fc9d7808f
            """
        let digits = written.filter { !$0.isNewline }.map { UInt8($0.hexDigitValue!) }
        let bytes = stride(from: 0, to: digits.count, by: 2).map {
            digits[$0] << 4 | digits[$0 + 1]
        }
        let household = try Household(bytes: bytes)
        #expect(household.bytes == bytes)
        let number = household.number.bytes.map { String($0, radix: 16) }
        #expect(number.prefix(4) == ["fd", "ea", "f2", "27"])
        let left = try NodeKey(bytes: Array(2...33)).publicKey.fingerprint
        let founder = try NodeKey(bytes: Array(1...32)).publicKey.fingerprint
        #expect(household.members.map(\.name.text) == ["bath"])
        #expect(household.member(left)?.addedBy == founder)
        #expect(household.member(left)?.addedAt == -1)
        #expect(household.standing(of: founder) == .removed(by: left, at: 6))
    }

    @Test func `a seal has one writing: its numbers rise`() throws {
        var nodes = try house(2)
        for number in 3...5 as ClosedRange<UInt64> { try nodes[1].admit(number) }
        let bytes = try nodes[1].remove(2)[0].bytes
        let first = 58 + 32 + 2
        #expect(try MemberRecord(bytes: bytes).bytes == bytes)
        var swapped = bytes
        swapped.replaceSubrange(first..<first + 32, with: bytes[first + 32..<first + 64])
        swapped.replaceSubrange(first + 32..<first + 64, with: bytes[first..<first + 32])
        #expect(throws: TrustError.self) { try MemberRecord(bytes: swapped) }
        var doubled = bytes
        doubled.replaceSubrange(first + 32..<first + 64, with: bytes[first..<first + 32])
        #expect(throws: TrustError.self) { try MemberRecord(bytes: doubled) }
    }

    @Test func `a second signature makes no second record`() throws {
        var node = try house(2)[0]
        let record = node.household.records[1]
        let again = MemberRecord(
            record.deed, seat: record.seat, salt: record.salt, signedAt: record.signedAt,
            body: record.body, signature: try node.key.signature(over: Label.record + record.body))
        #expect(again == record)
        #expect(try node.household.merge([again]).isEmpty)
    }

    @Test(arguments: [
        "", "   ", "a\u{202E}b", "a\nb", "\u{0}", String(repeating: "x", count: 65),
        String(repeating: "é\u{301}\u{301}\u{301}\u{301}", count: 40),
    ])
    func `a name that cannot be shown is none`(text: String) {
        #expect(throws: TrustError.self) { try MemberName(text) }
    }
}
