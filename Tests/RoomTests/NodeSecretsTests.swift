import Glibc
import Logging
import Testing
import TuttiTrust

@testable import TuttiRoom

/// Key and household on the disk.
@Suite struct NodeSecretsTests {
    private let folder: TemporaryFolder
    private let book = LogBook()

    init() throws { folder = try TemporaryFolder() }

    private func keeper() throws -> HouseholdKeeper {
        try HouseholdKeeper(
            StateFolder(path: folder.path("state")), name: "kitchen", logger: book.logger)
    }

    private func mode(_ name: String) -> mode_t {
        var facts = stat()
        stat(folder.path("state/\(name)"), &facts)
        return facts.st_mode & 0o777
    }

    @Test func `a node is the same after a restart, and nobody else can read why`() throws {
        defer { folder.remove() }
        let first = try keeper()
        #expect(first.household == nil && first.isFree)
        try first.foundIfNone()
        let second = try keeper()
        #expect(second.fingerprint == first.fingerprint)
        #expect(second.household?.number == first.household?.number)
        #expect(mode("key") == 0o600)
        #expect(mode("household") == 0o600)
        // Founded once.
        try second.foundIfNone()
        #expect(second.household?.records.count == 1)
    }

    @Test func `what one process changes the other notices`() throws {
        defer { folder.remove() }
        let (node, tool) = (try keeper(), try keeper())
        try node.foundIfNone()
        tool.refresh()
        #expect(tool.household?.number == node.household?.number)
        try tool.rename(tool.fingerprint, to: MemberName("parlour"))
        node.refresh()
        #expect(node.household?.member(node.fingerprint)?.name.text == "parlour")
        try tool.forget()
        node.refresh()
        #expect(node.household == nil)
    }

    @Test(arguments: ["", "nonsense", "tutti key 1\nzz\n", "tutti key 1\n00\n"])
    func `a damaged key is set aside, with one message`(text: String) throws {
        defer { folder.remove() }
        let state = StateFolder(path: folder.path("state"))
        try state.write("key", text)
        let made = try keeper()
        #expect(book.all.count == 1)
        #expect(try state.read("key.bad") == text)
        #expect(try keeper().fingerprint == made.fingerprint)
    }

    @Test func `a damaged household is set aside, with one message`() throws {
        defer { folder.remove() }
        try keeper().foundIfNone()
        let state = StateFolder(path: folder.path("state"))
        var bytes = try #require(try state.readBytes("household", most: Household.longest))
        bytes[bytes.count - 1] ^= 1
        try state.write("household", bytes)
        #expect(try keeper().household == nil)
        #expect(book.all.count == 1)
        #expect(try state.readBytes("household.bad", most: Household.longest) == bytes)
    }

    @Test(arguments: [("key", 257), ("household", Household.longest + 1)])
    func `a file that is too long is damaged, too`(name: String, count: Int) throws {
        defer { folder.remove() }
        let state = StateFolder(path: folder.path("state"))
        try state.write(name, [UInt8](repeating: 32, count: count))
        #expect(try keeper().household == nil)
        #expect(book.all.count == 1)
        #expect(try state.readBytes("\(name).bad", most: count)?.count == count)
    }

    @Test(arguments: ["key", "household"])
    func `what a newer version wrote is left as it is`(name: String) throws {
        defer { folder.remove() }
        try keeper().foundIfNone()
        let state = StateFolder(path: folder.path("state"))
        var bytes = try #require(try state.readBytes(name, most: Household.longest))
        // "tutti key 9", and version 9 behind the magic of a household.
        bytes[name == "key" ? 10 : 4] = name == "key" ? UInt8(ascii: "9") : 9
        try state.write(name, bytes)
        #expect(throws: RoomError.self) { _ = try keeper() }
        #expect(try state.readBytes(name, most: Household.longest) == bytes)
        #expect(try state.readBytes("\(name).bad", most: Household.longest) == nil)
    }

    @Test func `a folder that cannot be written is an error that says what to do`() throws {
        defer { folder.remove() }
        try StateFolder(path: folder.path("state")).write("x", "a file")
        let error = #expect(throws: RoomError.self) {
            _ = try HouseholdKeeper(
                StateFolder(path: folder.path("state/x/y")), name: "kitchen", logger: book.logger)
        }
        #expect(error?.code == .badState)
    }

    @Test(arguments: ["", "\u{202E}", String(repeating: "x", count: 500), "a\nb"])
    func `any name of a room makes one of a member`(text: String) throws {
        defer { folder.remove() }
        let keeper = try HouseholdKeeper(nil, name: text, logger: book.logger)
        #expect(!keeper.name.text.isEmpty)
    }
}
