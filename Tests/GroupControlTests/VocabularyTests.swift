import Testing
import TuttiChance
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `Values of the group` {
    @Test(arguments: ["", "  ", "a\u{7}b", "a\nb", String(repeating: "x", count: 65)])
    func `a room name that cannot be shown is refused`(name: String) {
        #expect(throws: InvalidValue.self) { try RoomID(name) }
    }

    @Test func `a room name loses the spaces around it and keeps every script`() throws {
        #expect(try RoomID(" Küche 音 ").name == "Küche 音")
        #expect(throws: InvalidValue.self) {
            try RoomID("a" + String(repeating: "\u{301}", count: 200))
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a hash is the same as text, bytes and words`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let hash = ContentHash(
            words: (random.next(), random.next(), random.next(), random.next()))
        #expect(try ContentHash(hex: hash.hex) == hash)
        #expect(try ContentHash(bytes: hash.bytes) == hash)
        #expect(hash.hex.utf8.count == 64)
        #expect(throws: InvalidValue.self) { try ContentHash(hex: String(hash.hex.dropLast())) }
    }

    @Test func `the volume is 0 to 100`() {
        #expect(throws: InvalidValue.self) { try RoomSettings(volume: 101, muted: false) }
        #expect(throws: InvalidValue.self) { try RoomSettings(volume: -1, muted: false) }
    }

    /// frame → instant → frame is the identity to half a nanosecond of item time.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a line maps frames and instants back and forth`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for rate in [1, 0.25, 1.5, 4] {
            let line = RateChange(
                itemFrame: Int64.random(in: 0...1_000_000, using: &random),
                instant: GroupInstant(nanoseconds: Int64.random(in: 0...1 << 50, using: &random)),
                rate: rate)
            let frame = Int64.random(in: 0...400_000_000, using: &random)
            let instant = try #require(line.instant(ofFrame: frame, sampleRate: 44_100))
            let back = line.itemFrame(at: instant, sampleRate: 44_100)
            // Half a nanosecond at 44.1 kHz and rate 4, and the rounding of a Double at 4e8.
            #expect((back - Double(frame)).magnitude < 0.5e-9 * 44_100 * 4 + 1e-6)
        }
    }

    @Test func `a long text is cut at a whole character`() {
        #expect("aé音".limited(toBytes: 3) == "aé")
        #expect("aé音".limited(toBytes: 5) == "aé")
        #expect("aé音".limited(toBytes: 6) == "aé音")
    }
}
