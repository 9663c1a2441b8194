import Testing
import TuttiChance
import TuttiClockSync
import TuttiTiming

@Suite struct ClockEstimatorTests {
    static let start = LocalInstant(nanoseconds: 5_000_000_000_000)
    static let leader = GroupInstant(nanoseconds: 7_000_000_000_000_000)

    /// An exchange with known delays at `seconds`; the leader runs `ppm` fast.
    static func sample(
        at seconds: Double, there: Double = 50e-6, back: Double = 50e-6, ppm: Double = 0,
        shift: Double = 0, hold: Double = 20e-6
    ) -> ExchangeSample {
        func group(_ time: Double) -> GroupInstant {
            leader + Nanoseconds(seconds: time * (1 + ppm * 1e-6) + shift)
        }
        let reached = seconds + there
        let left = reached + hold
        return ExchangeSample(
            t1: start + Nanoseconds(seconds: seconds), t2: group(reached), t3: group(left),
            t4: start + Nanoseconds(seconds: left + back), stamps: .kernel)
    }

    static func estimator(samples: Int, ppm: Double = 0) -> ClockEstimator {
        var estimator = ClockEstimator()
        for index in 0..<samples {
            let sample = sample(at: Double(index) * 0.1, ppm: ppm)
            _ = estimator.receive(sample, at: sample.t4)
        }
        return estimator
    }

    @Test func `without an exchange there is no clock`() {
        let estimator = ClockEstimator()
        #expect(estimator.sharedClock(at: Self.start) == nil)
        #expect(estimator.quality(at: Self.start) == .none)
        #expect(estimator.nextDeadline == nil)
    }

    @Test(arguments: [-300.0, -40, 0, 0.5, 120])
    func `constant delays give offset and skew exactly`(ppm: Double) {
        let estimator = Self.estimator(samples: 300, ppm: ppm)
        let now = Self.start + .seconds(30)
        let expected = Self.leader + Nanoseconds(seconds: 30 * (1 + ppm * 1e-6))
        let error = estimator.sharedClock(at: now)!.map(now) - expected
        // 300 ppm is five standard deviations from what is expected of crystals.
        #expect(error.magnitude < .microseconds(1), "\(error)")
        #expect((estimator.storedSkew.skew - ppm * 1e-6).magnitude < 0.1e-6)
    }

    /// A leader whose clock is shaken, or who lies: its readings cannot all be true, because a delay
    /// would be negative, and none is so far from the others that it is refused.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a bound is never negative, whatever a leader says`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var estimator = ClockEstimator()
        for index in 0..<200 {
            let sample = Self.sample(
                at: Double(index) * 0.25, there: 5e-6, back: 5e-6,
                shift: random.uniform(-100e-6, 100e-6))
            _ = estimator.receive(sample, at: sample.t4)
            guard let clock = estimator.sharedClock(at: sample.t4) else { continue }
            try #require(clock.uncertainty >= .zero, "\(clock)")
        }
    }

    @Test func `what is expected of a clock that nobody measures grows, also when it jumped`()
        throws
    {
        var estimator = Self.estimator(samples: 300)
        let silent = Self.start + .seconds(30)
        func expected(_ seconds: Int64) throws -> Nanoseconds {
            try #require(estimator.expectedError(at: silent + .seconds(seconds)))
        }
        #expect(try expected(0) >= estimator.expectedError!)
        for seconds in 1...60 as ClosedRange<Int64> {
            #expect(try expected(seconds) > expected(seconds - 1), "after \(seconds) s")
            let bound = try #require(estimator.bound(at: silent + .seconds(seconds)))
            #expect(try expected(seconds) < bound)
        }
        let before = try expected(60)
        estimator.leaderChanged(epoch: 9, at: silent + .seconds(60))
        #expect(estimator.expectedError == nil, "nothing is measured of the new one")
        #expect(try expected(61) > before)
        estimator.localClockJumped(at: silent + .seconds(62))
        #expect(try expected(62) >= .seconds(3_600), "nobody knows for how long it stood still")
    }

    @Test func `a difference of the directions shifts by half of it, within the bound`() {
        var estimator = ClockEstimator()
        for index in 0..<200 {
            let sample = Self.sample(at: Double(index) * 0.1, there: 250e-6, back: 50e-6)
            _ = estimator.receive(sample, at: sample.t4)
        }
        let now = Self.start + .seconds(20)
        let clock = estimator.sharedClock(at: now)!
        let error = clock.map(now) - (Self.leader + .seconds(20))
        #expect((error - .microseconds(100)).magnitude < .microseconds(2))
        #expect(clock.uncertainty >= error.magnitude)
    }

    @Test func `an answer held for long counts on a path shorter than what the clocks part by`() {
        // At 100 ppm they part by 10 µs in 100 ms; the round trip takes 8.
        var estimator = ClockEstimator()
        for index in 0..<200 {
            let sample = Self.sample(
                at: Double(index) * 0.2, there: 4e-6, back: 4e-6, ppm: 100,
                hold: index < 20 ? 1e-3 : 0.1)
            #expect(estimator.receive(sample, at: sample.t4) == .accepted, "exchange \(index)")
        }
        #expect((estimator.roundTripFloor! - .microseconds(8)).magnitude < .microseconds(1))
    }

    @Test func `round trips that are negative, zero or above a second are refused`() {
        var estimator = Self.estimator(samples: 20)
        let now = Self.start + .seconds(5)
        for (there, back) in [(-60e-6, 50e-6), (-50e-6, 50e-6), (0.6, 0.6)] {
            let sample = Self.sample(at: 3, there: there, back: back)
            #expect(estimator.receive(sample, at: now) == .rejected(.roundTrip))
        }
        #expect(estimator.restarts == 0)
    }

    @Test func `extreme stamps from a peer neither trap nor win`() {
        var estimator = Self.estimator(samples: 20)
        let before = estimator.sharedClock(at: Self.start + .seconds(2))
        for nanoseconds in [Int64.min, -1, 0, 1, Int64.max] {
            var sample = Self.sample(at: 2)
            sample.t2 = GroupInstant(nanoseconds: nanoseconds)
            sample.t3 = GroupInstant(nanoseconds: nanoseconds)
            if estimator.receive(sample, at: sample.t4) == .restarted { break }
        }
        #expect(estimator.sharedClock(at: Self.start + .seconds(2))?.epoch == before?.epoch)
        var fresh = ClockEstimator()
        for (t2, t3) in [(Int64.min, Int64.min), (.max, .max), (.min, .min + 5)] {
            var sample = Self.sample(at: 0)
            sample.t2 = GroupInstant(nanoseconds: t2)
            sample.t3 = GroupInstant(nanoseconds: t3)
            _ = fresh.receive(sample, at: sample.t4)
        }
    }

    @Test func `three contradictions are refused, the fourth starts over`() {
        var estimator = Self.estimator(samples: 100, ppm: 12)
        for index in 0..<4 {
            let sample = Self.sample(at: 10 + Double(index) * 0.1, ppm: 12, shift: 3)
            let result = estimator.receive(sample, at: sample.t4)
            #expect(result == (index < 3 ? .rejected(.contradiction) : .restarted))
        }
        let now = Self.start + Nanoseconds(seconds: 10.5)
        let error =
            estimator.sharedClock(at: now)!.map(now)
            - (Self.leader + Nanoseconds(seconds: 10.5 * 1.000_012 + 3))
        #expect(error.magnitude < .microseconds(50))
        #expect((estimator.storedSkew.skew - 12e-6).magnitude < 2e-6, "the skew is kept")
    }

    @Test func `a single wild sample changes nothing`() {
        var estimator = Self.estimator(samples: 100)
        let now = Self.start + .seconds(10)
        let before = estimator.sharedClock(at: now)
        let wild = Self.sample(at: 9.95, shift: 0.4)
        #expect(estimator.receive(wild, at: now) == .rejected(.contradiction))
        #expect(estimator.sharedClock(at: now) == before)
    }

    @Test func `the same samples in another order give the same estimate`() {
        // With the skew known, nothing of the intermediate solves remains in the last one.
        let known = StoredSkew(skew: 20e-6, deviation: 1e-9)
        var forward = ClockEstimator(stored: known)
        var shuffled = ClockEstimator(stored: known)
        var random = Randomness(seed: 5)
        let end = Self.start + .seconds(30)
        let samples = (0..<30).map {
            Self.sample(
                at: Double($0) * 0.1, there: 50e-6 + random.exponential(100e-6),
                back: 50e-6 + random.exponential(100e-6), ppm: 20)
        }
        // Received at one moment, so that both solve on the same knowledge.
        for sample in samples { _ = forward.receive(sample, at: end) }
        for sample in samples.shuffled(using: &random) { _ = shuffled.receive(sample, at: end) }
        forward.advance(to: end + .milliseconds(20))
        shuffled.advance(to: end + .milliseconds(20))
        let difference =
            forward.sharedClock(at: end)!.map(end)
            - shuffled.sharedClock(at: end)!.map(end)
        #expect(difference.magnitude < .microseconds(1), "\(difference)")
    }

    @Test func `without samples the bound grows and never shrinks`() {
        let estimator = Self.estimator(samples: 100)
        let bounds = (0..<60).map { estimator.bound(at: Self.start + .seconds(10 + $0))! }
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy(<))
        // Half the round trip, 50 µs, and after a minute less than 10 ppm of it.
        #expect(bounds[0] < .microseconds(70))
        #expect(bounds[59] < .microseconds(700))
    }
}
