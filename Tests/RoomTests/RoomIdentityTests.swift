import Foundation
import Logging
import Testing
import TuttiGroupControl

@testable import TuttiRoom

struct RoomIdentityTests {
    private static let quiet = Logger(label: "identity", factory: { _ in SwiftLogNoOpLogHandler() })

    private func identity(_ room: String, _ folder: String?) throws -> RoomIdentity {
        RoomIdentity(
            room: try RoomID(room), in: folder.map(StateFolder.init(path:)), logger: Self.quiet)
    }

    @Test func `a room that comes back is the same, and knows what it was called`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path("state")
        var number: UInt64 = 0
        do {
            let first = try identity("attic", path)
            first.keep(name: try RoomID("attic (2)"))
            first.keep(leader: "kitchen")
            first.close()
            number = first.number
        }
        let second = try identity("attic", path)
        #expect(second.number == number)
        #expect(second.name?.name == "attic (2)")
        #expect(second.leader == "kitchen")
        #expect(try identity("bath", path).number != number)
    }

    @Test func `a second process on the same folder is another room`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let first = try identity("attic", folder.path("state"))
        let second = try identity("attic", folder.path("state"))
        #expect(first.number != second.number)
    }

    @Test func `without a folder, or with a file that is none of ours, an identity is made`() throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(try identity("attic", nil).number != (try identity("attic", nil).number))
        #expect(try identity("attic", "/proc/nowhere").number != 0)
        let path = folder.path("state")
        try StateFolder(path: path).write(
            "identity-attic-" + RoomStore.fileName(of: RoomID("attic")).suffix(8), "nonsense\n")
        #expect(try identity("attic", path).number != 0)
    }
}
