import Foundation
import Logging
import Testing
import TuttiChance

@testable import TuttiRoom

@Suite struct NodeBackupTests {
    private func withFolders(_ body: (String, String) throws -> Void) throws {
        let base = "\(NSTemporaryDirectory())/tutti-backup-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: base) }
        try body("\(base)/old", "\(base)/new")
    }

    /// A node with a key, and some of what it remembers.
    private func makeNode(in path: String) throws {
        let folder = StateFolder(path: path)
        _ = try NodeSecrets(folder: folder, logger: Logger(label: "test")).key()
        try folder.write("room-kitchen", "a\nb\n")
        try folder.write("empty", "")
        try folder.write("household.99999.new", "half")
        try folder.write("room-x.bad", "bad")
    }

    @Test func `a node that is restored elsewhere is the same node`() throws {
        try withFolders { old, new in
            try makeNode(in: old)
            let bytes = try NodeBackup.make(of: old)
            let names = try NodeBackup.restore(bytes, to: new)
            #expect(names == ["empty", "key", "room-kitchen"])
            for name in names {
                let (one, other) = (
                    try Data(contentsOf: URL(fileURLWithPath: "\(old)/\(name)")),
                    try Data(contentsOf: URL(fileURLWithPath: "\(new)/\(name)"))
                )
                #expect(one == other)
                let mode = try FileManager.default.attributesOfItem(atPath: "\(new)/\(name)")
                #expect(mode[.posixPermissions] as? Int == 0o600)
            }
            // Once more over itself, and from where it is now.
            try NodeBackup.restore(bytes, to: new)
            #expect(try NodeBackup.make(of: new) == bytes)
        }
    }

    @Test func `another node is not lost, unless that is asked for`() throws {
        try withFolders { old, new in
            try makeNode(in: old)
            try makeNode(in: new)
            let bytes = try NodeBackup.make(of: old)
            let before = try NodeBackup.make(of: new)
            #expect(before != bytes)
            #expect(throws: RoomError.self) { try NodeBackup.restore(bytes, to: new) }
            #expect(try NodeBackup.make(of: new) == before)
            try NodeBackup.restore(bytes, to: new, overwrites: true)
            #expect(try NodeBackup.make(of: new) == bytes)
        }
    }

    /// `sudo tutti restore`, and every other command of the superuser, on the folder of a service.
    @Test(.enabled(if: geteuid() == 0, "files of others are the superuser's to make"))
    func `what the superuser writes in a node's folder the node can read`() throws {
        try withFolders { old, new in
            try makeNode(in: old)
            let bytes = try NodeBackup.make(of: old)
            try FileManager.default.createDirectory(
                atPath: new, withIntermediateDirectories: true)
            let owner: uid_t = 54_321
            #expect(chown(new, owner, owner) == 0)
            _ = try NodeBackup.restore(bytes, to: new)
            try StateFolder(path: new).exclusively("household") {}
            for name in try FileManager.default.contentsOfDirectory(atPath: new) {
                var facts = stat()
                #expect(stat("\(new)/\(name)", &facts) == 0)
                #expect(facts.st_uid == owner && facts.st_gid == owner, "\(name)")
            }
        }
    }

    @Test func `a folder without a node is not packed`() throws {
        try withFolders { old, _ in
            #expect(throws: RoomError.self) { try NodeBackup.make(of: old) }
            try StateFolder(path: old).write("room-kitchen", "a")
            #expect(throws: RoomError.self) { try NodeBackup.make(of: old) }
        }
    }

    /// Every byte changed, every end cut off, and things that are no backup at all.
    @Test func `what is damaged changes nothing`() throws {
        try withFolders { old, new in
            try makeNode(in: old)
            let bytes = try NodeBackup.make(of: old)
            var random = SplitMix64(seed: 3)
            for place in bytes.indices {
                var damaged = bytes
                damaged[place] ^= UInt8.random(in: 1...255, using: &random)
                #expect(throws: RoomError.self) { try NodeBackup.restore(damaged, to: new) }
                let cut = Array(bytes[..<place])
                #expect(throws: RoomError.self) { try NodeBackup.restore(cut, to: new) }
            }
            for text in ["", "tutti backup 2\nend 0\n", "tutti backup 1\n", "GIF89a", "\n\n"] {
                #expect(throws: RoomError.self) {
                    try NodeBackup.restore(Array(text.utf8), to: new)
                }
            }
            #expect(throws: RoomError.self) { try NodeBackup.restore(bytes + [10], to: new) }
            #expect(!FileManager.default.fileExists(atPath: new))
        }
    }

    @Test(arguments: ["../key", "/etc/passwd", ".hidden", "a/b", ""])
    func `a name leads nowhere else`(name: String) throws {
        try withFolders { old, new in
            try makeNode(in: old)
            var bytes = Array("tutti backup 1\nfile \(name) 1\nx\n".utf8)
            bytes += Array("end 0\n".utf8)
            #expect(throws: RoomError.self) { try NodeBackup.restore(bytes, to: new) }
            #expect(!FileManager.default.fileExists(atPath: new))
        }
    }
}
