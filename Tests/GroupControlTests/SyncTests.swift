import Testing
import TuttiTiming

@testable import TuttiGroupControl

@Suite struct `What a room promises` {
    static func report(
        error: Nanoseconds = .microseconds(-2), clock: Nanoseconds = .microseconds(40),
        path: Nanoseconds = .microseconds(30), card: Nanoseconds? = .microseconds(11),
        quality: SharedClock.Quality = .locked, activity: RoomActivity = .playing
    ) -> RoomReport {
        RoomReport(
            activity: activity, clockBound: clock, error: error,
            sync: SyncReport(
                quality: quality, path: path, card: card, expectedClock: .microseconds(3),
                expectedCard: .microseconds(4)))
    }

    @Test func `the bound is the sum of its parts, whichever way the room is off`() {
        for sign in [1, -1] as [Int64] {
            let report = Self.report(error: .microseconds(2 * sign))
            #expect(report.bound == .microseconds(2 + 40 + 11))
            #expect(report.clockPart == .microseconds(10))
            #expect(report.pathPart == .microseconds(30))
            let parts = [report.error.magnitude, report.clockPart, report.pathPart]
            #expect(
                parts.reduce(.zero, +) + (report.sync.card ?? .zero) == (report.bound ?? .zero))
        }
    }

    @Test func `a path longer than the clock's bound takes no more than all of it`() {
        let report = Self.report(path: .microseconds(99))
        #expect(report.pathPart == .microseconds(40))
        #expect(report.clockPart == .zero)
        #expect(report.bound == .microseconds(53))
    }

    @Test func `without a clock or a card nothing is promised`() {
        #expect(Self.report(quality: .none).bound == nil)
        #expect(Self.report(card: nil).bound == nil)
        #expect(Self.report(quality: .none).expectedError == nil)
        #expect(Self.report(quality: .holdover).bound != nil)
    }

    @Test func `what is expected adds up like independent errors and stays inside the promise`() {
        // 2, 3 and 4 µs: √29 µs.
        let expected = Self.report().expectedError?.seconds ?? 0
        #expect(abs(expected - 5.385e-6) < 1e-8)
        #expect((Self.report().expectedError ?? .zero) < (Self.report().bound ?? .zero))
    }

    @Test func `absurd figures of a peer are no promise and no crash`() {
        let wild = Self.report(
            error: Nanoseconds(.min), clock: Nanoseconds(.max), path: Nanoseconds(.min),
            card: Nanoseconds(.max))
        #expect(wild.bound == nil)
        #expect(Self.report(clock: .seconds(3_600)).bound == nil)
        _ = wild.expectedError
        _ = wild.clockPart
    }

    @Test func `the alarm rings once, and ends only clearly below the target`() {
        var alarm = SyncAlarm(target: .microseconds(100))
        #expect(alarm.judge(.microseconds(100), quality: .locked) == nil)
        #expect(
            alarm.judge(.microseconds(101), quality: .locked)
                == .raised(bound: .microseconds(101)))
        #expect(alarm.judge(.microseconds(500), quality: .locked) == nil)
        #expect(alarm.judge(.microseconds(95), quality: .locked) == nil)
        #expect(alarm.isRaised)
        #expect(
            alarm.judge(.microseconds(89), quality: .holdover)
                == .cleared(bound: .microseconds(89)))
        #expect(alarm.judge(.microseconds(10), quality: .locked) == nil)
        #expect(!alarm.isRaised)
    }

    @Test func `after a rest the alarm is silent, and rings again where it must`() {
        var alarm = SyncAlarm(target: .microseconds(50))
        var wide = Self.report()
        #expect(alarm.judge(&wide) == .raised(bound: .microseconds(53)))
        alarm.rest()
        #expect(!alarm.isRaised)
        #expect(alarm.judge(&wide) == .raised(bound: .microseconds(53)))
    }

    @Test func `a clock that is being acquired neither rings nor clears`() {
        var alarm = SyncAlarm(target: .microseconds(100))
        #expect(alarm.judge(.seconds(1), quality: .acquiring) == nil)
        #expect(alarm.judge(nil, quality: .locked) == nil)
        #expect(!alarm.isRaised)
        _ = alarm.judge(.seconds(1), quality: .locked)
        #expect(alarm.judge(.zero, quality: .acquiring) == nil)
        #expect(alarm.isRaised)
    }

    @Test func `a room that promises nothing, or not yet, shows no alarm, and remembers it`() {
        var alarm = SyncAlarm(target: .microseconds(50))
        var wide = Self.report()
        #expect(alarm.judge(&wide) == .raised(bound: .microseconds(53)))
        #expect(wide.sync.isAlarming)
        var unknown = Self.report(card: nil)
        #expect(alarm.judge(&unknown) == nil)
        #expect(!unknown.sync.isAlarming)
        var young = Self.report(quality: .acquiring)
        #expect(alarm.judge(&young) == nil)
        #expect(!young.sync.isAlarming)
        var again = Self.report()
        #expect(alarm.judge(&again) == nil)
        #expect(again.sync.isAlarming)
        var narrow = Self.report(clock: .microseconds(20))
        #expect(alarm.judge(&narrow) == .cleared(bound: .microseconds(33)))
        #expect(!narrow.sync.isAlarming)
    }
}

@Suite struct `The history of a room` {
    func instant(_ seconds: Double) -> GroupInstant {
        GroupInstant(nanoseconds: 0) + Nanoseconds(seconds: seconds)
    }

    @Test func `it holds the last five minutes, a point a second, whatever comes`() {
        var history = SyncHistory()
        for half in 0..<2_000 {
            history.note(
                error: .microseconds(Int64(half)), bound: .microseconds(Int64(2 * half)),
                at: instant(Double(half) / 2))
        }
        let points = history.points(at: instant(999))
        #expect(points.count == SyncHistory.capacity)
        // Each second's first report: 1998 is the last, 299 s before it the first.
        #expect(points.map(\.error) == (0..<300).map { Float(1_400 + 2 * $0) })
        #expect(points.allSatisfy { $0.bound == 2 * $0.error })
        #expect(points.map(\.age) == (0..<300).map { Float(299 - $0) })
    }

    @Test func `what is older than five minutes is not told, and a silence stays a hole`() {
        var history = SyncHistory()
        for second in [0, 1, 2, 30, 31] {
            history.note(error: .zero, bound: .zero, at: instant(Double(second)))
        }
        #expect(history.points(at: instant(31)).map(\.age) == [31, 30, 29, 1, 0])
        #expect(history.points(at: instant(302)).map(\.age) == [300, 272, 271])
        #expect(history.points(at: instant(10_000)).isEmpty)
    }

    @Test func `a clock that goes back does not silence it`() {
        var history = SyncHistory()
        history.note(error: .zero, bound: .zero, at: instant(100))
        history.note(error: .zero, bound: .zero, at: instant(5))
        #expect(history.points(at: instant(5)).count == 2)
    }

    /// Nearest rank: the p-th of n sorted values is number ⌈p·n/100⌉.
    @Test func `percentiles are of magnitudes, by nearest rank`() {
        let values = (1...200).map { Float($0.isMultiple(of: 2) ? $0 : -$0) }
        let spread = Spread(magnitudesOf: values.shuffled())
        #expect(spread == Spread(min: 1, p50: 100, p99: 198, max: 200))
        #expect(Spread(magnitudesOf: [-7]) == Spread(min: 7, p50: 7, p99: 7, max: 7))
        #expect(Spread(magnitudesOf: []) == nil)
    }

    @Test func `the leader keeps it over a reconnect and tells the points only when asked`() {
        var stage = Stage.playing()
        for _ in 0..<5 {
            stage.advance(by: .seconds(1))
            stage.receive(.report(`What a room promises`.report()), from: 1)
        }
        stage.hello(2, "room 1", instance: 1)
        stage.receive(.report(`What a room promises`.report(activity: .fetching)), from: 2)
        stage.now = stage.now + .milliseconds(300)
        let plain = stage.leader.status(at: stage.now).rooms.first?.sync
        #expect(plain?.history.seconds == 5)
        #expect(plain?.history.error?.max == 2)
        #expect(plain?.history.bound?.p50 == 53)
        #expect(plain?.history.errors == [])
        #expect(plain?.reportAgeSeconds == Nanoseconds.milliseconds(300).seconds)
        let full = stage.leader.status(at: stage.now, hasPoints: true).rooms.first?.sync
        #expect(full?.history.errors == [-2, -2, -2, -2, -2])
        #expect(full?.history.ages == [4.3, 3.3, 2.3, 1.3, 0.3])
        #expect(full?.parts.pathMicroseconds == 30)
        #expect(full?.parts.calibrationMicroseconds == nil)
    }

    @Test func `before its first report a room has no figures of lockstep`() {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "kitchen")
        #expect(stage.leader.status(at: stage.now).rooms.first?.sync == nil)
    }
}

@Suite struct `The promise of a group` {
    /// Two rooms that play and promise, or whatever `second` says.
    func stage(_ second: RoomReport = `What a room promises`.report()) -> Stage {
        var stage = Stage.playing(links: [1, 2])
        stage.receive(.report(`What a room promises`.report()), from: 1)
        stage.receive(.report(second), from: 2)
        return stage
    }

    func status(_ stage: Stage) -> GroupStatus { stage.leader.status(at: stage.now) }

    func obstacle(_ status: GroupStatus) -> String {
        if case .nothing(let reason) = status.promise { reason } else { "" }
    }

    @Test func `two rooms are within the sum of their bounds`() {
        guard case .within(let promised, let expected) = status(stage()).promise else {
            Issue.record("nothing is promised")
            return
        }
        #expect(promised == 106)
        // √29 µs each, in whole nanoseconds.
        #expect(abs(expected - 58.0.squareRoot()) < 0.001)
    }

    @Test func `a room that fails promises nothing, whatever its clock says`() {
        var stage = stage()
        stage.advance(by: .seconds(1), heard: [1, 2])
        stage.command(.seek(seconds: 3))
        stage.receive(
            .notReady(preparation: stage.preparations(2).last?.id ?? 0, reason: "torn"), from: 2)
        stage.receive(.report(`What a room promises`.report()), from: 1)
        stage.receive(.report(`What a room promises`.report(activity: .failed)), from: 2)
        let room = status(stage).rooms[1]
        #expect(room.state == .failed && room.detail == "torn")
        #expect(room.sync?.boundMicroseconds == nil && room.sync?.expectedMicroseconds == nil)
        #expect(room.errorMicroseconds == nil && room.sync?.parts.errorMicroseconds == nil)
        #expect(obstacle(status(stage)) == "room 2: it cannot play this item")
    }

    @Test func `a room that fails at what comes next is shown as it plays`() {
        var stage = stage()
        stage.advance(by: .seconds(1), heard: [1, 2])
        stage.command(.seek(seconds: 3))
        stage.receive(
            .notReady(preparation: stage.preparations(2).last?.id ?? 0, reason: "torn"), from: 2)
        for link in [1, 2] as [LinkID] {
            stage.receive(.report(`What a room promises`.report()), from: link)
        }
        let room = status(stage).rooms[1]
        #expect(room.state == .playing && room.detail == "torn")
        #expect(room.errorMicroseconds != nil && room.sync?.boundMicroseconds != nil)
    }

    @Test func `a room that is not heard promises nothing, and is an alarm when it is lost`() {
        var stage = stage()
        stage.now = stage.now + .milliseconds(100)
        #expect(obstacle(status(stage)).isEmpty)
        #expect(status(stage).rooms[1].sync?.clockAgeSeconds == 0.1, "as old as what it said")
        for second in 1...12 {
            stage.advance(by: .seconds(1))
            stage.receive(.report(`What a room promises`.report()), from: 1)
            let status = status(stage)
            let silent = status.rooms[1]
            let isHeard = Double(second) + 0.1 <= SyncStatus.staleSeconds
            #expect((silent.sync?.boundMicroseconds != nil) == isHeard, "after \(second) s")
            #expect((silent.errorMicroseconds != nil) == isHeard)
            #expect(silent.detail == (second < 3 ? "" : "not heard for \(second) s"))
            #expect(silent.sync?.alarm == (silent.state == .lost))
            #expect(obstacle(status) == (isHeard ? "" : "room 2: not heard for \(second) s"))
        }
        #expect(status(stage).rooms[1].state == .lost)
        let told = stage.effects.compactMap {
            if case .news(let news, let room) = $0, room.name == "room 2" { news } else { nil }
        }
        #expect(told == [.joined, .lost])
    }

    @Test(arguments: RoomActivity.allCases)
    func `who cannot sound promises nothing, and only what sounds has an error`(
        activity: RoomActivity
    ) {
        // Only the leader says that a room is lost, and it hears this one.
        guard activity != .lost else { return }
        let status = status(stage(`What a room promises`.report(activity: activity)))
        let room = status.rooms[1]
        let canSound = [.idle, .ready, .playing, .paused].contains(activity)
        #expect((room.sync?.boundMicroseconds != nil) == canSound)
        #expect(room.promiseObstacle == nil || !canSound)
        #expect((room.errorMicroseconds != nil) == (activity == .playing))
    }

    @Test func `a clock that stood still promises nothing until it is measured`() {
        let stopped = status(stage(`What a room promises`.report(clock: .seconds(3_600))))
        #expect(stopped.rooms[1].sync?.boundMicroseconds == nil)
        #expect(obstacle(stopped).contains("stood still"))
        #expect(stopped.rooms[1].sync?.history.seconds == 0, "no point of the history")
    }

    @Test func `without a clock nobody knows an error, and nothing is zero`() {
        let room = status(stage(`What a room promises`.report(quality: .none))).rooms[1]
        #expect(room.errorMicroseconds == nil && room.clockBoundMicroseconds == nil)
        #expect(room.clockOffsetMicroseconds == nil)
        #expect(room.sync?.parts.clockMicroseconds == nil)
        #expect(room.sync?.parts.cardMicroseconds == 11)
        #expect(room.promiseObstacle == "the clock is not known")
        let blind = status(stage(`What a room promises`.report(card: nil)))
        #expect(obstacle(blind) == "room 2: the position of the card is not known")
    }

    @Test func `the leader's log hears of alarms and failures once`() {
        var stage = stage()
        var loud = `What a room promises`.report()
        loud.sync.isAlarming = true
        // A promise that is missing for a moment is no end of the alarm, and no other one begins.
        var acquiring = `What a room promises`.report(quality: .acquiring)
        acquiring.sync.isAlarming = false
        let silent = `What a room promises`.report(quality: .none)
        // A room at rest judges nothing: its bound is as wide as it was.
        var resting = `What a room promises`.report(clock: .milliseconds(2))
        resting.sync.isAlarming = false
        let reports = [loud, acquiring, silent, resting, loud, `What a room promises`.report()]
        for report in reports {
            stage.receive(.report(report), from: 1)
        }
        stage.command(.seek(seconds: 3))
        let id = stage.preparations(1).last?.id ?? 0
        for _ in 0..<2 { stage.receive(.notReady(preparation: id, reason: "torn"), from: 1) }
        stage.receive(.goodbye, from: 1)
        stage.close(2)
        let news = stage.effects.compactMap {
            if case .news(let news, _) = $0 { news } else { nil }
        }
        #expect(
            news == [
                .joined, .joined, .alarm(true, bound: .microseconds(53)),
                .alarm(false, bound: .microseconds(53)), .failed(reason: "torn"), .left, .left,
            ])
    }
}

@Suite struct `News of rooms` {
    @Test func `a card that goes and comes back is said once each`() {
        var stage = Stage.playing(configuration(rooms: 1))
        var lost = stage.report
        lost.isCardLost = true
        for report in [lost, lost, stage.report, stage.report] {
            stage.receive(.report(report), from: 1)
        }
        let news = stage.effects.compactMap {
            if case .news(.card(let isLost), _) = $0 { isLost } else { nil }
        }
        #expect(news == [true, false])
    }

    @Test func `what a node's own room has said itself the leader does not say again`() {
        var configuration = configuration(rooms: 1)
        configuration.ownInstance = 1
        var stage = Stage.playing(configuration, links: [1, 2])
        var loud = `What a room promises`.report()
        loud.sync.isAlarming = true
        for link in [1, 2] { stage.receive(.report(loud), from: link) }
        let alarmed = stage.effects.compactMap {
            if case .news(.alarm, let name) = $0 { name } else { nil }
        }
        #expect(alarmed == [room("room 2")])
    }

    @Test func `the same of one room passes once a second, and of all no more than some`() {
        var filter = NewsFilter()
        let start = GroupInstant(nanoseconds: 0)
        func admits(_ news: RoomNews, _ name: String, after seconds: Int64 = 0) -> Bool {
            filter.admits(news, of: room(name), at: start + .seconds(seconds))
        }
        #expect(admits(.failed(reason: "torn"), "a"))
        #expect(admits(.failed(reason: "worn"), "a") == false)
        #expect(admits(.left, "a"))
        #expect(admits(.failed(reason: "torn"), "b"))
        #expect(admits(.failed(reason: "torn"), "a", after: 1))
        let passed = (0..<1_000).count { admits(.joined, "room \($0)", after: 9) }
        #expect(passed == NewsFilter.most)
        #expect(admits(.joined, "late", after: 10))
    }
}
