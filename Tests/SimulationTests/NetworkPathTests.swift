import Testing
import TuttiChance
import TuttiTiming
@testable import TuttiSimulation

@Suite struct NetworkPathTests {
    private let sent = TrueInstant(nanoseconds: 1_000_000_000)

    @Test(arguments: [NetworkProfile.wired, .wifi, .busyWiFi].map(\.toRoom))
    func `no packet is faster than the floor, and the share lost is the one declared`(
        shape: PathShape
    ) {
        var path = NetworkPath(shape, random: SplitMix64(seed: 5))
        var lost = 0
        let count = 4_000
        for _ in 0..<count {
            let arrivals = path.arrivals(of: sent)
            if arrivals.isEmpty { lost += 1 }
            for arrival in arrivals {
                #expect((arrival - sent).microseconds >= shape.floor)
            }
        }
        // Four standard deviations of a binomial count, and one for the rare loss of a wire.
        let sigma = (Double(count) * shape.loss * (1 - shape.loss)).squareRoot()
        #expect(abs(Double(lost) - Double(count) * shape.loss) <= 4 * sigma + 1)
    }

    @Test func `a stream loses nothing but time`() {
        var shape = PathShape(floor: 100)
        shape.loss = 0.5
        var path = NetworkPath(shape, random: SplitMix64(seed: 6))
        let delays = (0..<1_000).map { _ in path.streamArrival(of: sent) - sent }
        let quick = delays.filter { $0 < .milliseconds(100) }
        let once = delays.filter { $0 >= .milliseconds(200) && $0 < .milliseconds(300) }
        // Half get through at once, a quarter after one timeout of 200 ms; four sigma.
        #expect(abs(quick.count - 500) < 64)
        #expect(abs(once.count - 250) < 55)
        #expect(delays.allSatisfy { $0 < .milliseconds(100) || $0 >= .milliseconds(200) })
    }
}
