import Glibc
import Testing
import TuttiTiming

@testable import TuttiLinuxHost

/// Kernel stamps are of a clock that daemons steer and owners set; what is made of them is not.
@Suite struct StampConversionTests {
    /// Two clocks of a machine, moved by hand.
    private final class Clocks {
        var raw: Int64 = 5_000_000_000
        var realTime: Int64 = 1_700_000_000_000_000_000
        /// What each reading takes.
        var cost: Int64 = 50

        func read(_ clock: clockid_t) -> Int64 {
            raw += cost
            realTime += cost
            return clock == CLOCK_REALTIME ? realTime : raw
        }

        /// Lets `span` nanoseconds pass, with REALTIME steered by so many ppm.
        func pass(_ span: Int64, partsPerMillion: Int64 = 0) {
            raw += span
            realTime += span + span * partsPerMillion / 1_000_000
        }
    }

    private static func error(_ local: LocalInstant?, _ raw: Int64) -> Int64? {
        local.map { abs($0.nanoseconds - raw) }
    }

    @Test func `a stamp is told in local time, to the width of the readings`() throws {
        let clocks = Clocks()
        var conversion = StampConversion(read: clocks.read)
        for _ in 0..<10 {
            clocks.pass(100_000_000)
            let (raw, stamp) = (clocks.raw, clocks.realTime)
            clocks.pass(3_000)
            #expect(try #require(Self.error(conversion.local(realTime: stamp), raw)) <= 100)
        }
    }

    @Test(arguments: [-500, 50, 500] as [Int64])
    func `where the time is steered, a packet that lay in its socket is told as well`(
        ppm: Int64
    ) throws {
        let clocks = Clocks()
        var conversion = StampConversion(read: clocks.read)
        var errors: [Int64] = []
        for _ in 0..<40 {
            clocks.pass(100_000_000, partsPerMillion: ppm)
            let (raw, stamp) = (clocks.raw, clocks.realTime)
            clocks.pass(150_000_000, partsPerMillion: ppm)
            errors.append(try #require(Self.error(conversion.local(realTime: stamp), raw)))
        }
        // 150 ms at 50 ppm are 7.5 µs, at 500 ten times as many, until the slope is known.
        // The readings are 50 ns apart; over half a second that is a slope wrong by 0.2 ppm or 30
        // ns in 150 ms, and the reading itself is worth as much.
        #expect(errors.suffix(30).allSatisfy { $0 <= 200 }, "\(errors)")
    }

    @Test(arguments: [1_000_000, -3_600_000_000_000] as [Int64])
    func `a stamp across a step of the time is not believed, the next one is`(step: Int64) throws {
        let clocks = Clocks()
        var conversion = StampConversion(read: clocks.read)
        _ = conversion.local(realTime: clocks.realTime)
        clocks.pass(20_000_000)
        let before = clocks.realTime
        clocks.realTime += step
        #expect(conversion.local(realTime: before) == nil)
        clocks.pass(20_000_000)
        let (raw, stamp) = (clocks.raw, clocks.realTime)
        clocks.pass(2_000)
        #expect(try #require(Self.error(conversion.local(realTime: stamp), raw)) <= 100)
    }

    @Test func `no stamp, one from the future and one from long ago are none`() {
        let clocks = Clocks()
        var conversion = StampConversion(read: clocks.read)
        #expect(conversion.local(realTime: 0) == nil)
        #expect(conversion.local(realTime: clocks.realTime + 1_000_000) == nil)
        #expect(conversion.local(realTime: clocks.realTime - 3_000_000_000) == nil)
        #expect(conversion.local(realTime: clocks.realTime - 1_000_000_000) != nil)
    }

    @Test func `readings that are interrupted each time tell nothing`() {
        let clocks = Clocks()
        clocks.cost = 50_000
        var conversion = StampConversion(read: clocks.read)
        #expect(conversion.local(realTime: clocks.realTime) == nil)
    }
}
