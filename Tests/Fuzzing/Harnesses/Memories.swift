import TuttiClockSync
import TuttiGroupControl
import TuttiTrust

@testable import TuttiRoom

/// The files of the state folder. Each is replaced as a whole, and still: a disk loses blocks, and
/// people edit what they find.
extension Harness {
    static let memories = [
        roomMemory, roomIdentity, nodeIdentity, nodeKey, leaderMemory, resumePlaces, savedSession,
        latencyOffsets, stateFolder,
    ]

    private static func text(_ lines: String...) -> [UInt8] {
        Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    private static let roomMemory = Harness(
        name: "room-memory",
        seeds: {
            [
                text(
                    RoomMemory.heading, "offset -1500±50 alsa:hw:1,0", "offset 7 none",
                    "loudness 40 false left",
                    "skew 9f3c 41d0 77ab 35.118 0.5 1795270000 kitchen",
                    "skew 1 2 3 -1000 10000 0 attic (2)"),
                text(RoomMemory.heading, "skew 1 2 3 0 5e-324 0 attic"),
                text(RoomMemory.heading, "offset -15 alsa\r"),
            ]
        },
        check: .plain { bytes in
            guard let memory = try? RoomMemory(parsing: String(decoding: bytes, as: UTF8.self))
            else { return }
            let again: RoomMemory
            do {
                again = try RoomMemory(parsing: memory.text)
            } catch {
                throw Finding(description: "what was read is refused when written: \(error)")
            }
            try expect(
                again.offsets.elementsEqual(memory.offsets) { $0 == $1 }, "offsets read again")
            try expectEqual(again.skews.count, memory.skews.count, "leaders")
            for (one, other) in zip(again.skews, memory.skews) {
                // Parts per million are not kept to the last bit.
                func isNear(_ one: Double, _ other: Double) -> Bool {
                    (one - other).magnitude <= 1e-12 * other.magnitude
                }
                var same = one
                (same.skew, same.deviation) = (other.skew, other.deviation)
                try expectEqual(same, other, "a leader read again")
                try expect(
                    isNear(one.skew, other.skew)
                        && (isNear(one.deviation, other.deviation) || other.deviation < 1e-300),
                    "another rate: \(one) is not \(other)")
            }
            for skew in memory.skews {
                let stored = memory.storedSkew(
                    of: skew.crystal, leader: skew.leader, ownBoot: 1, at: 1_800_000_000)
                try expect(
                    stored.skew.isFinite && stored.deviation > 0, "\(stored) of \(skew)")
            }
        })

    private static let roomIdentity = Harness(
        name: "room-identity",
        seeds: {
            [
                text(
                    RoomIdentity.heading, "0123456789abcdef", "name kitchen (2)",
                    "leader living room"),
                text(RoomIdentity.heading, "ffffffffffffffff"),
            ]
        },
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let record = RoomIdentity.parse(text) else { return }
            try expectEqual(
                RoomIdentity.parse(RoomIdentity.text(record)), record, "written and read again")
        })

    private static let nodeIdentity = Harness(
        name: "node-identity",
        seeds: { [text(NodeIdentity.heading, "0123456789abcdef")] },
        longest: 128,
        check: .plain { bytes in
            guard let node = NodeIdentity.parse(String(decoding: bytes, as: UTF8.self)) else {
                return
            }
            try expectEqual(
                NodeIdentity.parse("\(NodeIdentity.heading)\n\(hexText(node))\n"), node,
                "written and read again")
        })

    private static let nodeKey = Harness(
        name: "node-key",
        seeds: {
            [NodeSecrets.text(of: try NodeKey(bytes: Array(1...32))), text("tutti key 2", "0a")]
        },
        longest: 256,
        check: .plain { bytes in
            guard let key = try? NodeSecrets.key(bytes) else { return }
            let again = try NodeSecrets.key(NodeSecrets.text(of: key))
            try expectEqual(again.publicKey, key.publicKey, "written and read again")
        })

    private static let leaderMemory = Harness(
        name: "leader-memory",
        seeds: {
            [
                text(LeaderMemory.heading, "1795270000", "attic", "kitchen #2"),
                text(LeaderMemory.heading, "-9223372036854775808", "attic"),
            ]
        },
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let memory = LeaderMemory(parsing: text) else { return }
            _ = memory.confirms([])
            guard let again = memory.text else { return }
            try expectEqual(LeaderMemory(parsing: again), memory, "written and read again")
        })

    private static let resumePlaces = Harness(
        name: "resume-places",
        seeds: {
            [text("754 /music/a%20book.m4b", "12.5 http://host/a", "30 /m/%FF%2525.ogg")]
        },
        check: .plain { bytes in
            // No file is called so.
            guard !bytes.contains(0) else { return }
            let places = ResumePlaces(text: String(decoding: bytes, as: UTF8.self))
            try expect(places.places.count <= ResumePlaces.most, "too many are kept")
            let again = ResumePlaces(text: places.text)
            try expectEqual(again.text, places.text, "written and read again")
            // Kept byte by byte: a name need not be a text.
            try expect(
                again.places.map(\.item).elementsEqual(places.places.map(\.item)) {
                    $0.utf8.elementsEqual($1.utf8)
                }, "another item: \(places.places) is not \(again.places)")
        })

    /// The queue's file, and behind a line `---` that of the place.
    private static let savedSession = Harness(
        name: "saved-session",
        seeds: {
            [
                text(
                    "tutti session 1", "session 77 4", "repeats all", "rate 1.25", "rooms 3",
                    "common 60 false 40 -", "room living%20room 30 true left",
                    "item 1 /m/a%20b.flac A%25 - - -", "item 9 http://h/x - 75 750 -",
                    "item 12 - B - - " + String(repeating: "0a", count: 32), "end", "---",
                    "place 12.5 playing 77 9"),
                text("tutti session 1", "session 1 5", "end"),
            ]
        },
        check: .plain { bytes in
            guard !bytes.contains(0) else { return }
            let parts = String(decoding: bytes, as: UTF8.self)
                .split(separator: "\n---\n", maxSplits: 1).map(String.init)
            guard let queue = parts.first,
                let session = SavedSession(
                    queueText: queue, placeText: parts.count > 1 ? parts[1] : nil)
            else { return }
            try expect(
                session.items.isEmpty || session.items.indices.contains(session.place.index),
                "it is at none of its items")
            let again = SavedSession(
                queueText: session.queueText, placeText: session.placeText)
            try expectEqual(again?.queueText, session.queueText, "written and read again")
            try expectEqual(again?.place, session.place, "the place of before")
        })

    private static let latencyOffsets = Harness(
        name: "latency-offsets",
        seeds: { ["1500", "-300±50", "0+-500000"].map { Array($0.utf8) } },
        longest: 64,
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let offset = try? LatencyOffset(parsing: text) else { return }
            try expectEqual(
                try LatencyOffset(parsing: offset.description), offset, "written and read again")
        })

    /// Whatever is in a file of the folder, it is read or refused.
    private static let stateFolder = Harness(
        name: "state-folder",
        seeds: { [text("tutti room 1"), [0xFF, 0xFE, 0, 10]] },
        check: .plain { bytes in
            let name = try Scratch.write(bytes, as: "state")
            guard let text = try StateFolder(path: Scratch.folder).read(name) else {
                throw Finding(description: "the file is not there")
            }
            try expect(
                text.utf8.elementsEqual(String(decoding: bytes, as: UTF8.self).utf8),
                "other bytes than are in the file")
        })
}
