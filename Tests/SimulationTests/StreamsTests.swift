import Testing
import TuttiChance

@testable import TuttiSimulation

@Suite struct StreamsTests {
    @Test func `streams of different concerns have nothing in common`() {
        var numbers: Set<UInt64> = []
        for concern in ["host", "to leader", "to room"] {
            for room in 0..<10 {
                var stream = SplitMix64(seed: 1, concern, room)
                numbers.insert(stream.next())
            }
        }
        #expect(numbers.count == 30)
    }
}
