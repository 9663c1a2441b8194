import DeviceOutput
import Logging
import Testing
import Timing

@testable import Room

@Suite struct `What a log shows` {
    @Test func `a line of others' words is one line of what can be seen`() throws {
        let book = LogBook()
        let logger = book.logger.plain
        let forged = "x\u{1B}]0;title\u{7}\n2026-11-27T10:00:00 critical tutti: forged\u{202E}"
        logger.notice(
            "joined \(forged)",
            metadata: [
                "leader": "\(forged)", "key\nwith a line": "v",
                "list": ["\(forged)", .dictionary(["a\u{7}": "\(forged)"])],
            ])
        let line = try #require(book.all.first)
        #expect(line.message.contains("forged"))
        for text in [line.message] + line.metadata.keys + line.metadata.values {
            #expect(
                text.unicodeScalars.allSatisfy {
                    $0.value >= 32 && $0 != "\u{7F}" && $0 != "\u{202E}"
                })
        }
        #expect(line.metadata["key with a line"] == "v")
    }

    @Test func `a value of ten thousand letters does not make a line of ten thousand letters`() {
        let book = LogBook()
        let long = String(repeating: "é", count: 10_000)
        book.logger.plain.error("\(long)", metadata: ["detail": "\(long)"])
        #expect(book.all.allSatisfy { $0.message.utf8.count <= PlainLogHandler.longestText })
        #expect(
            book.all.allSatisfy {
                ($0.metadata["detail"] ?? "").utf8.count <= PlainLogHandler.longestText
            })
    }

    @Test func `every node puts it before its log, once`() {
        var configuration = NodeConfiguration(
            name: "x", output: .none, cacheFolder: "/nowhere", logger: LogBook().logger)
        #expect(configuration.logger.handler is PlainLogHandler)
        configuration.logger = LogBook().logger
        #expect(configuration.logger.handler is PlainLogHandler)
        #expect(configuration.logger.plain.handler is PlainLogHandler)
    }

    @Test func `a flood leaves some lines, and the log of a moment later says how many there were`()
        async throws
    {
        let book = LogBook()
        let logger = book.logger.plain
        for number in 0..<50_000 { logger.notice("latency offset", metadata: ["us": "\(number)"]) }
        let soon = book.entries("latency offset").count
        // A slow machine takes seconds for these, and lets one pass in each.
        #expect(soon <= LineLimiter<Int>.burst + 30)
        try await until("the rest is told as a number") {
            book.entries("latency offset").contains { $0["us"] == "49999" && $0["also"] != nil }
        }
        let said = book.entries("latency offset")
        let counted = said.compactMap {
            $0["also"]?.split(separator: " ").first.flatMap { Int($0) }
        }
        let examples = said.count { $0["also"] != nil && $0["us"] == "49999" }
        #expect(said.count - examples + counted.reduce(0, +) == 50_000)
    }

    private func instant(_ seconds: Double) -> LocalInstant {
        LocalInstant(nanoseconds: Int64(seconds * 1e9))
    }

    @Test func `the same line is said once and counted until another comes`() {
        var limiter = LineLimiter<Int>()
        #expect(limiter.judge("lost", "a", 0, at: instant(0)) == .say(missed: 0))
        for second in 1...30 {
            #expect(limiter.judge("lost", "a", second, at: instant(Double(second))) == .hold)
        }
        #expect(limiter.owes)
        #expect(limiter.judge("lost", "b", 31, at: instant(31)) == .say(missed: 30))
        #expect(!limiter.owes)
        #expect(limiter.judge("lost", "a", 32, at: instant(32)) == .say(missed: 0))
        #expect(limiter.judge("lost", "a", 33, at: instant(100)) == .say(missed: 0))
    }

    @Test func `a burst passes, a flood goes on at one a second, and what is held back adds up`() {
        var limiter = LineLimiter<Int>()
        var (said, missed) = (0, 0)
        for number in 0..<10_000 {
            if case .say(let count) = limiter.judge(
                "m", "\(number)", number, at: instant(Double(number) / 1_000))
            {
                said += 1
                missed += count
            }
        }
        let rest = limiter.settle()
        #expect(rest.map(\.line) == [9_999])
        #expect(said + missed + rest[0].missed == 10_000)
        #expect(said <= LineLimiter<Int>.burst + 10)
        #expect(limiter.settle().isEmpty)
    }

    @Test func `other messages are not held up by a flood, and memory is bounded`() {
        var limiter = LineLimiter<Int>()
        for number in 0..<1_000 { _ = limiter.judge("flood", "\(number)", 0, at: instant(0)) }
        #expect(limiter.judge("joined", "", 0, at: instant(0)) == .say(missed: 0))
        for number in 0..<1_000 {
            #expect(limiter.judge("m\(number)", "", 0, at: instant(1)) == .say(missed: 0))
        }
    }
}
