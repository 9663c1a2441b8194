import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// Several rooms, each with a crystal and a host clock of its own, on one line.
@Suite struct RoomsTests {
    private struct Room {
        var card: Double
        var host: Double
        var wander = 0.0
        var granularity = 0
    }

    /// Lateness of each room in seconds, one row per 10 ms after the start.
    private func play(
        _ rooms: [Room], warmUp: Nanoseconds, for span: Nanoseconds, seed: UInt64 = 1
    ) -> [[Double?]] {
        let rigs = rooms.enumerated().map { index, room in
            Rig(
                partsPerMillion: room.card, wander: room.wander, hostPartsPerMillion: room.host,
                pointerGranularity: room.granularity, seed: seed &* 10 &+ UInt64(index),
                fidelity: .positionsOnly)
        }
        let voices = rigs.map { $0.voice() }
        let line = Line(
            itemFrame: 0, instant: rigs[0].groupNow + warmUp + .milliseconds(80))
        for i in rigs.indices {
            rigs[i].run(warmUp)
            voices[i].start(line, clock: rigs[i].clock)
            rigs[i].run(.milliseconds(130))
        }
        return (0..<Int(span.count / 10_000_000)).map { _ in
            rigs.indices.map { i in
                rigs[i].run(.milliseconds(10))
                return rigs[i].lateness(of: voices[i], on: line)
            }
        }
    }

    private func worst(_ rows: some Sequence<[Double?]>) -> Double {
        rows.map { row in
            let known = row.compactMap(\.self)
            return known.count == row.count ? known.max()! - known.min()! : .infinity
        }.max()!
    }

    @Test
    func `fine cards at +80, −120, +20 and 300 ppm keep within 5 µs from the first period on`() {
        let rooms = [
            Room(card: 80, host: 40), Room(card: -120, host: -35), Room(card: 20, host: 0),
            Room(card: 300, host: 10),
        ]
        let rows = play(rooms, warmUp: .milliseconds(500), for: .seconds(5))
        #expect(worst(rows.prefix(50)) < 5e-6, "\(worst(rows.prefix(50)))")
        #expect(worst(rows) < 5e-6, "\(worst(rows))")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `coarse pointers and crystals that wander keep within a frame`(seed: UInt64) {
        // Steps of 8 frames, 167 µs: a deviation of 48 µs. A line through the mean of 10 s of readings
        // is known to 2 × 48/√1000 = 3 µs at its end, one through their edges better; three rooms,
        // three deviations: 18 µs between the extremes.
        let rooms = [
            Room(card: 80, host: 40, wander: 0.3, granularity: 8),
            Room(card: -120, host: -35, wander: 0.3, granularity: 8),
            Room(card: 20, host: 0, wander: 0.3, granularity: 8),
        ]
        let rows = play(rooms, warmUp: .seconds(3), for: .seconds(12), seed: seed)
        #expect(worst(rows.prefix(50)) < 2 / 48_000.0, "start \(worst(rows.prefix(50)))")
        #expect(worst(rows.dropFirst(700)) < 1 / 48_000.0, "later \(worst(rows.dropFirst(700)))")
    }

    @Test func `a card of unknown rate that must start at once stays within a frame`() {
        let rooms = [Room(card: 80, host: 40), Room(card: -120, host: -35)]
        let rows = play(rooms, warmUp: .milliseconds(200), for: .seconds(2))
        #expect(worst(rows) < 1 / 48_000.0, "\(worst(rows))")
    }

    /// A shared clock learns its rate when it has begun already, and leans by as much again until it
    /// has caught up.
    @Test func `a rate that is learnt after the start soon costs nothing`() {
        let ignorance = Nanoseconds.milliseconds(200)
        let rig = Rig(partsPerMillion: 150, hostPartsPerMillion: -85, fidelity: .positionsOnly)
        let voice = rig.voice()
        rig.run(.milliseconds(500))
        func publish(reading: GroupInstant, skew: Double) {
            rig.clock.store(
                SharedClock(
                    map: ClockMap(from: rig.now, to: reading, skew: skew), uncertainty: .zero,
                    estimatedAt: rig.now, epoch: 1, quality: .locked))
        }
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(60))
        voice.start(line, clock: rig.clock)
        rig.run(.milliseconds(60))
        publish(reading: rig.groupNow, skew: 0)
        rig.run(ignorance)
        var worst = 0.0
        func run(_ span: Nanoseconds) {
            rig.run(span) {
                worst = max(worst, rig.lateness(of: voice, on: line)?.magnitude ?? .infinity)
            }
        }
        publish(reading: rig.clock.load().map(rig.now), skew: 2 * rig.truth.skew)
        run(ignorance)
        publish(reading: rig.groupNow, skew: rig.truth.skew)
        run(ignorance)
        // What was queued by the old rate is still heard by it.
        let queue = Double(rig.engine.format.bufferFrames) / 48_000
        let learnt = rig.truth.skew.magnitude * (ignorance.seconds + queue)
        #expect(worst < 1.2 * learnt, "\(worst) of \(learnt)")
        let late = rig.lateness(of: voice, on: line)!
        #expect(late.magnitude < learnt / 8, "\(late) of \(learnt)")
    }

    @Test func `without a clock the ratio is nominal however far card and host drift apart`() {
        let rig = Rig(partsPerMillion: 300, fidelity: .positionsOnly)
        let voice = rig.voice()
        voice.start(Line(itemFrame: 0, instant: rig.localAsGroup + .milliseconds(200)), clock: nil)
        rig.run(.milliseconds(300))
        let rendered = rig.rendered
        let position = voice.report.itemFrame
        // 300 ppm are 6 ms in 20 s, more than a servo would slew.
        rig.run(.seconds(20)) { #expect(voice.report.state == .playing) }
        let moved = voice.report.itemFrame - position
        #expect((moved - Double(rig.rendered - rendered)).magnitude < 1e-3)
        #expect(voice.report.starvedFrames == 0)
        #expect(voice.report.ratioPartsPerMillion == 0)
    }

    @Test func `corrections stay inaudible`() {
        let rig = Rig(
            partsPerMillion: -120, wander: 0.3, pointerGranularity: 8, fidelity: .positionsOnly)
        let voice = rig.voice()
        rig.run(.seconds(2))
        voice.start(Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(60)), clock: rig.clock)
        rig.run(.milliseconds(200))
        var last = voice.report.ratioPartsPerMillion
        var steepest = 0.0
        var farthest = 0.0
        func run(_ span: Nanoseconds) {
            steepest = 0
            rig.run(span) {
                let ratio = voice.report.ratioPartsPerMillion
                steepest = max(steepest, (ratio - last).magnitude)
                farthest = max(farthest, (ratio - 120).magnitude)
                last = ratio
            }
        }
        // What is learnt in the first two seconds is followed at once: 2700 ppm/s at most, so 27 ppm,
        // a twentieth of a cent, from period to period.
        run(.seconds(2))
        #expect(steepest <= 27)
        // Then 86 ppm/s, and less and less: 10 once settled.
        run(.seconds(18))
        #expect(steepest <= 0.86 + 1e-6)
        run(.seconds(5))
        #expect(steepest <= 0.1 + 1e-6)
        // 20 ppm are a thirtieth of a cent.
        #expect(farthest < 25)
    }

    /// The phase is known to 5 µs at once when the pointer is exact, and to a frame where only the
    /// edge of some dozen looks is.
    @Test(arguments: [(0, 5e-6), (8, 20e-6), (48, 20e-6)])
    func `a card that ran dry comes back on the line and knows its rate`(
        granularity: Int, limit: Double
    ) {
        let rig = Rig(
            partsPerMillion: 80, hostPartsPerMillion: 20, pointerGranularity: granularity)
        let voice = rig.voice { _ in (0.25, 0.25) }
        rig.run(granularity == 0 ? .milliseconds(800) : .seconds(4))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(50))
        voice.start(line, clock: rig.clock)
        rig.run(.milliseconds(300))
        rig.stall(.milliseconds(120))
        var gap = 0
        var first: Double?
        rig.run(.milliseconds(granularity == 0 ? 600 : 1_000)) {
            if rig.engine.port.report.restarts == 1 {
                if let late = rig.lateness(of: voice, on: line), voice.report.state == .playing {
                    if first == nil, rig.engine.port.report.cardUncertainty > .zero {
                        first = late
                    }
                } else {
                    gap += 1
                }
            }
        }
        let report = rig.engine.port.report
        #expect(report.restarts == 1)
        // 5 ppm are what a restart leaves of the knowledge of a rate.
        #expect((report.cardPartsPerMillion - 80).magnitude < (granularity == 0 ? 2 : 10))
        #expect(voice.report.state == .playing)
        #expect(rig.lateness(of: voice, on: line)!.magnitude < limit)
        // After the break the sound rises smoothly from nothing: a fade, 240 frames to 0.25.
        let heard = rig.channel()
        let end = heard.lastIndex { $0 == 0 }!
        let rise = heard[end...].prefix(300)
        let steepest = zip(rise, rise.dropFirst()).map { ($1 - $0).magnitude }.max()!
        #expect(steepest < 0.25 * Float.pi / 480 + 1e-4)
    }
}
