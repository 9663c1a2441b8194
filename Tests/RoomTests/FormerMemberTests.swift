import Logging
import NIOCore
import Synchronization
import Testing
import TuttiGroupControl
import TuttiSecureLinks
import TuttiTrust

@testable import TuttiRoom

/// What those try who were removed, and those who never belonged to it.
@Suite(.timeLimit(.minutes(2))) struct FormerMemberTests {
    private static func code(_ body: () async throws -> Void) async -> RoomError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? RoomError)?.code
        }
    }

    private static func keeper(_ group: TestGroup, _ node: String) throws -> HouseholdKeeper {
        try #require(group.credentials(of: node).keeper)
    }

    /// Says something on a household link, and gives the first answer; `nil` where it is closed.
    private static func answer(
        to message: HouseholdMessage, of keeper: HouseholdKeeper, at address: HostPort
    ) async throws -> HouseholdMessage? {
        let (link, _) = try await MessageChannel.connect(
            to: address, keeper, .household, limit: HouseholdMessage.longest)
        let answer = Mutex<[UInt8]?>(nil)
        // A link that is closed already cannot be closed.
        try? await link.executeThenClose { inbound, outbound in
            try? await outbound.write(message.bytes)
            for try await bytes in inbound {
                answer.withLock { $0 = bytes }
                return
            }
        }
        return try answer.withLock { $0 }.map(HouseholdMessage.init(bytes:))
    }

    @Test func `who came by an invite and was removed does not come back by it`() async throws {
        try await withGroup(isHousehold: true) { group in
            try await group.lead([], output: .none)
            let member = try HouseholdAccess(group.credentials())
            let invite = try await member.invite(minutes: 10, at: group.address)
            let phone = try HouseholdAccess(group.credentials(of: "phone"))
            try await phone.join(code: invite.text, at: group.address)
            // The phone has asked for another one; both are worth nothing once it is out.
            let second = try await phone.invite(minutes: 10, at: group.address)
            #expect(try await member.members(asking: group.address).count == 2)
            let isTold = try await member.remove("phone", isStolen: false, telling: group.address)
            #expect(isTold)
            for (code, node) in [(invite, "phone"), (second, "phone"), (second, "accomplice")] {
                let access = try HouseholdAccess(group.credentials(of: node))
                #expect(
                    await Self.code {
                        try await access.join(code: code.text, at: group.address)
                    } == .refused)
            }
            let names = try await member.members(asking: group.address).map(\.name)
            #expect(names == ["leader"])
        }
    }

    @Test func `whom a stolen machine has accepted goes with it`() async throws {
        try await withGroup(isHousehold: true) { group in
            try group.prepareHousehold(["leader", "bedroom"])
            try await group.lead([], output: .none)
            let bedroom = try HouseholdAccess(group.credentials(of: "bedroom"))
            let phone = try HouseholdAccess(group.credentials(of: "phone"))
            let shown = Mutex<String?>(nil)
            async let paired: Void = phone.pair(at: group.address) { digits, _ in
                shown.withLock { $0 = digits }
            }
            try await until("the digits are shown") { shown.withLock { $0 != nil } }
            let digits = try #require(shown.withLock { $0 })
            try await bedroom.accept(digits, at: group.address)
            try await paired
            #expect(phone.isMember)
            let leader = try HouseholdAccess(group.credentials())
            #expect(try await leader.members(asking: group.address).count == 3)
            let isTold = try await leader.remove("bedroom", isStolen: true, telling: group.address)
            #expect(isTold)
            let names = try await leader.members(asking: group.address).map(\.name)
            #expect(names == ["leader"])
        }
    }

    @Test func `of strangers and former members no records are taken`() async throws {
        try await withGroup(isHousehold: true) { group in
            try group.prepareHousehold(["leader", "bedroom", "attic"])
            try await group.lead([], output: .none)
            let leader = try Self.keeper(group, "leader")
            let known = try #require(leader.household)
            let attic = try Self.keeper(group, "attic")
            // Removed, and it says that everybody else is.
            try leader.remove(attic.fingerprint, keepsDeeds: true)
            try await until("the leader knows") { () async throws -> Bool in
                if case .excerpt? = try await Self.answer(
                    to: attic.greeting, of: attic, at: group.address)
                {
                    return true
                }
                return false
            }
            try attic.remove(try Self.keeper(group, "bedroom").fingerprint, keepsDeeds: false)
            let revenge = try #require(attic.household)
            guard
                case .excerpt(let founding, let records)? = try await Self.answer(
                    to: .records(revenge.bytes), of: attic, at: group.address)
            else {
                Issue.record("a former member is not told that it is out")
                return
            }
            #expect(founding == known.number.bytes)
            // Nothing of the others is in it but how the two came in.
            #expect(!records.contains { $0.admitted?.name.text == "bedroom" })
            // One that never belonged to it, with the true records of a former member.
            let stranger = try Self.keeper(group, "stranger")
            try stranger.adopt(known)
            for message in [
                HouseholdMessage.records(revenge.bytes),
                .excerpt(founding: known.number.bytes, known.records),
            ] {
                guard
                    case .stranger? = try await Self.answer(
                        to: message, of: stranger, at: group.address)
                else {
                    Issue.record("a stranger is told something else")
                    return
                }
            }
            leader.refresh()
            #expect(leader.household?.members.map(\.name.text).sorted() == ["bedroom", "leader"])
        }
    }

    @Test func `a stranger's message is short, or the link ends`() async throws {
        try await withGroup(isHousehold: true) { group in
            try await group.lead([], output: .none)
            let stranger = try Self.keeper(group, "stranger")
            let long = [UInt8](repeating: 0, count: HouseholdMessage.longestOfStranger)
            let answer = try await Self.answer(
                to: .records(long), of: stranger, at: group.address)
            #expect(answer == nil)
        }
    }

    @Test func `a node does not say who its household is, but how it came in itself`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let nodes = ["leader", "bedroom", "attic"].map { (folder.path($0), $0) }
        try HouseholdAccess.prepare(nodes)
        let keeper = try #require(
            try Credentials.household(in: nodes[2].0, name: "attic").keeper)
        guard case .excerpt(_, let records) = keeper.greeting else {
            Issue.record("it begins with something else")
            return
        }
        #expect(records.compactMap { $0.admitted?.name.text } == ["leader", "attic"])
    }

    /// Its own links to who was removed are closed by a node itself: a leader that means ill does not.
    @Test func `links to a leader that was removed end`() async throws {
        try await withGroup(isHousehold: true) { group in
            try group.prepareHousehold(["leader", "bedroom"])
            try await group.lead([], output: .none)
            let credentials = try group.credentials(of: "bedroom")
            let keeper = try #require(credentials.keeper)
            let client = try await GroupClient.connect(
                to: group.address, credentials: credentials)
            let link = try await TuttiRoom.connect(
                to: group.address, timeout: .seconds(3), limit: 1 << 20, credentials)
            let ended = Task { do { for try await _ in client.events() {} } catch {} }
            let leader = try Self.keeper(group, "leader").fingerprint
            try keeper.remove(leader, keepsDeeds: true)
            await ended.value
            try await link.channel.closeFuture.get()
            #expect(
                await Self.code {
                    _ = try await GroupClient.connect(
                        to: group.address, credentials: credentials)
                } == .stranger)
        }
    }

    /// A link that breaks says nothing: its pairing is over all the same.
    @Test func `a candidate whose link breaks leaves its place at once`() async throws {
        try await withGroup(isHousehold: true) { group in
            try await group.lead([], output: .none)
            let candidate = try Self.keeper(group, "candidate")
            for _ in 0..<2 {
                let (link, _) = try await MessageChannel.connect(
                    to: group.address, candidate, .pairing, limit: HouseholdMessage.longest)
                try? await link.executeThenClose { inbound, outbound in
                    // Longer than anything that is said there: the leader breaks off.
                    let long = [UInt8](repeating: 0, count: 2 * HouseholdMessage.longestText)
                    try? await outbound.write(long)
                    do { for try await _ in inbound {} } catch {}
                }
            }
            let phone = try HouseholdAccess(group.credentials(of: "phone"))
            let shown = Mutex<String?>(nil)
            let pairing = Task {
                try await phone.pair(at: group.address) { digits, _ in
                    shown.withLock { $0 = digits }
                }
            }
            try await until("the digits are shown") { shown.withLock { $0 != nil } }
            let leader = try #require(group.leader.withLock { $0 })
            try leader.decline(try #require(shown.withLock { $0 }))
            await #expect(throws: RoomError.self) { try await pairing.value }
        }
    }
}
