import ArgumentParser
import GroupControl
import Testing

@testable import tutti

/// What the parser makes of the words of a command line, before anything runs.
@Suite struct ArgumentsTests {
    private func complaint(_ words: [String]) -> String {
        do {
            _ = try Tutti.parseAsRoot(words)
            return ""
        } catch {
            return Tutti.fullMessage(for: error)
        }
    }

    @Test(arguments: [
        ["simulate", "join", "--seed"], ["simulate", "clocks", "--seeds"],
        ["simulate", "cards", "--seeds"], ["simulate", "cards", "--seconds"],
        ["demo", "--rooms"], ["demo", "--seconds"], ["bench", "--seconds"],
    ])
    func `a negative number of an option is refused as such`(words: [String]) {
        let text = complaint(words + ["-1"])
        #expect(text.contains("-1") && !text.contains("Missing value"), "\(text)")
        // What is missing is still called so.
        #expect(complaint(words).contains("Missing value"))
    }

    @Test(arguments: [
        (["bedroom", "soon"], "a latency offset is microseconds, such as"),
        (["bedroom", "600000"], "a latency offset is −500000 to 500000 µs, not 600000"),
        (["bedroom"], "write tutti offset ROOM 1500"),
    ])
    func `an offset that cannot be is answered in a sentence`(words: [String], text: String) {
        let answer = complaint(["offset"] + words)
        #expect(answer.contains(text), "\(answer)")
        // Both words are needed, and the usage says so.
        #expect(answer.contains("tutti offset <room> <µs[±µs]>"), "\(answer)")
    }

    @Test func `an offset takes a negative number and an uncertainty`() throws {
        for (text, offset) in [
            ("-300", try LatencyOffset(microseconds: -300)),
            ("1500±50", try LatencyOffset(microseconds: 1_500, uncertaintyMicroseconds: 50)),
        ] {
            let command = try Tutti.parseAsRoot(["offset", "bedroom", text])
            #expect(try (command as? Offset)?.parsed().offset == offset)
        }
    }
}
