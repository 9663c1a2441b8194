import Foundation
import Testing

/// Every parser on what it is made for, and on what is like it. `deploy/fuzz` goes on from there,
/// with libFuzzer, which sees which way the bytes take.
@Suite(.serialized) struct FuzzingTests {
    /// Of each parser, for each seed of chance; a few seconds for all of them.
    private static let mutations = 1_500

    @Test func `every parser has a name of its own and seeds`() throws {
        #expect(Set(Harness.all.map(\.name)).count == Harness.all.count)
        for harness in Harness.all {
            let seeds = try harness.seeds()
            #expect(!seeds.isEmpty, "\(harness.name)")
            #expect(seeds.allSatisfy { $0.count <= harness.longest }, "\(harness.name)")
        }
    }

    @Test(arguments: Harness.all.map(\.name))
    func `a parser holds on its seeds and on what is like them`(name: String) async throws {
        let harness = try #require(Harness.all.first { $0.name == name })
        let seeds = try harness.seeds()
        let note = InputNote(name)
        defer { note.remove() }
        for seed in seeds {
            note.write(seed)
            try await harness.run(seed)
        }
        var mutation = Mutation(of: seeds, longest: harness.longest, seed: 1)
        for round in 0..<Self.mutations {
            let bytes = mutation.next()
            note.write(bytes)
            do {
                try await harness.run(bytes)
            } catch {
                Issue.record("\(name), round \(round): \(error)\n\(note.repeats(bytes))")
                return
            }
        }
    }

    @Test(arguments: Harness.all.map(\.name))
    func `nothing at all, and a byte of each kind, is survived`(name: String) async throws {
        let harness = try #require(Harness.all.first { $0.name == name })
        try await harness.run([])
        for byte in UInt8.min ... .max { try await harness.run([byte]) }
    }
}

/// The input of now, in a file: what ends the process leaves it behind.
private final class InputNote {
    private let path: String
    private let descriptor: Int32

    init(_ name: String) {
        path = "\(FileManager.default.temporaryDirectory.path)/tutti-fuzzing-\(name)"
        descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) {
        ftruncate(descriptor, 0)
        _ = pwrite(descriptor, bytes, bytes.count, 0)
    }

    func remove() { unlink(path) }

    func repeats(_ bytes: [UInt8]) -> String {
        let text = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "the input, in hexadecimal: \(text)"
    }
}
