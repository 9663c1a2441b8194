import Foundation
import Testing

@testable import tutti

@Suite struct SecretFileTests {
    private static let (old, new): ([UInt8], [UInt8]) = ([1, 2, 3], [4, 5])

    @Test func `only its owner reads it, and nothing is left beside it`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/node.backup"
        for bytes in [Self.old, Self.new] {
            try writeSecret(bytes, to: path, replaces: true)
            #expect(try readBytes(ofFile: path, most: 3) == bytes)
        }
        let facts = try FileManager.default.attributesOfItem(atPath: path)
        #expect(facts[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
    }

    @Test func `a file that is there stays, unless it is to be replaced`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/node.backup"
        try writeSecret(Self.old, to: path, replaces: false)
        #expect(throws: CommandError.self) {
            try writeSecret(Self.new, to: path, replaces: false)
        }
        #expect(try readBytes(ofFile: path, most: 3) == Self.old)
    }

    /// The new one has no place beside it: its name would be too long.
    @Test func `what is to be replaced stays where the new one cannot be written`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/" + String(repeating: "b", count: 255)
        try writeSecret(Self.old, to: path, replaces: false)
        #expect(throws: CommandError.self) {
            try writeSecret(Self.new, to: path, replaces: true)
        }
        #expect(try readBytes(ofFile: path, most: 3) == Self.old)
    }

    @Test func `a file longer than what is meant is not read`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/long"
        try writeSecret(Self.old, to: path, replaces: false)
        #expect(throws: CommandError.self) { try readBytes(ofFile: path, most: 2) }
    }
}
