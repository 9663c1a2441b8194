import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiTrust

/// A leader's tags and those of its rooms.
@Suite struct `Tags of a leader and its rooms` {
    private var random = SplitMix64(seed: 4)

    private mutating func secret() -> [UInt8] { random.bytes(32) }

    private mutating func leader(session: UInt64 = 9) throws -> LeaderTags {
        LeaderTags(try GroupKey(term: LeaderTags.firstTerm(of: session), secret: secret()))
    }

    private func room(_ leader: inout LeaderTags, link: Int) throws -> RoomTags {
        try RoomTags(try leader.grant(to: link).given())
    }

    /// There are numbers left.
    private func ask(_ room: inout RoomTags, _ payload: [UInt8] = [1]) -> [UInt8] {
        room.seal(request: payload)!
    }

    /// Whether a room's question is heard, and its answer understood.
    private func talk(
        _ leader: inout LeaderTags, _ room: inout RoomTags, at second: Double
    ) -> Bool {
        let now = instant(second)
        guard let (payload, asker) = leader.open(request: ask(&room, [7, 7]), at: now),
            let reply = leader.seal(reply: [8], to: asker, at: now)
        else { return false }
        return Array(payload) == [7, 7] && room.open(reply: reply, at: now).map(Array.init) == [8]
    }

    @Test mutating func `a room is heard and answered, and hears beacons and commits`() throws {
        var leader = try leader()
        var (first, second) = (try room(&leader, link: 1), try room(&leader, link: 2))
        #expect(talk(&leader, &first, at: 0) && talk(&leader, &second, at: 0))
        let beacon = try leader.seal(beacon: [5], at: instant(0)).given()
        #expect(first.open(beacon: beacon, at: instant(0)) == [5])
        #expect(second.open(beacon: beacon, at: instant(0)) == [5])
        #expect(first.open(beacon: beacon, at: instant(0)) == nil)
        let commit = try leader.seal(commit: [6], to: 1, at: instant(0)).given()
        #expect(second.open(commit: commit, at: instant(0)) == nil, "of another room")
        #expect(first.open(commit: commit, at: instant(0)) == [6])
        #expect(first.open(commit: commit, at: instant(0)) == nil)
        #expect(leader.seal(commit: [6], to: 3, at: instant(0)) == nil, "nobody is there")
        #expect(first.dropped == [.replay: 2] && second.dropped == [.receiver: 1])
    }

    @Test mutating func `a reply is as long as its request`() throws {
        var leader = try leader()
        var room = try room(&leader, link: 1)
        let request = ask(&room, [UInt8](repeating: 3, count: 96))
        let asker = try leader.open(request: request, at: instant(0)).given().asker
        let reply = [UInt8](repeating: 4, count: 96)
        #expect(leader.seal(reply: reply, to: asker, at: instant(0))?.count == request.count)
    }

    @Test mutating func `a captured request is dropped, also from a room that was restarted`()
        throws
    {
        var leader = try leader()
        var room = try room(&leader, link: 1)
        let request = ask(&room)
        #expect(leader.open(request: request, at: instant(0)) != nil)
        #expect(leader.open(request: request, at: instant(0)) == nil)
        leader.end(1)
        var again = try self.room(&leader, link: 2)
        #expect(leader.open(request: request, at: instant(0)) == nil)
        #expect(talk(&leader, &again, at: 0))
        // Its link broke, and it has not noticed yet.
        #expect(talk(&leader, &room, at: 0))
    }

    @Test mutating func `what was captured before a room came is old to it`() throws {
        var leader = try leader()
        _ = try room(&leader, link: 1)
        let beacon = try leader.seal(beacon: [5], at: instant(0)).given()
        var late = try room(&leader, link: 2)
        #expect(late.open(beacon: beacon, at: instant(0)) == nil)
        #expect(late.dropped == [.replay: 1])
    }

    /// Rooms hear of a new key at different times, and nothing that is under way gets lost.
    @Test mutating func `through a new key every exchange goes on`() throws {
        var leader = try leader()
        var rooms = [try room(&leader, link: 1), try room(&leader, link: 2)]
        let underWay = rooms.indices.map { ask(&rooms[$0]) }
        let early = try leader.seal(beacon: [1], at: instant(0.9)).given()
        let grants = try leader.begin(secret(), at: instant(1))
        #expect(grants.map(\.link) == [1, 2])
        for request in underWay { #expect(leader.open(request: request, at: instant(1)) != nil) }
        // None has it yet.
        let beacon = try leader.seal(beacon: [5], at: instant(1.01)).given()
        for place in rooms.indices {
            #expect(talk(&leader, &rooms[place], at: 1.01))
            #expect(rooms[place].open(beacon: beacon, at: instant(1.01)) == [5])
        }
        // One has.
        try rooms[0].take(grants[0].grant, at: instant(1.02))
        for place in rooms.indices { #expect(talk(&leader, &rooms[place], at: 1.03)) }
        let commits = try (1...2).map {
            try leader.seal(commit: [9], to: $0, at: instant(1.04)).given()
        }
        for place in rooms.indices {
            #expect(rooms[place].open(commit: commits[place], at: instant(1.05)) == [9])
            #expect(rooms[place].open(beacon: early, at: instant(1.05)) == [1])
        }
        try rooms[1].take(grants[1].grant, at: instant(1.1))
        for second in stride(from: 1.5, to: 12, by: 0.5) {
            let beacon = try leader.seal(beacon: [5], at: instant(second)).given()
            for place in rooms.indices {
                #expect(talk(&leader, &rooms[place], at: second))
                #expect(rooms[place].open(beacon: beacon, at: instant(second)) == [5])
            }
        }
        #expect(leader.dropped.isEmpty && rooms.allSatisfy { $0.dropped.isEmpty })
    }

    /// A link takes a moment to close, and the new key does not wait for that.
    @Test mutating func `who is removed is not heard once its link has ended, also after the key`()
        throws
    {
        var leader = try leader()
        var (stays, goes) = (try room(&leader, link: 1), try room(&leader, link: 2))
        _ = try leader.begin(secret(), at: instant(0))
        leader.end(2)
        #expect(!talk(&leader, &goes, at: 0.1))
        #expect(talk(&leader, &stays, at: 0.1), "it has not been told the new key yet")
        #expect(leader.dropped == [.sender: 1])
    }

    @Test mutating func `who was removed is not heard and cannot forge once the grace is over`()
        throws
    {
        var leader = try leader()
        var (stays, goes) = (try room(&leader, link: 1), try room(&leader, link: 2))
        leader.end(2)
        let grants = try leader.begin(secret(), at: instant(0))
        #expect(grants.map(\.link) == [1])
        try stays.take(grants[0].grant, at: instant(0))
        #expect(!talk(&leader, &goes, at: 0), "its link is gone, and its number with the term")
        let old = try leader.grant(to: 1).given()
        #expect(old.key.term == leader.term)
        // It knows the old key, and poses as the leader.
        var forger = try self.leader()
        var victim = try room(&forger, link: 1)
        _ = try forger.begin(secret(), at: instant(0))
        let forged = try forger.seal(beacon: [6], at: instant(0.5)).given()
        let fresh = try forger.grant(to: 1).given()
        try victim.take(fresh, at: instant(0))
        #expect(victim.open(beacon: forged, at: instant(4.9)) == [6], "within the grace")
        let later = try forger.seal(beacon: [6], at: instant(0.9)).given()
        #expect(victim.open(beacon: later, at: instant(5)) == nil)
        #expect(victim.dropped == [.term: 1])
    }

    @Test mutating func `a room that comes by a new key is told nothing under the old one`()
        throws
    {
        var leader = try leader()
        _ = try room(&leader, link: 1)
        _ = try leader.begin(secret(), at: instant(0))
        var room = try room(&leader, link: 2)
        let commit = try leader.seal(commit: [3], to: 2, at: instant(0.1)).given()
        #expect(room.open(commit: commit, at: instant(0.1)) == [3])
        #expect(talk(&leader, &room, at: 0.1))
    }

    @Test mutating func `on another link a room goes on, and takes what is under way`() throws {
        var leader = try leader()
        var room = try room(&leader, link: 1)
        let asker = try leader.open(request: ask(&room), at: instant(0)).given().asker
        let underWay = try leader.seal(reply: [8], to: asker, at: instant(0)).given()
        let seen = try leader.seal(beacon: [1], at: instant(0)).given()
        #expect(room.open(beacon: seen, at: instant(0)) != nil)
        leader.end(1)
        try room.take(try leader.grant(to: 2).given(), at: instant(1))
        #expect(room.open(reply: underWay, at: instant(1)) == [8])
        #expect(room.open(beacon: seen, at: instant(1)) == nil, "seen stays seen")
        #expect(talk(&leader, &room, at: 1))
        // The same again changes nothing: its numbers go on.
        try room.take(try leader.grant(to: 2).given(), at: instant(2))
        #expect(talk(&leader, &room, at: 2))
        #expect(leader.dropped.isEmpty && room.dropped == [.replay: 1])
    }

    @Test mutating func `another leader's key begins anew, and counts on`() throws {
        var (first, second) = (try leader(session: 9), try leader(session: 10))
        #expect(second.term > first.term)
        var room = try room(&first, link: 1)
        _ = room.open(reply: [1], at: instant(0))
        let other = try second.grant(to: 1).given()
        #expect(throws: TrustError.self) { try room.take(other, at: instant(0)) }
        #expect(talk(&first, &room, at: 0), "nothing has changed")
        var moved = try RoomTags(other, after: room.dropped)
        #expect(talk(&second, &moved, at: 0))
        #expect(moved.dropped == [.length: 1])
        // An older key of the same leader is refused.
        let old = try second.grant(to: 1).given()
        _ = try second.begin(secret(), at: instant(0))
        try moved.take(try second.grant(to: 1).given(), at: instant(0))
        #expect(throws: TrustError.self) { try moved.take(old, at: instant(0)) }
        // Datagrams name 16 bits of the term: leaders that follow one another differ in them.
        for session in 1...600 as ClosedRange<UInt64> {
            let terms = [session, session + 1].map { LeaderTags.firstTerm(of: $0) }
            #expect(terms[0] < terms[1])
            #expect(UInt16(truncatingIfNeeded: terms[0]) != UInt16(truncatingIfNeeded: terms[1]))
        }
    }

    @Test mutating func `nothing of a secret is printed`() throws {
        var leader = try leader()
        let grant = try leader.grant(to: 1).given()
        let room = try RoomTags(grant)
        let bytes = grant.key.secretBytes
        for text in ["\(grant)", String(reflecting: room), "\(leader)"] {
            #expect(!text.contains("\(bytes[0]), \(bytes[1]), \(bytes[2])"))
        }
    }
}
