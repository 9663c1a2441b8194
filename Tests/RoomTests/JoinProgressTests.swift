import Testing
import TuttiLinuxHost
import TuttiTiming

@testable import TuttiRoom

@Suite struct JoinProgressTests {
    private let found = LocalInstant(nanoseconds: 7_000_000_000)

    @Test func `each step counts the first time, from when the leader was found`() {
        var progress = JoinProgress(foundAt: found)
        progress.reach(.welcome, at: found + .milliseconds(12))
        progress.reach(.clock, at: found + .milliseconds(310))
        progress.reach(.clock, at: found + .milliseconds(900))
        progress.reach(.sound, at: found + .milliseconds(338))
        let expected = ["msToWelcome": "12", "msToClock": "310", "msSinceFound": "338"]
        #expect(progress.metadata.mapValues { "\($0)" } == expected)
    }

    @Test func `what was known of another leader does not count`() {
        var progress = JoinProgress(foundAt: found)
        progress.reach(.clock, at: found + .milliseconds(1))
        progress.reach(.welcome, at: found + .milliseconds(12))
        #expect(progress.metadata.mapValues { "\($0)" } == ["msToWelcome": "12"])
    }

    @Test func `a step that was not reached is not claimed`() {
        #expect(JoinProgress(foundAt: found).metadata.isEmpty)
    }
}
