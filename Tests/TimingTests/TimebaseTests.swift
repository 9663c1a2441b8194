import Testing
import TuttiChance
import TuttiTiming

/// A timebase is a line; changing anything about it must leave item time continuous.
struct TimebaseTests {
    typealias Source = Instant<LocalClock>

    @Test func `a timebase stands until it is given a rate`() {
        let base = Timebase<LocalClock>(time: MediaTime(value: 5, timescale: 1))
        #expect(base.time(at: Source(nanoseconds: 9_000_000_000)).seconds == 5)
        #expect(base.instant(of: .zero) == nil)
    }

    @Test func `the anchor is exact and the slope is the rate`() {
        var base = Timebase<LocalClock>()
        let frame = MediaTime(frame: 7, sampleRate: 44_100)
        base.setRate(0.5, anchorTime: frame, immediateSourceTime: Source(nanoseconds: 100))
        #expect(base.time(at: Source(nanoseconds: 100)) == frame)
        let later = base.time(at: Source(nanoseconds: 2_000_000_100))
        #expect((later - frame - MediaTime(value: 1, timescale: 1)).magnitude.seconds <= 1e-9)
        let earlier = base.time(at: Source(nanoseconds: 100 - 1_000_000_000))
        #expect((frame - earlier - MediaTime(value: 1, timescale: 2)).magnitude.seconds <= 1e-9)
    }

    @Test(arguments: [30, 31, 32] as [UInt64])
    func `changes of rate and of clock never make item time jump`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            var base = Timebase<LocalClock>()
            let anchor = Source(nanoseconds: Int64(random.next() >> 10))
            base.setRate(
                Double.random(in: 0.5...2, using: &random),
                anchorTime: MediaTime(frame: Int64(random.next() >> 30), sampleRate: 44_100),
                immediateSourceTime: anchor)
            let change = anchor + Nanoseconds(Int64(random.next() >> 20))
            let before = base.time(at: change)

            var rated = base
            rated.setRate(Double.random(in: 0...2, using: &random), at: change)
            #expect(rated.time(at: change) == before)

            let relation = ClockMap<LocalClock, GroupClock>(
                from: anchor, to: GroupInstant(nanoseconds: Int64(random.next() >> 2)),
                skew: Double.random(in: -3e-4...3e-4, using: &random))
            let moved = base.continued(on: relation, at: change)
            #expect(moved.time(at: relation(change)) == before)
            #expect(moved.rate == base.rate)
        }
    }

    @Test func `the instant of a time is where the line passes it`() {
        var base = Timebase<LocalClock>()
        base.setRate(2, anchorTime: .zero, immediateSourceTime: Source(nanoseconds: 1_000))
        let instant = base.instant(of: MediaTime(value: 3, timescale: 1))
        #expect(instant == Source(nanoseconds: 1_500_001_000))
        #expect(base.instant(of: .invalid) == nil)
        #expect(base.instant(of: .positiveInfinity) == Source(nanoseconds: .max))
    }

    @Test func `no extreme makes a timebase trap`() {
        let ends: [Int64] = [.min, -1, 0, 1, .max]
        for anchor in ends {
            for now in ends {
                for time in MediaTimeTests.extreme + MediaTimeTests.special {
                    for rate in [0, 1, -2, 1e300, -1e-300] {
                        var base = Timebase<LocalClock>()
                        base.setRate(
                            rate, anchorTime: time,
                            immediateSourceTime: Source(nanoseconds: anchor))
                        let result = base.time(at: Source(nanoseconds: now))
                        #expect(result.isValid || !time.isNumeric)
                        _ = base.instant(of: .zero)
                    }
                }
            }
        }
    }
}
