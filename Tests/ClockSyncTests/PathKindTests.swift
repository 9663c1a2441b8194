import Testing
import TuttiTiming

@testable import TuttiClockSync

@Suite struct PathKindTests {
    @Test func `a path is what its round trip allows, and air while nobody knows`() {
        #expect(PathKind(roundTrip: nil) == .air)
        let kinds: [(microseconds: Int64, kind: PathKind)] = [
            (0, .wire), (60, .wire), (400, .wire), (401, .short), (1_000, .short), (1_001, .air),
            (4_000, .air), (-1, .wire),
        ]
        for (microseconds, kind) in kinds {
            #expect(PathKind(roundTrip: .microseconds(microseconds)) == kind)
        }
    }

    /// Who compares kinds asks for "at most a short one".
    @Test func `kinds are ordered by length`() {
        #expect(PathKind.wire < .short && PathKind.short < .air)
    }
}
