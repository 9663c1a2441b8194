import Testing
import TuttiSimulation

/// What the group as a whole keeps, in worlds drawn from a handful of seeds.
@Suite struct ScenarioTests {
    /// One frame at 48 kHz, µs.
    private static let frame = 1e6 / 48_000
    private static let seeds: ClosedRange<UInt64> = 1...3

    private func runs(_ scenario: String, seconds: Double? = nil) throws -> [SimulationReport] {
        try Self.seeds.map {
            try SimulationRun.run(scenario: scenario, seed: $0, seconds: seconds)
        }
    }

    private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// Nobody ran dry, jumped, or was silent while the others played.
    private func expectUnbroken(_ report: SimulationReport) {
        for room in report.rooms {
            #expect(room.starvedFrames == 0, "\(report)")
            #expect(room.restarts == 0, "\(report)")
            #expect(room.steps == 0, "\(report)")
            #expect(room.absentMilliseconds == 0, "\(report)")
            #expect(room.lineAlarms == 0, "\(report)")
        }
        #expect(report.refusals == [])
    }

    @Test func `three rooms on a switch start together and stay together`() throws {
        let reports = try runs("join")
        for report in reports {
            expectUnbroken(report)
            #expect(report.lines.count == 1)
            #expect(report.lines[0].begins == 3, "\(report)")
            // A clock that is a third of a second old: two frames at the worst …
            #expect(report.lines[0].beginSpread < 2 * Self.frame, "\(report)")
            #expect(report.skew.p99 < 2 * Self.frame, "\(report)")
        }
        // … and usually less than one.
        #expect(median(reports.map { $0.lines[0].beginSpread }) < Self.frame)
        #expect(median(reports.map(\.skew.p99)) < 20)
    }

    @Test func `settled rooms on a switch are within a quarter of a frame`() throws {
        let report = try SimulationRun.run(scenario: "join", seed: 4, seconds: 60)
        #expect(report.skewSettled.count > 3_000)
        #expect(report.skewSettled.p99 < Self.frame / 4, "\(report)")
    }

    /// What the clock leans and what the servo adds, together: 100 ppm are 0.2 cent.
    @Test(arguments: ["join", "wifi", "crystals"])
    func `once settled, no room plays faster or slower than can be heard`(scenario: String) throws {
        for report in try runs(scenario, seconds: 40) {
            #expect(report.slewSettled.count > 2_000)
            #expect(report.slewSettled.max <= 100, "\(report)")
        }
    }

    @Test func `wifi keeps the rooms within an echo nobody hears`() throws {
        let reports = try runs("wifi")
        for report in reports { expectUnbroken(report) }
        #expect(median(reports.map(\.skew.p99)) < 150, "\(reports.map(\.skew))")
    }

    @Test func `items of thirty milliseconds join without a hole in all rooms`() throws {
        for report in try runs("short-items") {
            expectUnbroken(report)
            #expect(report.lines.count == 200, "\(report)")
            for line in report.lines {
                #expect(line.begins == 3 && line.joins == 0, "\(line)")
                #expect(line.beginSpread < 2 * Self.frame, "\(line)")
            }
        }
    }

    @Test func `a pause ends and a resume begins at one instant in all rooms`() throws {
        for report in try runs("pause") {
            expectUnbroken(report)
            try #require(report.lines.count == 3, "\(report)")
            for line in report.lines.dropFirst() {
                #expect(line.begins == 3 && line.joins == 0)
                #expect(line.beginSpread < Self.frame, "\(report)")
            }
            for line in report.lines.dropLast() {
                #expect(line.ends == 3)
                #expect(line.endSpread < Self.frame, "\(report)")
            }
            #expect(report.apartMilliseconds == 0)
        }
    }

    @Test func `a seek lands on its frame in all rooms at one instant`() throws {
        for report in try runs("seek") {
            expectUnbroken(report)
            #expect(report.lines.map(\.itemSeconds) == [0, 60, 10.25, 42], "\(report)")
            for line in report.lines.dropFirst() {
                #expect(line.begins == 3 && line.joins == 0, "\(report)")
                #expect(line.beginSpread < Self.frame, "\(report)")
                #expect(line.beginError < Self.frame, "\(report)")
            }
            #expect(report.apartMilliseconds == 0)
        }
    }

    @Test func `a late room is on the line within a second`() throws {
        for report in try runs("late-join") {
            expectUnbroken(report)
            let late = report.rooms[2]
            try #require(late.joinMilliseconds.count == 1)
            #expect(late.joinMilliseconds[0] < 1_000)
            #expect(late.error.max < 2 * Self.frame, "\(report)")
        }
    }

    @Test func `a room that was killed comes back on the line within a second`() throws {
        for report in try runs("restart") {
            expectUnbroken(report)
            let back = report.rooms[1]
            try #require(back.joinMilliseconds.count == 2)
            #expect(back.joinMilliseconds[1] < 1_000)
            #expect(back.error.max < 2 * Self.frame, "\(report)")
        }
    }

    @Test func `without their leader the rooms play on to the end of the item`() throws {
        for report in try runs("leader-lost") {
            expectUnbroken(report)
            // 25 s were begun by three rooms and heard to the end by the two that are left.
            #expect(report.lines.count == 1)
            #expect(report.lines[0].ends == 2, "\(report)")
            // Fifteen seconds on two crystals' remembered rates: 1 ppm is 15 µs.
            #expect(report.lines[0].endSpread < 2 * Self.frame, "\(report)")
        }
    }

    @Test func `leaders that are killed are followed, and the next ones are obeyed`() throws {
        for report in try runs("succession") {
            expectUnbroken(report)
            #expect(report.handovers.count == 2, "\(report)")
            // The start, the one after the pause, and the seek.
            #expect(report.lines.count == 3, "\(report)")
            #expect(report.skewSettled.p99 < Self.frame, "\(report)")
        }
    }

    /// Nobody waits for the one that was to go on.
    @Test func `the leader and its heir are lost together, and the others play on`() throws {
        for report in try runs("two-leave") {
            #expect(report.handovers.count == 1 && report.lines.count == 1, "\(report)")
            for room in report.rooms.dropFirst(2) {
                #expect(room.starvedFrames == 0 && room.restarts == 0, "\(report)")
                #expect(room.absentMilliseconds == 0 && room.steps == 0, "\(report)")
            }
            // The pause, by whoever leads.
            #expect(report.refusals.isEmpty && report.lines[0].ends == 2, "\(report)")
        }
    }

    /// It was there first, and has nothing to go on with.
    @Test func `a room that is silent still is passed over`() throws {
        for seed in [1, 2, 3] as [UInt64] {
            let report = try SimulationRun.run(
                scenario: "fresh-heir", seed: seed, keepsHistory: true)
            #expect(report.history?.reigns.last?.room == 2, "\(report)")
            #expect(report.handovers.count == 1, "\(report)")
            let cellar = report.rooms[2]
            #expect(cellar.starvedFrames == 0 && cellar.absentMilliseconds == 0, "\(report)")
            // The one that came back plays with it in the end.
            #expect(report.rooms[1].joinMilliseconds.count == 2, "\(report)")
        }
    }

    @Test func `a leader that comes back follows, and all go where the next one says`() throws {
        for report in try runs("leader-returns") {
            #expect(report.handovers.count == 1 && report.refusals.isEmpty, "\(report)")
            #expect(report.lines.last?.itemSeconds == 90, "\(report)")
            #expect(report.lines.last?.begins == 3, "\(report)")
        }
    }

    @Test func `who looks on changes nothing`() throws {
        let plain = try SimulationRun.run(scenario: "succession", seed: 4)
        var drawn = try SimulationRun.run(scenario: "succession", seed: 4, keepsHistory: true)
        let history = try #require(drawn.history)
        drawn.history = nil
        #expect(drawn == plain)
        #expect(history.reigns.map { $0.room == nil } == [false, true, false, true, false])
        #expect(history.begins.count == plain.lines.count)
        #expect(history.errors.allSatisfy { !$0.isEmpty } && !history.skew.isEmpty)
    }

    @Test func `crystals 600 ppm apart change nothing once their rates are known`() throws {
        for report in try runs("crystals") {
            expectUnbroken(report)
            #expect(report.skewSettled.p99 < Self.frame / 2, "\(report)")
        }
    }

    @Test func `full air loses commands for a while but no room for good`() throws {
        for seed in [1, 2] as [UInt64] {
            let report = try SimulationRun.run(scenario: "everything", seed: seed)
            #expect(report.starvedFrames == 0, "\(report)")
            #expect(report.rooms.allSatisfy { $0.restarts == 0 && $0.steps == 0 }, "\(report)")
            // A commit lost twice comes 600 ms late; nobody is away for longer.
            #expect(report.rooms.allSatisfy { $0.absentMilliseconds < 1_000 }, "\(report)")
            #expect(report.apartMilliseconds < 1_500, "\(report)")
            #expect(report.lines.last?.index == 2)
        }
    }

    /// The figures come from what engines say they play. The sound says it too.
    @Test func `what leaves the cards is what was reported`() throws {
        // A start, a seek forwards and its fades; rendering costs most of a debug build's time.
        let report = try SimulationRun.run(
            scenario: "seek", seed: 1, seconds: 5.8, rendersAudio: true)
        let audio = try #require(report.audio)
        #expect(report.lines.count == 2)
        #expect(audio.comparedFrames > 15_000)
        // The resampler is good for −130 dB: 3e-7 of a turn of 480 frames, and the sums of floats.
        #expect(audio.worstLead < 0.002, "\(audio)")
        #expect(audio.strayFrames == 0)

        let positions = try SimulationRun.run(scenario: "seek", seed: 1, seconds: 5.8)
        #expect(positions.traceHash == report.traceHash, "rendering must not change a decision")
    }
}
