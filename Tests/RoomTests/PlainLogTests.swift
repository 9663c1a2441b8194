import Logging
import Testing
import TuttiDeviceOutput

@testable import TuttiRoom

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
}
