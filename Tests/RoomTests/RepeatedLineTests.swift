import Logging
import Synchronization
import Testing
import TuttiTiming

@testable import TuttiRoom

@Suite struct RepeatedLineTests {
    private func at(_ seconds: Double) -> LocalInstant {
        LocalInstant(nanoseconds: 0) + Nanoseconds(seconds: seconds)
    }

    @Test func `five equal lines a second for a minute are a handful, with their count`() {
        var lines = RepeatedLine()
        var written = 0
        var counted = 0
        var summaries = 0
        for step in 0..<300 {
            let now = at(Double(step) / 5)
            for due in lines.due(at: now) {
                (counted, summaries) = (counted + due.count, summaries + 1)
            }
            if lines.admits(kind: "cannot fetch", text: "a", line: "a", at: now) { written += 1 }
        }
        for due in lines.due(at: at(100)) { counted += due.count }
        #expect(written + summaries <= 15)
        #expect(written + counted == 300, "none is forgotten")
        #expect(lines.nextDeadline == nil)
    }

    @Test func `a flood of other figures is counted, and its last line is told`() throws {
        var lines = RepeatedLine()
        let written = (0..<170_000).count { number in
            let text = "offset \(number)"
            return lines.admits(
                kind: "offset", text: text, line: text, at: at(Double(number) / 30_000))
        }
        #expect(written < 30)
        let deadline = try #require(lines.nextDeadline)
        let due = lines.due(at: deadline)
        #expect(due.map(\.line) == ["offset 169999"])
        #expect(due.map(\.count) == [170_000 - written])
    }

    @Test func `what comes, goes and comes again is written each time`() {
        var lines = RepeatedLine()
        for (second, text) in ["joined", "left", "joined", "left"].enumerated() {
            let isWritten = lines.admits(
                kind: text, text: text, line: text, at: at(Double(second)))
            #expect(isWritten)
        }
        let isWritten = lines.admits(kind: "joined", text: "joined", line: "joined", at: at(15))
        #expect(isWritten)
    }

    @Test func `a log says what happened, why, and the figures last`() {
        let written = Mutex<[String]>([])
        let logger = Logger(
            label: "",
            factory: { _ in
                NodeLog { line in
                    written.withLock { $0.append(line) }
                    return true
                }
            })
        logger.warning("a room cannot play", metadata: ["room": "bath", "reason": "no codec"])
        for _ in 0..<9 { logger.error("cannot fetch", metadata: ["title": "a", "error": "torn"]) }
        logger.debug("not shown")
        let lines = written.withLock { $0 }
        #expect(lines.count == 3)
        #expect(lines[0].hasSuffix(" warning: a room cannot play: no codec (room=bath)"))
        #expect(lines[1].hasSuffix(" error: cannot fetch: torn (title=a)"))
    }

    /// A terminal that was stopped, a pager that nobody scrolls.
    @Test func `a log that nobody reads holds up nobody, and is written once somebody does`() {
        let written = Mutex<[String]>([])
        let isRead = Mutex(true)
        let logger = Logger(
            label: "",
            factory: { _ in
                NodeLog { line in
                    guard isRead.withLock({ $0 }) else { return false }
                    written.withLock { $0.append(line) }
                    return true
                }
            })
        logger.notice("first")
        isRead.withLock { $0 = false }
        for number in 0..<600 { logger.notice("line \(number)") }
        #expect(written.withLock { $0.count } == 1)
        isRead.withLock { $0 = true }
        logger.notice("last")
        let lines = written.withLock { $0 }
        #expect(lines[1].hasSuffix("line 0"))
        #expect(lines[500].hasSuffix("line 499"))
        #expect(lines[501].contains("100 lines of this log were lost"))
        #expect(lines[502].hasSuffix("last"))
    }
}
