import Testing
import TuttiChance
import TuttiClockSync
import TuttiTiming
@testable import TuttiSimulation

import func Glibc.pow

/// What must hold on every path, with every crystal, for every seed. `TUTTI_SEEDS=N` tries N times
/// as many.
@Suite struct ClockPropertyTests {
    /// What a room promises: its bound contains the truth 99 times of a hundred. In the first
    /// second, when the skew is hardly known, it is not always so; later it is.
    @Test(arguments: ClockDraw.blocks(1_600, of: 100))
    func `a young clock's bound contains the truth, and its line neither steps nor turns back`(
        seeds: Range<UInt64>
    ) {
        var (readings, misses) = (0, [String]())
        for seed in seeds {
            var random = SplitMix64(seed: seed, "length")
            let parts = ClockDraw.parts(seed: seed)
            let trace = ExchangeTrace(parts, seconds: random.uniform(0.5, 2.5))
            var (estimator, clocks, watch) = (ClockEstimator(), trace.clocks, LineWatch())
            func look(at local: LocalInstant) {
                guard let clock = estimator.sharedClock(at: local) else { return }
                watch.look(clock, at: local, truth: clocks.group(clocks.instant(of: local)))
            }
            for (place, exchange) in trace.exchanges.enumerated() {
                let local = exchange.sample.t4
                while let due = estimator.nextDeadline, due < local {
                    estimator.advance(to: due)
                    look(at: due)
                }
                _ = estimator.receive(exchange.sample, at: local)
                // At a packet, and some time after it.
                look(at: local)
                let later = local + Nanoseconds(seconds: random.uniform(0, 0.005))
                let next = trace.exchanges.dropFirst(place + 1).first?.sample.t4
                if next.map({ later < $0 }) ?? true { look(at: later) }
            }
            #expect(watch.complaints.isEmpty, "\(parts.name): \(watch.complaints.prefix(3))")
            #expect(watch.steps.isEmpty, "\(parts.name): \(watch.steps.prefix(3))")
            readings += watch.readings
            misses += watch.misses.map { "\(parts.name): \($0)" }
        }
        #expect(misses.count * 100 < readings, "\(misses.prefix(5)) of \(readings)")
    }

    @Test(arguments: ClockDraw.blocks(40, of: 5))
    func `a room's line leans within limits, and its bound contains the truth`(seeds: Range<UInt64>)
    {
        for seed in seeds {
            let parts = ClockDraw.parts(seed: seed)
            var (world, watch) = (ClockWorld(parts), LineWatch())
            world.missingStamps = 0.1
            var isInUse = false
            while world.now.seconds < 4 {
                world.step()
                guard let clock = world.sharedClock() else { continue }
                watch.look(clock, at: world.local, truth: world.clocks.group(world.now))
                let statistics = world.statistics()
                let lean = clock.map.skew - statistics.skewPartsPerMillion * 1e-6
                // 100 ppm, 200 when the line is off by more than 300 µs; rounding of the rate.
                let limit = statistics.deviation.magnitude > .microseconds(300) ? 200e-6 : 100e-6
                if isInUse, lean.magnitude > limit + 1e-9 {
                    Issue.record("\(parts.name): leans by \(lean * 1e6) ppm")
                }
                isInUse = clock.quality == .locked
            }
            #expect(watch.complaints.isEmpty, "\(parts.name): \(watch.complaints.prefix(3))")
            #expect(watch.misses.isEmpty, "\(parts.name): \(watch.misses.prefix(3))")
            #expect(watch.steps.isEmpty, "\(parts.name): \(watch.steps.prefix(3))")
        }
    }

    /// On any path, with any crystal. That a room slept is no miss before it can have seen it, nor
    /// is a jump of the leader by 2 ms. That contradicts only exchanges that took less than twice as
    /// long, and four of them in a row: where half of all take more, or the shortest take half of
    /// that, it hides for as long as they do.
    @Test(arguments: ClockDraw.blocks(32, of: 4))
    func `whatever befalls a clock, its line neither steps nor turns back, and its bound is kept`(
        seeds: Range<UInt64>
    ) {
        for seed in seeds {
            let event = ClockEvent.allCases[Int(seed) % ClockEvent.allCases.count]
            var random = SplitMix64(seed: seed, "when")
            let begin = random.uniform(4, 10)
            let parts = ClockDraw.parts(seed: seed).with(event, at: begin)
            let name = "\(event) at \(begin) s, \(parts.name)"
            var (world, watch, hidden) = (ClockWorld(parts), LineWatch(), 0)
            world.keepsTravels = true
            var unseen: ClosedRange<Double>?
            while world.now.seconds < begin + 10 {
                world.step()
                if unseen == nil, world.now.seconds >= begin {
                    let hides =
                        world.statistics().roundTripFloor > .milliseconds(2)
                        || usualRoundTrip(world) > .milliseconds(4)
                    // What four exchanges that contradict take where a third of the packets is
                    // lost.
                    unseen =
                        switch event {
                        case .jump where hides: begin...Double.infinity
                        case .jump, .suspend: begin...begin + 3
                        default: begin...begin
                        }
                }
                guard let clock = world.sharedClock() else { continue }
                let misses = watch.misses.count
                watch.look(clock, at: world.local, truth: world.clocks.group(world.now))
                if unseen?.contains(world.now.seconds) ?? false {
                    hidden += watch.misses.count - misses
                }
            }
            #expect(watch.complaints.isEmpty, "\(name): \(watch.complaints.prefix(3))")
            #expect(watch.steps.isEmpty, "\(name): \(watch.steps.prefix(3))")
            #expect(watch.readings > 100, "\(name)")
            let misses = watch.misses.count - hidden
            #expect(misses * 100 <= watch.readings, "\(name): \(watch.misses.suffix(3))")
        }
    }

    /// The sum of both directions' medians so far.
    private func usualRoundTrip(_ world: ClockWorld) -> Nanoseconds {
        [world.travels.toLeader, world.travels.toRoom].reduce(.zero) { sum, travels in
            let durations = travels.map(\.duration).sorted()
            return sum + (durations.isEmpty ? .zero : durations[durations.count / 2])
        }
    }

    /// The window over which a floor is remembered must not remember what a bent line made of it.
    @Test(arguments: [ClockEvent.frequencyStep, .thermalStep])
    func `a crystal that changes its rate on a wire is followed, and the bound holds`(
        event: ClockEvent
    ) throws {
        let wired = try #require(ClockPath.named("wired"))
        var (after, misses) = ([Double](), 0)
        for seed: UInt64 in 1...4 {
            var world = ClockWorld(ClockParts(wired, seed: seed).with(event, at: 100))
            for tenth in 900..<1_700 {
                let time = Double(tenth) / 10
                world.run(until: time)
                let (clock, error) = (world.sharedClock(), world.error() ?? 1)
                if time > 105 { after.append(error.magnitude) }
                if (clock?.uncertainty.seconds ?? 0) < error.magnitude { misses += 1 }
            }
        }
        // 5 ppm are 25 µs in five seconds, which the shortest windows take to outvote the others, and
        // half a second may pass before the next solve. A curve of 0.075 ppm/s, 3 ppm with 40 s,
        // leaves 8 µs; a third is room for other constants.
        let limit = event == .frequencyStep ? 27.5e-6 : 11e-6
        #expect(after.sorted()[after.count * 99 / 100] < limit)
        #expect(misses == 0)
    }

    /// Nobody can see which of two directions got longer; the bound must not take sides.
    @Test(arguments: ["wired", "wifi"])
    func `a detour of one direction moves the line by half of it at most, inside the bound`(
        name: String
    ) throws {
        let path = try #require(ClockPath.named(name))
        for seed: UInt64 in 1...2 {
            var world = ClockWorld(ClockParts(path, seed: seed).with(.oneWayDetour, at: 60))
            var (errors, misses) = ([Double](), 0)
            for tenth in 500..<1_600 {
                world.run(until: Double(tenth) / 10)
                let error = (world.error() ?? 1).magnitude
                if (world.sharedClock()?.uncertainty.seconds ?? 0) < error { misses += 1 }
                errors.append(error)
            }
            let before = errors.prefix(100).max() ?? 0
            #expect(misses == 0, "\(name), seed \(seed)")
            // Half of 300 µs, and what the path's own floors do to the estimate.
            #expect((errors.max() ?? 1) < 150e-6 + 2 * before + 10e-6, "\(name), seed \(seed)")
        }
    }

    /// Chance makes edges out of jitter that has none: one claimed 5 µs on the first of these seeds,
    /// was off by 30, and drew the line along by 15.
    @Test(arguments: [30, 31] as [UInt64])
    func `on a wire that jitters like noise no single reading draws the line along`(
        seed: UInt64
    ) throws {
        var world = ClockWorld(ClockParts(try #require(.named("two-hops")), seed: seed))
        world.run(until: 10)
        var worst = 0.0
        for quarter in 41...300 {
            world.run(until: Double(quarter) / 4)
            let error = world.error()
            worst = max(worst, try #require(error).magnitude)
        }
        #expect(worst < 10e-6, "\(worst)")
    }

    /// Two seconds without the network, three with it, and so on: no silence is long enough to
    /// hold over, so each must leave the line where it was.
    @Test func `a network that comes and goes costs little, and nothing steps`() throws {
        let path = try #require(ClockPath.named("wired"))
        func errors(comesAndGoes: Bool) -> [Double] {
            var parts = ClockParts(path, seed: 3)
            if comesAndGoes {
                let gaps = stride(from: 20.0, to: 80, by: 5).map { $0..<$0 + 2 }
                parts.network.toLeader.outages += gaps
                parts.network.toRoom.outages += gaps
            }
            var (world, watch, errors) = (ClockWorld(parts), LineWatch(), [Double]())
            while world.now.seconds < 80 {
                world.step()
                guard let clock = world.sharedClock() else { continue }
                watch.look(clock, at: world.local, truth: world.clocks.group(world.now))
                if world.now.seconds > 20 { errors.append((world.error() ?? 1).magnitude) }
            }
            #expect(watch.complaints.isEmpty && watch.steps.isEmpty)
            #expect(watch.misses.isEmpty, "\(watch.misses.prefix(3))")
            return errors.sorted()
        }
        let (steady, broken) = (errors(comesAndGoes: false), errors(comesAndGoes: true))
        // In two seconds a skew known to 0.2 ppm and a crystal's breathing are worth half a µs.
        let ratio = broken[broken.count * 99 / 100] / steady[steady.count * 99 / 100]
        #expect(ratio < 3, "\(ratio)")
    }

    @Test func `a start on a poor path waits, and is the better for it`() throws {
        let path = try #require(ClockPath.named("busy-pareto"))
        var (early, atLock) = ([Double](), [Double]())
        for seed: UInt64 in 1...12 {
            var world = ClockWorld(ClockParts(path, seed: seed))
            // Its patience, and a solve that falls in between.
            for tenth in 1...125 where world.published?.quality != .locked {
                world.run(until: Double(tenth) / 10)
                if tenth == 30 { early.append((world.error() ?? 1).magnitude) }
            }
            #expect(world.published?.quality == .locked, "seed \(seed)")
            atLock.append((world.error() ?? 1).magnitude)
        }
        #expect(early.count > 6, "hardly a room can play by its line after three seconds")
        // Packets at the floor are rare: it is better, not good.
        #expect(atLock.sorted()[6] < early.sorted()[early.count / 2], "\(atLock), \(early)")
    }

    /// Who begins too early leans for seconds, and is heard while it does.
    @Test func `rooms on the air that begin together wait until their lines are worth it`() throws {
        let path = try #require(ClockPath.named("pareto"))
        var (first, later) = ([Double](), [Double]())
        for seed: UInt64 in 1...16 {
            var world = ClockWorld(ClockParts(path, seed: seed), start: .common)
            var locked: Double?
            for half in 1...80 {
                let time = Double(half) / 2
                world.run(until: time)
                if locked == nil, world.published?.quality == .locked { locked = time }
                let error = (world.error() ?? 1).magnitude
                if let locked, time - locked < 3 { first.append(error) }
                if time > 30 { later.append(error) }
            }
            // A room that joins is waited for, but not for ever.
            #expect((locked ?? .infinity) <= 13, "seed \(seed)")
        }
        func most(_ errors: [Double]) -> Double { errors.sorted()[errors.count * 9 / 10] }
        // Offset and rate both get better with the number of packets: by the square of 35 s to 10.
        // A rule that gives in earlier (5 µs more by the square of the seconds waited) makes it 23.
        #expect(most(first) < 12 * most(later), "\(most(first)), \(most(later))")
    }

    @Test(arguments: ClockDraw.blocks(40, of: 5))
    func `copies and packets that come too late change nothing`(seeds: Range<UInt64>) {
        for seed in seeds {
            func line(copies: Double) -> (clocks: [SharedClock], ignored: Int) {
                var parts = ClockDraw.parts(seed: seed)
                parts.network.toLeader.duplication = 0
                parts.network.toRoom.duplication = 0
                var world = ClockWorld(parts)
                world.keepsPublications = true
                world.copies = copies
                world.run(until: 1.5)
                return (world.publications, world.statistics().ignored)
            }
            let (clean, copied) = (line(copies: 0), line(copies: 0.5))
            #expect(clean.clocks == copied.clocks, "seed \(seed)")
            #expect(copied.ignored > clean.ignored, "seed \(seed): the copies reach the room")
        }
    }

    @Test(arguments: ClockDraw.blocks(300, of: 50))
    func `a clock that jumps is noticed within four exchanges and known half a second later`(
        seeds: Range<UInt64>
    ) {
        let start = 1.6
        for seed in seeds {
            var random = SplitMix64(seed: seed, "jump")
            var parts = ClockDraw.parts(seed: seed)
            // Larger than what any round trip here can hide: from a second to a week.
            let size = pow(10, random.uniform(0, 5.7))
            parts.leaderJumps = [(start, random.chance(0.5) ? size : -size)]
            let trace = ExchangeTrace(parts, seconds: 4)
            var (filter, clocks) = (EstimatorFilter(), trace.clocks)
            let jumped = clocks.local(TrueInstant(nanoseconds: Int64(start * 1e9)))
            var (since, noticed) = (0, LocalInstant?.none)
            for exchange in trace.exchanges {
                let local = exchange.sample.t4
                if let noticed, local > noticed + .milliseconds(500) { break }
                filter.receive(exchange)
                if exchange.sample.t1 > jumped { since += 1 }
                if noticed == nil, filter.estimator.restarts > 0 { noticed = local }
                // An exchange of a second or more is refused, and is none.
                if noticed == nil, since > 4 { break }
            }
            guard let noticed else {
                // Nothing to notice where the loss left fewer than four.
                #expect(since < 4, "seed \(seed): \(since) exchanges and no restart")
                continue
            }
            let local = noticed + .milliseconds(500)
            let clock = filter.estimator.sharedClock(at: local)
            let truth = clocks.group(clocks.instant(of: local))
            #expect(
                clock.map { ($0.map(local) - truth).magnitude <= $0.uncertainty } ?? false,
                "seed \(seed): \(clock.map { $0.map(local) - truth } as Any)")
        }
    }

    @Test(arguments: ClockDraw.blocks(200, of: 50))
    func `the order does not matter in which exchanges arrive that agree`(seeds: Range<UInt64>) {
        var compared = 0
        for seed in seeds {
            var parts = ClockDraw.parts(seed: seed)
            parts.crystal = OscillatorShape(constant: parts.crystal.constant)
            let trace = ExchangeTrace(parts, seconds: 2)
            guard trace.exchanges.count > 8, let end = trace.exchanges.map(\.sample.t4).max()
            else { continue }
            var random = SplitMix64(seed: seed, "order")
            var shuffled = trace.exchanges
            for index in shuffled.indices.dropFirst(3).reversed() {
                shuffled.swapAt(index, 3 + Int(random.next() % UInt64(index - 2)))
            }
            func estimate(_ exchanges: [Exchange]) -> SharedClock? {
                var estimator = ClockEstimator(
                    stored: StoredSkew(skew: -parts.crystal.constant * 1e-6))
                // Three begin it, in this order. The last of them comes when a solve is due; the
                // others before the next one.
                for (index, exchange) in exchanges.enumerated() {
                    let now = index < 2 ? end : end + .seconds(2)
                    // Which of several contradictions comes first may decide; that is not meant.
                    guard estimator.receive(exchange.sample, at: now) == .accepted else {
                        return nil
                    }
                }
                estimator.advance(to: end + .seconds(3))
                return estimator.sharedClock(at: end + .seconds(3))
            }
            guard let one = estimate(trace.exchanges), let other = estimate(shuffled) else {
                continue
            }
            compared += 1
            // The same sums in the same order, but for packets of one instant.
            let difference = one.map(end) - other.map(end)
            #expect(difference.magnitude <= Nanoseconds(2), "\(parts.name): \(difference)")
        }
        #expect(compared > seeds.count / 2, "\(compared) of \(seeds.count) draws were compared")
    }
}
