import Logging
import NIOCore
import Synchronization
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTrust

@testable import TuttiRoom

/// Members, candidates, strangers and former members, on loopback.
@Suite(.timeLimit(.minutes(2))) struct HouseholdTests {
    /// The digits that a node shows or is shown.
    private final class Shown: Sendable {
        private let digits = Mutex<[String]>([])
        var all: [String] { digits.withLock { $0 } }
        func note(_ text: String) { digits.withLock { $0.append(text.filter(\.isNumber)) } }
    }

    private static func code(_ body: () async throws -> Void) async -> RoomError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? RoomError)?.code
        }
    }

    @Test func `members play together, and nobody else is let in`() async throws {
        try await withGroup(isHousehold: true) { group in
            let file = try group.folder.writeNoise(seconds: 60, seed: 1, as: "a.wav")
            try group.prepareHousehold(["leader", "bedroom"])
            try await group.lead([file], roomsToWaitFor: 2)
            group.follow("bedroom")
            try await group.untilPlaying(["bedroom", "leader"])

            let stranger = try group.credentials(of: "stranger")
            #expect(
                await Self.code {
                    _ = try await GroupClient.connect(to: group.address, credentials: stranger)
                } == .stranger)
            // Without a key, a client gets a sentence and no figure.
            #expect(
                await Self.code {
                    _ = try await GroupClient.connect(to: group.address)
                } == .refused)
            // Another household's key is as good as none.
            try HouseholdAccess.prepare([(group.folder.path("state-other"), "other")])
            let other = try group.credentials(of: "other")
            #expect(
                await Self.code {
                    _ = try await GroupClient.connect(to: group.address, credentials: other)
                } == .stranger)
            try await group.untilPlaying(["bedroom", "leader"])
        }
    }

    /// As from a browser, and as a room of another household.
    @Test func `a stranger gets no byte of the music`() async throws {
        try await withGroup(isHousehold: true) { group in
            let file = try group.folder.writeNoise(seconds: 5, seed: 1, as: "a.wav")
            try await group.lead([file])
            let asset = try await group.untilStatus("it plays") { $0.phase == .playing }
            #expect(!asset.rooms.isEmpty)
            let port = group.address.port
            for path in ["/asset/" + String(repeating: "ab", count: 32), "/"] {
                try await RawConnection.open(to: port) { connection in
                    try await connection.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
                    let answer = String(buffer: try await connection.readToEnd())
                    #expect(answer.hasPrefix("HTTP/1.1 403"))
                    #expect(answer.contains("household"))
                }
            }
            let stranger = try group.credentials(of: "stranger")
            let question = try MediaQuestion(
                0..<100,
                of: "http://127.0.0.1:\(port)/asset/" + String(repeating: "ab", count: 32))
            try await blocking { cancellation throws(MediaError) in
                do throws(MediaError) {
                    _ = try MediaConnection(to: question, .seconds(5), stranger, cancellation)
                    Issue.record("a stranger has a link to the media service")
                } catch {
                    #expect(error.code == .network)
                }
            }
        }
    }

    /// A name can be announced by anybody: whose it is, its key says.
    @Test func `who poses as a leader is not taken for one`() async throws {
        try await withGroup(isHousehold: true) { house in
            try await house.lead([], output: .none)
            try await withGroup(isHousehold: true) { impostor in
                try await impostor.lead([], output: .none)
                let ask = LeaderProbe.ask(with: try house.credentials())
                #expect(await ask(house.address, .seconds(10)) == "leader")
                #expect(await ask(impostor.address, .seconds(10)) == nil)
            }
            try await withGroup { impostor in
                try await impostor.lead([], output: .none)
                let ask = LeaderProbe.ask(with: try house.credentials())
                #expect(await ask(impostor.address, .seconds(10)) == nil)
            }
        }
    }

    @Test func `six digits let a room in, at the leader or from another member`() async throws {
        try await withGroup(isHousehold: true) { group in
            let file = try group.folder.writeNoise(seconds: 60, seed: 1, as: "a.wav")
            try await group.lead([file])
            let leader = try #require(group.leader.withLock { $0 })
            group.follow("bedroom")
            for await candidates in leader.candidates {
                guard let candidate = candidates.first else { continue }
                #expect(candidate.name == "bedroom")
                #expect(throws: RoomError.self) { try leader.accept("not these") }
                try leader.accept(candidate.digits)
                break
            }
            try await group.untilPlaying(["bedroom", "leader"])

            // The new one lets in the next, which has no output.
            let access = try HouseholdAccess(group.credentials(of: "phone"))
            let member = try HouseholdAccess(group.credentials(of: "bedroom"))
            let shown = Shown()
            async let paired: Void = access.pair(at: group.address) { digits, household in
                #expect(household == "leader")
                shown.note(digits)
            }
            try await until("the digits are shown") { !shown.all.isEmpty }
            let waiting = try await member.candidates(at: group.address)
            #expect(waiting.map(\.digits) == shown.all)
            try await member.accept(shown.all[0], at: group.address)
            try await paired
            let phone = try await GroupClient.connect(
                to: group.address, credentials: group.credentials(of: "phone"))
            try await phone.perform(.pause)
            let names = try await member.members(asking: group.address).map(\.name)
            #expect(names == ["bedroom", "leader", "phone"])
        }
    }

    /// A house that is set up has several machines that want in at once.
    @Test func `who wants in while another is paired waits for its turn`() async throws {
        try await withGroup(isHousehold: true) { group in
            try await group.lead([], output: .none)
            let leader = try #require(group.leader.withLock { $0 })
            let (shown, waiting) = (Shown(), Shown())
            @Sendable func pair(_ name: String) async throws {
                let access = try HouseholdAccess(group.credentials(of: name))
                try await access.pair(at: group.address) {
                    waiting.note("")
                } show: { digits, _ in
                    shown.note(digits)
                }
            }
            async let first: Void = pair("attic")
            try await until("the first is shown") { shown.all.count == 1 }
            async let second: Void = pair("cellar")
            try await until("the second waits") { waiting.all.count == 1 }
            #expect(shown.all.count == 1)
            // The candidate shows them before its last message has reached the leader.
            try await until("the leader has them") { (try? leader.accept(shown.all[0])) != nil }
            try await first
            try await until("the second is shown") { shown.all.count == 2 }
            try await until("the leader has them") { (try? leader.accept(shown.all[1])) != nil }
            try await second
            #expect(waiting.all.count == 1)
        }
    }

    @Test func `a member can be named as lists print it`() async throws {
        try await withGroup(isHousehold: true) { group in
            try group.prepareHousehold(["leader", "bedroom", "attic"])
            try await group.lead([], output: .none)
            let access = try HouseholdAccess(group.credentials(of: "bedroom"))
            let attic = try #require(
                try await access.members(asking: nil).first { $0.name == "attic" })
            _ = try await access.remove(
                attic.shortFingerprint, isStolen: false, telling: group.address)
            let names = try await access.members(asking: nil).map(\.name)
            #expect(names == ["bedroom", "leader"])
        }
    }

    /// One that was removed, or has left, is none of the household: neither does it count leaders as
    /// its own, nor does it lead.
    @Test func `who is out concerns nobody, until it is let in again`() throws {
        let folder = try TemporaryFolder()
        let nodes = ["leader", "attic"].map { (folder: folder.path($0), name: $0) }
        try HouseholdAccess.prepare(nodes)
        let leader = try Credentials.household(in: nodes[0].folder, name: "leader")
        let attic = try Credentials.household(in: nodes[1].folder, name: "attic")
        let announced = try #require(leader.announcedHousehold)
        #expect(
            attic.concerns(announced) && !attic.concerns(nil)
                && !Credentials.open.concerns(announced))
        #expect(Credentials.open.concerns(nil))
        let finder = LeaderFinder(
            fixed: nil, name: nil, credentials: attic, logger: Logger(label: "finder"))
        finder.take(
            .found(
                DiscoveredRoom(
                    name: "leader", role: .leader,
                    addresses: [HostPort(host: "198.51.100.1", port: 1)], group: "leader",
                    household: announced)))
        #expect(finder.knowsLeaders)

        let keepers = try #require(leader.keeper.flatMap { a in attic.keeper.map { (a, $0) } })
        try keepers.0.remove(keepers.1.fingerprint, keepsDeeds: true)
        let household = try #require(keepers.0.household)
        try keepers.1.adopt(household)
        finder.householdChanged()
        #expect(!attic.isSeated && !attic.concerns(announced) && !attic.concerns(nil))
        #expect(!finder.knowsLeaders)
        #expect(try HouseholdAccess(attic).announced == nil)

        try keepers.1.adopt(try keepers.0.admit(keepers.1.key.publicKey, keepers.1.name))
        finder.householdChanged()
        #expect(attic.isSeated && finder.knowsLeaders)
    }

    /// Somebody in between has a key of its own towards each side, so the digits differ.
    @Test func `somebody in between cannot make both sides show the same`() async throws {
        try await withGroup(isHousehold: true) { house in
            try await house.lead([], output: .none)
            let leader = try #require(house.leader.withLock { $0 })
            try await withGroup(isHousehold: true) { between in
                try await between.lead([], output: .none)
                let impostor = try #require(between.leader.withLock { $0 })
                let candidate = try HouseholdAccess(between.credentials(of: "candidate"))
                let passedOn = try HouseholdAccess(between.credentials(of: "passed on"))
                let (atCandidate, atImpostor) = (Shown(), Shown())
                let first = Task {
                    try await candidate.pair(at: between.address) { digits, _ in
                        atCandidate.note(digits)
                    }
                }
                let second = Task {
                    try await passedOn.pair(at: house.address) { digits, _ in
                        atImpostor.note(digits)
                    }
                }
                try await until("both are shown") {
                    !atCandidate.all.isEmpty && !atImpostor.all.isEmpty
                }
                // What the house shows is the impostor's, and not what the candidate shows.
                for await waiting in leader.candidates where !waiting.isEmpty {
                    #expect(waiting.map(\.digits) == atImpostor.all)
                    #expect(waiting.map(\.digits) != atCandidate.all)
                    #expect(throws: RoomError.self) { try leader.accept(atCandidate.all[0]) }
                    try leader.decline(waiting[0].digits)
                    break
                }
                await #expect(throws: RoomError.self) { try await second.value }
                try impostor.decline(atCandidate.all[0])
                await #expect(throws: RoomError.self) { try await first.value }
                #expect(!candidate.isMember)
            }
        }
    }

    @Test func `who is removed is out at once, and the others play on`() async throws {
        try await withGroup(isHousehold: true) { group in
            let file = try group.folder.writeNoise(seconds: 60, seed: 1, as: "a.wav")
            try group.prepareHousehold(["leader", "bedroom", "attic"])
            try await group.lead([file], roomsToWaitFor: 3)
            group.follow("bedroom")
            group.follow("attic")
            try await group.untilPlaying(["attic", "bedroom", "leader"])
            let before = try await group.client().status().positionSeconds

            let former = try await GroupClient.connect(
                to: group.address, credentials: group.credentials(of: "attic"))
            let known = try #require(try await former.datagramTags())
            let ended = Task {
                do { for try await _ in former.events() {} } catch {}
            }
            let access = try HouseholdAccess(group.credentials(of: "bedroom"))
            let isTold = try await access.remove(
                "attic", isStolen: false, telling: group.address)
            #expect(isTold)
            // Its room and what it watched with are closed by the leader, not by their own will.
            await ended.value
            try await group.untilPlaying(["bedroom", "leader"])
            #expect(
                await Self.code {
                    _ = try await GroupClient.connect(
                        to: group.address, credentials: group.credentials(of: "attic"))
                } == .stranger)
            try await group.untilStatus("it went on") { $0.positionSeconds > before }
            // The key that it knows is worth nothing, and the others have another one.
            let term = known { $0.term }
            try await until("there is another key") {
                try await group.client().datagramTags().map { $0 { $0.term } } == term + 1
            }
            let status = try await group.untilStatus("its clock is known") {
                $0.rooms.allSatisfy { $0.sync?.clock == .locked }
            }
            #expect(status.rooms.allSatisfy { ($0.sync?.dropped?.untagged ?? 0) == 0 })
            // It knows by now, and says so.
            let keeper = try #require(group.credentials(of: "attic").keeper)
            guard case .removed? = keeper.ownStanding else {
                Issue.record("the attic does not know: \(String(describing: keeper.ownStanding))")
                return
            }
        }
    }

    @Test func `an invite is good once`() async throws {
        try await withGroup(isHousehold: true) { group in
            try await group.lead([], output: .none)
            let member = try HouseholdAccess(group.credentials())
            let invite = try await member.invite(minutes: 1, at: group.address)
            let phone = try HouseholdAccess(group.credentials(of: "phone"))
            try await phone.join(code: invite.text, at: group.address)
            _ = try await GroupClient.connect(
                to: group.address, credentials: group.credentials(of: "phone"))
            let second = try HouseholdAccess(group.credentials(of: "second"))
            for code in [invite.text, "0400-20G3-0G2G-C1R8-1450-P30D-1R7V-H3E2", "nonsense"] {
                #expect(
                    await Self.code {
                        try await second.join(code: code, at: group.address)
                    } == .refused)
            }
            #expect(!second.isMember)
            // What it is called, it says itself.
            try await until("it has its name") {
                try await member.members(asking: group.address).map(\.name) == ["leader", "phone"]
            }
            await #expect(throws: RoomError.self) {
                _ = try await member.invite(minutes: 0, at: group.address)
            }
        }
    }

    @Test func `who leaves is nobody's, and founds or joins another`() async throws {
        try await withGroup(isHousehold: true) { group in
            try group.prepareHousehold(["leader", "bedroom"])
            try await group.lead([], output: .none)
            let bedroom = try HouseholdAccess(group.credentials(of: "bedroom"))
            await #expect(throws: RoomError.self) {
                try await bedroom.pair(at: group.address) { _, _ in }
            }
            let isTold = try await bedroom.leave(telling: group.address)
            #expect(isTold)
            #expect(!bedroom.isMember && bedroom.isFree)
            let leader = try HouseholdAccess(group.credentials())
            let names = try await leader.members(asking: group.address).map(\.name)
            #expect(names == ["leader"])
        }
    }

    /// One of a household that was let in while the leader did not hear of it is let in all the same.
    @Test func `news of the household goes both ways with the first link`() async throws {
        try await withGroup(isHousehold: true) { group in
            try group.prepareHousehold(["leader", "bedroom"])
            try await group.lead([], output: .none)
            // Beside the leader's folder: its process is not told.
            let keeper = try #require(group.credentials(of: "bedroom").keeper)
            let attic = try #require(group.credentials(of: "attic").keeper)
            try attic.adopt(try keeper.admit(attic.key.publicKey, attic.name))
            let client = try await GroupClient.connect(
                to: group.address, timeout: .seconds(10),
                credentials: Credentials(kind: .household(attic)))
            _ = try await client.status()
        }
    }
}
