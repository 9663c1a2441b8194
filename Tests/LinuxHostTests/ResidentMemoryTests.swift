import Glibc
import Testing

@testable import TuttiLinuxHost

/// The kernel's account of this process's memory: `/proc/self/smaps`.
private struct Mapping {
    var range: Range<UInt>
    var isWritable: Bool
    /// kB.
    var resident = 0
    /// Pages of our own, other than in the file.
    var changed = 0

    static func all() throws -> [Mapping] {
        let file = try #require(fopen("/proc/self/smaps", "r"))
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 4_096)
        var mappings: [Mapping] = []
        while fgets(&buffer, Int32(buffer.count), file) != nil {
            let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let line = String(decoding: bytes, as: UTF8.self)
            let words = line.split(separator: " ")
            let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            if ends.count == 2 {
                mappings.append(
                    Mapping(range: ends[0]..<ends[1], isWritable: words[1].contains("w")))
            } else if words[0] == "Rss:" {
                mappings[mappings.count - 1].resident = Int(words[1])!
            } else if words[0] == "Anonymous:" {
                mappings[mappings.count - 1].changed = Int(words[1])!
            }
        }
        return mappings
    }
}

/// One after the other: what one trims another would miss.
@Suite(.serialized) struct ResidentMemoryTests {
    private static func constant() throws -> [Mapping] {
        let ranges = ResidentMemory.constantRanges()
        return try Mapping.all().filter { map in ranges.contains { $0.overlaps(map.range) } }
    }

    @Test func `nothing that was ever written is among what can be read again from its file`()
        throws
    {
        let mappings = try Self.constant()
        // The program, the C library, the linker and Swift's library, in two segments or more.
        #expect(mappings.count >= 8)
        #expect(!mappings.contains { $0.isWritable })
        #expect(mappings.reduce(0) { $0 + $1.changed } == 0)
    }

    @Test func `a trim lets go of most code and tables, and the code still runs`() throws {
        let before = try Self.constant().reduce(0) { $0 + $1.resident }
        ResidentMemory.trim()
        let after = try Self.constant().reduce(0) { $0 + $1.resident }
        // Reading the account, and what runs beside it, brings back much less than all.
        #expect(after < before)
    }

    @Test func `what is held counts the pages of this process`() throws {
        let before = ResidentMemory.resident
        let size = 64_000_000
        let block = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 4_096)
        defer { block.deallocate() }
        memset(block, 1, size)
        // Half of it: other tests give memory back meanwhile.
        #expect(ResidentMemory.resident > before + size / 2)
    }

    /// Otherwise glibc takes blocks of a size of which one was freed from an arena, where what lies
    /// behind them keeps them.
    ///
    /// In a process of its own: where other tests have left free memory in the arenas, large blocks
    /// are taken from there first.
    @Test func `large blocks are given back when they are freed`() async {
        await #expect(processExitsWith: .success) {
            ResidentMemory.mapLargeBlocks()
            let size = 1 << 20
            for _ in 0..<2 {
                let blocks = (0..<32).map { _ in
                    (large: memset(malloc(size), 1, size), small: malloc(100_000))
                }
                let before = ResidentMemory.resident
                blocks.forEach { free($0.large) }
                // Half of them: the runtime may take memory meanwhile.
                #expect(ResidentMemory.resident < before - blocks.count / 2 * size)
                blocks.forEach { free($0.small) }
            }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a keeper trims a process that holds too much, and ends when told`() async throws {
        // Above the ceiling, whatever else the tests hold.
        let size = TrimSchedule.ceiling
        let block = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 4_096)
        defer { block.deallocate() }
        memset(block, 1, size)
        let before = try Self.constant().reduce(0) { $0 + $1.resident }
        let keeper = try ResidentMemory.Keeper()
        while try Self.constant().reduce(0, { $0 + $1.resident }) >= before {
            try await Task.sleep(for: .milliseconds(1))
        }
        keeper.stop()
        keeper.stop()
    }
}
