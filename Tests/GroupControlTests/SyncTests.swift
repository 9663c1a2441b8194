import Testing
import Timing

@testable import GroupControl

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

    @Test func `absurd figures of a peer give an absurd bound and no crash`() {
        let wild = Self.report(
            error: Nanoseconds(.min), clock: Nanoseconds(.max), path: Nanoseconds(.min),
            card: Nanoseconds(.max))
        #expect(wild.bound == Nanoseconds(.max))
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
        #expect(history.count == SyncHistory.capacity)
        // Each second's first report: 1998 is the last, 299 s before it the first.
        #expect(history.errors.last == 1_998)
        #expect(history.errors.first == Float(1_998 - 2 * 299))
        #expect(history.bounds == history.errors.map { 2 * $0 })
        #expect(zip(history.errors, history.errors.dropFirst()).allSatisfy { $1 - $0 == 2 })
    }

    @Test func `a clock that goes back does not silence it`() {
        var history = SyncHistory()
        history.note(error: .zero, bound: .zero, at: instant(100))
        history.note(error: .zero, bound: .zero, at: instant(5))
        #expect(history.count == 2)
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
        #expect(full?.parts.pathMicroseconds == 30)
        #expect(full?.parts.calibrationMicroseconds == nil)
    }

    @Test func `before its first report a room has no figures of lockstep`() {
        var stage = Stage(configuration(rooms: 2))
        stage.hello(1, "kitchen")
        #expect(stage.leader.status(at: stage.now).rooms.first?.sync == nil)
    }
}
