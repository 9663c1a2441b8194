import Testing

@testable import TuttiRoom

struct LeaderMemoryTests {
    private func leader(_ name: String, label: String? = nil) -> DiscoveredRoom {
        DiscoveredRoom(
            name: name, role: .leader, label: label,
            addresses: [HostPort(host: "192.0.2.1", port: 7430)])
    }

    @Test func `it confirms the leaders of the last look, and no others`() {
        let memory = LeaderMemory([leader("kitchen"), leader("bath")])
        #expect(memory.confirms([leader("bath"), leader("kitchen")]))
        #expect(!memory.confirms([leader("kitchen")]))
        #expect(!memory.confirms([leader("kitchen"), leader("bath"), leader("attic")]))
        #expect(!memory.confirms([leader("kitchen"), leader("bath", label: "bath #2")]))
        #expect(!LeaderMemory([]).confirms([]))
    }

    @Test func `it is believed for less time than a daemon keeps what it heard`() {
        var memory = LeaderMemory([leader("kitchen")])
        memory.at -= LeaderMemory.lifetime
        #expect(!memory.confirms([leader("kitchen")]))
        memory.at += 2 * LeaderMemory.lifetime
        #expect(!memory.confirms([leader("kitchen")]), "the clock was set back")
    }

    @Test(arguments: [Int64.min, .min + 1, -1, .max])
    func `what a damaged file says of the time is not believed`(at: Int64) throws {
        let text = "\(LeaderMemory.heading)\n\(at)\nkitchen\n"
        let memory = try #require(LeaderMemory(parsing: text))
        #expect(!memory.confirms([leader("kitchen")]))
    }

    @Test func `it is written and read`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let memory = LeaderMemory([leader("Küche ☕"), leader("bath")])
        memory.write(in: folder.path("state"))
        #expect(LeaderMemory.read(in: folder.path("state")) == memory)
        #expect(LeaderMemory.read(in: folder.path("nowhere")) == nil)
        #expect(LeaderMemory(parsing: "something\nelse\n") == nil)
        // A label of somebody else's that is no line is not kept.
        #expect(LeaderMemory([leader("a\nb")]).text == nil)
    }
}
