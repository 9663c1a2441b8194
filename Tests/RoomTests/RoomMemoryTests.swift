import Foundation
import Glibc
import Logging
import Testing
import TuttiClockSync
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

@Suite struct `What a room remembers` {
    static let crystal = CrystalID(node: 0xABCD, boot: 1)
    static let day: Int64 = 86_400

    static func skew(
        _ partsPerMillion: Double, deviation: Double = 0.1, crystal: CrystalID = crystal,
        leader: String = "kitchen", at: Int64 = 1_000
    ) -> RoomMemory.Skew {
        RoomMemory.Skew(
            crystal: crystal, ownBoot: 7, leader: leader, skew: partsPerMillion * 1e-6,
            deviation: deviation * 1e-6, at: at)
    }

    /// Believed as much as a memory ever is: 10, 5, 2.5, 2 ppm.
    static func confirmed(_ partsPerMillion: Double) -> RoomMemory {
        var memory = RoomMemory()
        for _ in 0..<4 {
            memory.remember(
                skew(partsPerMillion), before: memory.entry(of: crystal, leader: "kitchen"))
        }
        return memory
    }

    /// Or the next start could not read the file, and all that it holds would be forgotten.
    @Test func `a deviation that would be written as zero is not taken`() throws {
        let lines = "\(RoomMemory.heading)\nskew 1 2 3 0.5"
        #expect(throws: InvalidValue.self) {
            try RoomMemory(parsing: "\(lines) 5e-324 0 kitchen\n")
        }
        let memory = try RoomMemory(parsing: "\(lines) 1e-300 0 kitchen\n")
        #expect(try RoomMemory(parsing: memory.text).skews.count == 1)
    }

    @Test(arguments: ["\n", "\r\n", "\r"])
    func `a line ends as its last editor ended it`(end: String) throws {
        let lines = [RoomMemory.heading, "offset 7 alsa", "offset 8 none", ""]
        let memory = try RoomMemory(parsing: lines.joined(separator: end))
        #expect(memory.offsets.map(\.output) == ["alsa", "none"])
        #expect(try RoomMemory(parsing: memory.text) == memory)
    }

    @Test(arguments: [nil, .left, .mono] as [RoomRole?])
    func `how loud it was comes back, and twice is a mistake`(role: RoomRole?) throws {
        var memory = RoomMemory()
        memory.settings = try RoomSettings(volume: 40, muted: true, role: role)
        let back = try RoomMemory(parsing: memory.text)
        #expect(back == memory && back.settings == memory.settings)
        let line = "loudness 40 true -\n"
        #expect(throws: InvalidValue.self) {
            try RoomMemory(parsing: RoomMemory.heading + "\n" + line + line)
        }
        for wrong in ["loudness 101 true -", "loudness 4 maybe -", "loudness 4 true front"] {
            #expect(throws: InvalidValue.self, "\(wrong)") {
                try RoomMemory(parsing: RoomMemory.heading + "\n" + wrong)
            }
        }
    }

    @Test func `everything comes back as it was written`() throws {
        let measured = try LatencyOffset(microseconds: -1_500, uncertaintyMicroseconds: 40)
        var memory = RoomMemory()
        memory.setOffset(measured, of: "alsa:hw:1,0")
        memory.setOffset(try LatencyOffset(microseconds: 3), of: "file:/tmp/a b.wav")
        memory.remember(Self.skew(35.125), before: nil)
        memory.remember(
            Self.skew(-80, crystal: CrystalID(node: .max, boot: 0), leader: "the attic, left"),
            before: nil)
        #expect(try RoomMemory(parsing: memory.text).text == memory.text)
        #expect(try RoomMemory(parsing: memory.text).offset(of: "alsa:hw:1,0") == measured)
        #expect(memory.offset(of: "alsa:hw:2,0") == nil)
    }

    @Test func `names with line ends of a hostile leader stay on their line`() throws {
        var memory = RoomMemory()
        memory.remember(Self.skew(1, leader: "x\noffset 5 alsa:default"), before: nil)
        let offset = try LatencyOffset(microseconds: 2)
        memory.setOffset(offset, of: "file:/a\nb")
        let back = try RoomMemory(parsing: memory.text)
        #expect(back.offset(of: "alsa:default") == nil)
        #expect(back.offset(of: "file:/a\nb") == offset)
        #expect(back.skews.count == 1)
    }

    @Test(arguments: [
        "", "tutti room 2\n", "\u{0}", "tutti room 1\nvolume 3\n", "tutti room 1\noffset x a\n",
        "tutti room 1\noffset 5\n", "tutti room 1\noffset 99999999 a\n",
        "tutti room 1\noffset 5± a\n", "tutti room 1\noffset 5±-1 a\n",
        "tutti room 1\nskew 0 1 1 5 1 0 a\n", "tutti room 1\nskew 1 1 1 nan 1 0 a\n",
        "tutti room 1\nskew 1 1 1 5 0 0 a\n", "tutti room 1\nskew 1 1 1 5 1 -1 a\n",
        "tutti room 1\nskew 1 1 1 5000 1 0 a\n", "tutti room 1\nskew 1 1 1 5 1\n",
    ])
    func `what is not ours is refused with the line`(text: String) {
        #expect(throws: InvalidValue.self) { try RoomMemory(parsing: text) }
    }

    @Test func `a file of too many lines is refused, and memory is bounded`() {
        let many = (1...99).map { "skew \($0) 1 1 5 1 0 a" }.joined(separator: "\n")
        #expect(throws: InvalidValue.self) {
            try RoomMemory(parsing: "tutti room 1\n\(many)\n")
        }
        var memory = RoomMemory()
        for node in 1...99 as ClosedRange<UInt64> {
            memory.remember(
                Self.skew(Double(node), crystal: CrystalID(node: node, boot: 1)), before: nil)
            memory.setOffset(.zero, of: "alsa:\(node)")
        }
        #expect(memory.skews.count == RoomMemory.mostSkews)
        #expect(memory.offsets.count == RoomMemory.mostOffsets)
        #expect(memory.skews.last?.crystal.node == 99)
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `damaged files are refused or read, never fatal`(seed: UInt64) throws {
        var state = seed
        func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var memory = RoomMemory()
        memory.setOffset(
            try LatencyOffset(microseconds: -1_500, uncertaintyMicroseconds: 9), of: "alsa:hw:1,0")
        memory.remember(Self.skew(35.125), before: nil)
        let whole = Array(memory.text.utf8)
        for _ in 0..<2_000 {
            var bytes = whole
            for _ in 0...next(3) { bytes[next(bytes.count)] = UInt8(next(256)) }
            bytes.removeLast(next(bytes.count))
            guard let back = try? RoomMemory(parsing: String(decoding: bytes, as: UTF8.self))
            else { continue }
            let stored = back.storedSkew(
                of: Self.crystal, leader: "kitchen", ownBoot: 7, at: 2_000)
            #expect(stored.skew.magnitude <= 1e-3 && stored.deviation > 0)
        }
    }

    // MARK: How much it is worth

    @Test func `a memory ages by 2 ppm a day, and more than a year is worth nothing new`() {
        let memory = Self.confirmed(35)
        func deviation(after seconds: Int64) -> Double {
            memory.storedSkew(
                of: Self.crystal, leader: "kitchen", ownBoot: 7, at: 1_000 + seconds
            ).deviation * 1e6
        }
        #expect(abs(deviation(after: 0) - 2) < 1e-9)
        #expect(abs(deviation(after: Self.day) - 8.0.squareRoot()) < 1e-9)
        #expect(deviation(after: 9 * Self.day) > deviation(after: Self.day))
        #expect(
            deviation(after: 4_000 * Self.day) == StoredSkew.unknown.deviation * 1e6,
            "as good as unknown")
        // A clock that was set back proves no freshness.
        #expect(deviation(after: -500) == deviation(after: Self.day))
    }

    @Test func `another boot of either machine is trusted to 20 ppm, another leader not at all`() {
        let memory = Self.confirmed(35)
        func stored(
            _ crystal: CrystalID, _ leader: String = "kitchen", ownBoot: UInt64 = 7
        ) -> StoredSkew {
            memory.storedSkew(of: crystal, leader: leader, ownBoot: ownBoot, at: 1_000)
        }
        #expect(abs(stored(Self.crystal).skew - 35e-6) < 1e-12)
        #expect(stored(CrystalID(node: 0xABCD, boot: 2)).deviation > 20e-6)
        #expect(stored(Self.crystal, ownBoot: 8).deviation > 20e-6)
        #expect(stored(CrystalID(node: 0xABCE, boot: 1)) == .unknown)
        #expect(stored(Self.crystal, "attic") == .unknown)
        #expect(stored(.unknown) == .unknown)
    }

    @Test func `a memory is believed once it is confirmed, and less when it was wrong`() {
        var memory = RoomMemory()
        var seen: [Double] = []
        for skew in [-10.0, -10, -10, -10, 90, 90, 90, 90, 90, 90, 90, 90] {
            memory.remember(
                Self.skew(skew), before: memory.entry(of: Self.crystal, leader: "kitchen"))
            seen.append((memory.skews.last?.deviation ?? 0) * 1e6)
        }
        let expected = [10, 5, 2.5, 2, 100, 50, 25, 12.5, 6.25, 3.125, 2, 2]
        #expect(zip(seen, expected).allSatisfy { abs($0 - $1) < 1e-6 }, "\(seen)")
        // 100 ppm are more than two unknown crystals: nothing is expected of it.
        memory.remember(Self.skew(-10), before: memory.entry(of: Self.crystal, leader: "kitchen"))
        #expect(
            memory.storedSkew(of: Self.crystal, leader: "kitchen", ownBoot: 7, at: 1_000)
                == .unknown)
    }

    @Test func `a leader without a number is not remembered`() {
        var memory = RoomMemory()
        memory.remember(Self.skew(5, crystal: .unknown), before: nil)
        #expect(memory.skews.isEmpty)
    }
}

@Suite struct `The state folder` {
    let logger = {
        var logger = Logger(label: "state")
        logger.logLevel = .critical
        return logger
    }()

    func inFolder(_ body: (TemporaryFolder, StateFolder) throws -> Void) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try body(folder, StateFolder(path: folder.path("a/b")))
    }

    @Test func `a file is replaced as a whole and nothing else stays behind`() throws {
        try inFolder { temporary, folder in
            #expect(try folder.read("x") == nil)
            try folder.write("x", "one")
            try folder.write("x", "two")
            #expect(try folder.read("x") == "two")
            let names = try FileManager.default.contentsOfDirectory(
                atPath: temporary.path("a/b"))
            #expect(names == ["x"])
        }
    }

    @Test func `where nothing can be written the failure says where and why`() throws {
        try inFolder { temporary, _ in
            let path = try temporary.write(Data("file".utf8), as: "in-the-way")
            let folder = StateFolder(path: path + "/state")
            let error = #expect(throws: StateFolder.Failure.self) { try folder.write("x", "") }
            #expect(error?.description.contains("in-the-way") == true)
        }
    }

    @Test func `a file beyond all measure is refused`() throws {
        try inFolder { temporary, folder in
            try folder.write("x", String(repeating: "y", count: StateFolder.longestFile))
            #expect(try folder.read("x")?.utf8.count == StateFolder.longestFile)
            try folder.write("x", String(repeating: "y", count: StateFolder.longestFile + 1))
            #expect(throws: StateFolder.Failure.self) { try folder.read("x") }
        }
    }

    @Test func `a node keeps its number, and gets another when it cannot be read`() throws {
        try inFolder { _, folder in
            let first = NodeIdentity.crystal(in: folder, logger: logger)
            #expect(first.node != 0)
            #expect(NodeIdentity.crystal(in: folder, logger: logger) == first)
            try folder.write(NodeIdentity.file, "garbage")
            let second = NodeIdentity.crystal(in: folder, logger: logger)
            #expect(second.node != 0 && second.node != first.node)
            #expect(try folder.read(NodeIdentity.file + ".bad") == "garbage")
            #expect(NodeIdentity.crystal(in: nil, logger: logger) == .unknown)
        }
    }

    @Test func `a bad memory is set aside and the room begins anew`() throws {
        try inFolder { _, folder in
            let room = try RoomID("bath/../ü")
            let name = RoomStore.fileName(of: room)
            #expect(!name.contains("/") && name.utf8.count < 80)
            try folder.write(name, "garbage")
            let store = RoomStore(folder: folder, room: room, ownBoot: 1, logger: logger)
            #expect(store.offset(of: "virtual") == nil)
            #expect(try folder.read(name + ".bad") == "garbage")
            let offset = try LatencyOffset(microseconds: -7)
            store.setOffset(offset, of: "virtual")
            store.close()
            let again = RoomStore(folder: folder, room: room, ownBoot: 1, logger: logger)
            #expect(again.offset(of: "virtual") == offset)
        }
    }

    @Test func `rooms of different names never share a file`() throws {
        let names = try ["a b", "a_b", "a/b", "A B", String(repeating: "x", count: 63) + "y"].map {
            RoomStore.fileName(of: try RoomID($0))
        }
        #expect(Set(names).count == names.count)
    }

    /// A write is a rename: each makes another file.
    @Test func `what changes a thousand times is written once or twice, as it is at the end`()
        throws
    {
        let temporary = try TemporaryFolder()
        defer { temporary.remove() }
        let folder = StateFolder(path: temporary.path("state"))
        let room = try RoomID("bath")
        let store = RoomStore(folder: folder, room: room, ownBoot: 1, logger: LogBook().logger)
        let path = "\(folder.path)/\(RoomStore.fileName(of: room))"
        var files: Set<UInt64> = []
        for number in 0..<1_000 {
            store.setOffset(try LatencyOffset(microseconds: number), of: "alsa")
            if let file = try? FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber]
                as? UInt64
            {
                files.insert(file)
            }
        }
        store.close()
        #expect(files.count <= 3)
        let text = try #require(try folder.read(RoomStore.fileName(of: room)))
        #expect(try RoomMemory(parsing: text).offset(of: "alsa")?.delay == .microseconds(999))
    }

    @Test
    func `what a killed process left half written is removed, what a living one writes stays`()
        throws
    {
        let temporary = try TemporaryFolder()
        defer { temporary.remove() }
        let folder = StateFolder(path: temporary.path("state"))
        try folder.write("node", "x")
        // Numbers of processes end far below; 1 is always there.
        for name in ["node.2000000000.new", "node.1.new", "node.x.new", "other.2000000000.new"] {
            try Data().write(to: URL(filePath: "\(folder.path)/\(name)"))
        }
        folder.removeLeftovers(of: "node")
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(left == ["node", "node.1.new", "node.x.new", "other.2000000000.new"])
    }

    /// Names of files are bytes: Latin-1 ones are as good as others.
    @Test func `a folder whose name is no UTF-8 keeps what is written`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let bytes = Array(folder.path("caf").utf8) + [0xE9]
        let state = StateFolder(path: String(fileName: bytes))
        try state.makeFolder()
        try state.write("room.yaml", "a: 1\n")
        #expect(try state.read("room.yaml") == "a: 1\n")
        let cache = CacheFolder(String(fileName: bytes + Array("/cache".utf8)))
        try cache.make()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path(""))
        #expect(names.count == 1, "and no other folder: \(names)")
        var status = stat()
        #expect(
            stat((bytes + Array("/cache".utf8)).map { CChar(bitPattern: $0) } + [0], &status) == 0)
    }
}
