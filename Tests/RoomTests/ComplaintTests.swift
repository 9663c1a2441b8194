import Testing
import TuttiClockSync
import TuttiTiming

@testable import TuttiLinuxHost
@testable import TuttiRoom

@Suite struct ComplaintTests {
    private func figures(
        _ quality: SharedClock.Quality, sent: Int, answered: Int, silence: Nanoseconds? = nil
    ) -> ClockFigures {
        var figures = ClockFigures()
        figures.quality = quality
        figures.statistics.sent = sent
        figures.statistics.answered = answered
        figures.statistics.lastAcceptedAt = silence.map { HostClock.now() - $0 }
        return figures
    }

    @Test func `a clock that is never answered is said to be blocked, with its port`() throws {
        let text = try #require(
            figures(.none, sent: 25, answered: 0).complaint(timePort: 7_430))
        #expect(text.contains("none of 25 time requests") && text.contains("UDP port 7430"))
        // A few that are lost, or a leader that is not found yet, are no complaint.
        #expect(figures(.none, sent: 19, answered: 0).complaint(timePort: 7_430) == nil)
        #expect(figures(.none, sent: 25, answered: 1).complaint(timePort: 7_430) == nil)
        #expect(figures(.none, sent: 25, answered: 0).complaint(timePort: nil) == nil)
    }

    @Test func `a clock that has fallen silent says for how long`() throws {
        let text = try #require(
            figures(.holdover, sent: 99, answered: 80, silence: .milliseconds(12_500))
                .complaint(timePort: 7_430))
        #expect(text.contains("has not answered for ") && text.contains("UDP port 7430"))
        let jumped = figures(.holdover, sent: 99, answered: 80, silence: .zero - .seconds(60))
        #expect(jumped.complaint(timePort: 7_430) == nil, "it was answered just now")
        #expect(figures(.locked, sent: 99, answered: 80).complaint(timePort: 7_430) == nil)
    }

    @Test func `what the system says comes before a guess`() throws {
        var figures = figures(.none, sent: 0, answered: 0)
        #expect(figures.complaint(timePort: 7_430) == nil)
        figures.problem = HostError("connect", code: 22, subject: "kitchen:7430")
        let text = try #require(figures.complaint(timePort: 7_430))
        #expect(text.contains("cannot be asked for the time") && text.contains("kitchen:7430"))
    }
}
