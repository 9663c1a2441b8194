import Testing
import TuttiChance
import TuttiPlayout

@Suite struct `Names of files` {
    /// Any bytes at all, UTF-8, and text that holds the very scalars that stand for bytes.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `every name comes back byte by byte`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let parts: [[UInt8]] = [
            Array("Ä日🎵e\u{301}".utf8), Array("\u{10F7E9}\u{10F780}".utf8), [0xE9], [0xFF, 0xFE],
            [0xC3], [0xED, 0xA0, 0x80], [0xF4, 0x8F], Array("a/b?c#.flac".utf8),
        ]
        var bytes: [UInt8] = []
        for _ in 0..<12 {
            bytes += parts.randomElement(using: &random)!
            bytes.append(UInt8.random(in: 1...255, using: &random))
        }
        #expect(String(fileName: bytes).fileNameBytes == bytes)
    }

    @Test func `a name in UTF-8 is its text`() {
        for name in ["Ä日🎵.flac", "e\u{301}", "plain", ""] {
            #expect(String(fileName: name.utf8).utf8.elementsEqual(name.utf8))
            #expect(name.readableFileName == name)
        }
    }

    @Test func `two names that look alike stay two`() {
        #expect(
            String(fileName: [0xE9]).fileNameBytes
                != String(fileName: "\u{10F7E9}".utf8).fileNameBytes)
    }

    @Test func `people read Latin-1 and Windows-1252`() {
        let name = String(fileName: Array("caf".utf8) + [0xE9, 0x92] + Array("ü".utf8))
        #expect(name.readableFileName == "café’ü")
        #expect(String(unlabelled: [0x46, 0xFC, 0x72, 0x80]) == "Für€")
        #expect(String(unlabelled: Array("Für".utf8)) == "Für")
        #expect("It\u{92}s".withWindowsLetters == "It’s")
        // What means nothing in it is shown as such, and is text.
        #expect(String(unlabelled: [0x81]) == "\u{FFFD}")
    }
}
