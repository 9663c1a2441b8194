import Logging
import Synchronization
import Testing
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming

@testable import TuttiRoom

/// Announced leaders of which some answer, without a network.
final class AnnouncedLAN: Sendable {
    private struct State {
        var names: [HostPort: String] = [:]
        var asking = 0
        var most = 0
        var asked: [HostPort] = []
    }
    private let state = Mutex(State())

    /// Questions that were out at the same time.
    var mostAtOnce: Int { state.withLock { $0.most } }
    var asked: [HostPort] { state.withLock { $0.asked } }

    func answers(at address: HostPort, as name: String?) {
        state.withLock { $0.names[address] = name }
    }

    /// An address that nobody has swallows the question until its time is over.
    var ask: LeaderProbe.Ask {
        { address, limit in
            let name = self.state.withLock { state in
                state.asked.append(address)
                state.asking += 1
                state.most = max(state.most, state.asking)
                return state.names[address]
            }
            defer { self.state.withLock { $0.asking -= 1 } }
            if name == nil { await LoopExecutor.shared.sleep(for: limit) }
            return name
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct LeaderFinderTests {
    private static let quiet = Logger(label: "finder", factory: { _ in SwiftLogNoOpLogHandler() })

    private func address(_ number: Int) -> HostPort {
        HostPort(host: "198.51.100.\(number)", port: 7430)
    }

    private func leader(_ name: String, at numbers: Int..., label: String? = nil) -> DiscoveredRoom
    {
        DiscoveredRoom(
            name: name, role: .leader, label: label, addresses: numbers.map(address), group: name)
    }

    private func finder(
        _ lan: AnnouncedLAN, name: String? = nil, preferred: String? = nil
    ) -> LeaderFinder {
        LeaderFinder(
            fixed: nil, name: name, preferred: preferred, logger: Self.quiet, ask: lan.ask)
    }

    @Test func `a given address whose leader has another name than the given one is said once`()
        async throws
    {
        let book = LogBook()
        let finder = LeaderFinder(
            fixed: address(1), name: "kitchen", logger: book.logger, ask: AnnouncedLAN().ask)
        let found = try await finder.next()
        for _ in 0..<3 { finder.welcomed(by: found, called: "attic") }
        let lines = book.all.map(\.message)
        #expect(lines.count == 1)
        #expect(lines.first?.contains("\(address(1)) is called \"attic\", not \"kitchen\"") == true)
        finder.welcomed(by: found, called: "Kitchen")
        #expect(book.all.count == 1, "capitals do not count")
    }

    @Test func `one leader among forty that are not there is found while those are still asked`()
        async throws
    {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        for number in 1...40 { finder.take(.found(leader("gone \(number)", at: number))) }
        finder.take(.found(leader("kitchen", at: 99)))
        lan.answers(at: address(99), as: "kitchen")
        let found = try await finder.next()
        #expect(found.address == address(99) && found.name == "kitchen")
        // Side by side, and none a second time: no time of a silent one has passed.
        #expect(lan.mostAtOnce >= 40)
        #expect(Set(lan.asked).count == lan.asked.count)
    }

    @Test func `the next leader is gone to at once, and not for ever where it is not`() async throws
    {
        let given = address(1)
        let finder = LeaderFinder(fixed: given, name: nil, logger: Self.quiet)
        let first = try await finder.next()
        finder.connected(to: first)
        finder.follow(NextLeader(name: try RoomID("bath"), host: "", port: 99))
        // On the machine of whoever says so.
        let there = HostPort(host: given.host, port: 99)
        for _ in 0..<3 { #expect(try await finder.next().address == there) }
        finder.welcomed(by: try await finder.next(), called: "bath")
        var tries = 0
        while try await finder.next().address == there { tries += 1 }
        #expect(tries == 5)
        #expect(try await finder.next().address == given)
        finder.follow(
            NextLeader(name: try RoomID("bath"), host: "198.51.100.9", port: 99))
        #expect(
            try await finder.next().address == HostPort(host: "198.51.100.9", port: 99))
    }

    @Test func `questions are bounded, and who was silent is asked last`() async throws {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        for number in 1...100 { finder.take(.found(leader("gone \(number)", at: number))) }
        finder.take(.found(leader("kitchen", at: 101)))
        lan.answers(at: address(101), as: "kitchen")
        let found = try await finder.next()
        #expect(found.name == "kitchen")
        #expect(lan.mostAtOnce <= RollCall.mostAtOnce)
    }

    @Test func `a leader that is announced while others are silent is asked at once`() async throws
    {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        lan.answers(at: address(9), as: "late")
        async let found = finder.next()
        finder.take(.found(leader("gone", at: 1)))
        try await until("the silent one is asked") { !lan.asked.isEmpty }
        finder.take(.found(leader("late", at: 9)))
        #expect(try await found.name == "late")
    }

    @Test func `of several that answer, the one followed last, then the one known longest`()
        async throws
    {
        let lan = AnnouncedLAN()
        lan.answers(at: address(1), as: "bath")
        lan.answers(at: address(2), as: "attic")
        lan.answers(at: address(3), as: "kitchen")
        let all = [leader("bath", at: 1), leader("attic", at: 2), leader("kitchen", at: 3)]
        let longest = finder(lan)
        for room in all { longest.take(.found(room)) }
        #expect(try await longest.next().name == "bath")
        let known = finder(lan, preferred: "kitchen")
        for room in all { known.take(.found(room)) }
        #expect(try await known.next().name == "kitchen")
        // It may be announced a moment later than the others.
        let late = finder(lan, preferred: "kitchen")
        late.take(.found(all[0]))
        let before = lan.asked.count
        async let found = late.next()
        try await until("the other one is asked") { lan.asked.count > before }
        late.take(.found(all[2]))
        #expect(try await found.name == "kitchen")
        // Or never: then another one will do.
        let gone = finder(lan, preferred: "kitchen")
        gone.take(.found(all[1]))
        gone.take(.answersTold)
        #expect(try await gone.next().name == "attic")
    }

    @Test func `an address that another leader has by now is not the announced one`() async throws {
        let lan = AnnouncedLAN()
        lan.answers(at: address(1), as: "neighbour")
        lan.answers(at: address(2), as: "kitchen")
        let finder = finder(lan, name: "kitchen")
        finder.take(.found(leader("kitchen", at: 1, 2)))
        finder.take(.found(leader("neighbour", at: 1)))
        #expect(try await finder.next().address == address(2))
    }

    @Test func `when none answers, an error says so`() async throws {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        finder.take(.found(leader("kitchen", at: 1)))
        let error = await #expect(throws: RoomError.self) { try await finder.next() }
        #expect(error?.code == .unreachable)
        #expect(error?.description.contains("kitchen") == true)
    }

    @Test func `a search ends when another begins, and all with their task`() async throws {
        let finder = finder(AnnouncedLAN())
        let first = Task { try await finder.next() }
        try await until("it waits") { finder.changes > 0 }
        let second = Task { try await finder.next() }
        let outcome = await first.result
        #expect(throws: CancellationError.self) { try outcome.get() }
        second.cancel()
        _ = await second.result
    }

    // MARK: The link

    @Test func `a link whose address is gone is ended when the leader answers at another one`()
        async throws
    {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        finder.take(.found(leader("kitchen", at: 1)))
        lan.answers(at: address(1), as: "kitchen")
        let found = try await finder.next()
        finder.connected(to: found)
        let watch = LinkWatch()
        async let end: Void = watch.run(found, finder)
        lan.answers(at: address(1), as: nil)
        lan.answers(at: address(2), as: "kitchen")
        finder.take(.found(leader("kitchen", at: 2)))
        await end
        #expect(watch.verdict?.contains("\(address(2))") == true)
        let again = try await finder.next()
        #expect(again.address == address(2))
    }

    @Test func `of two addresses the other one is taken when one falls silent`() async throws {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        finder.take(.found(leader("kitchen", at: 1, 2)))
        lan.answers(at: address(1), as: "kitchen")
        lan.answers(at: address(2), as: "kitchen")
        let found = try await finder.next()
        #expect(found.address == address(1))
        let watch = LinkWatch()
        async let end: Void = watch.run(found, finder)
        lan.answers(at: address(1), as: nil)
        await end
        #expect(watch.verdict?.contains("\(address(2))") == true)
    }

    @Test func `a link that is heard stays, and so does one of a leader that is silent everywhere`()
        async throws
    {
        let lan = AnnouncedLAN()
        let finder = finder(lan)
        finder.take(.found(leader("kitchen", at: 1)))
        lan.answers(at: address(1), as: "kitchen")
        let found = try await finder.next()
        lan.answers(at: address(1), as: nil)
        let silent = LinkWatch()
        let waiting = Task { await silent.run(found, finder) }
        let asked = lan.asked.count
        try await until("it was asked for several times") { lan.asked.count >= asked + 3 }
        #expect(silent.verdict == nil)
        waiting.cancel()
        await waiting.value
        // Avahi says it has moved; it answers where it was all the same.
        lan.answers(at: address(1), as: "kitchen")
        let heard = LinkWatch()
        let watching = Task { await heard.run(found, finder) }
        let before = lan.asked.count
        finder.take(.found(leader("kitchen", at: 2)))
        try await until("it was looked for") {
            _ = heard.hears(.alive)
            return lan.asked.count > before
        }
        #expect(heard.verdict == nil)
        watching.cancel()
        await watching.value
    }
}
