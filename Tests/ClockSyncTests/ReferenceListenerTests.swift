import Testing
import TuttiTiming

@testable import TuttiClockSync

@Suite struct ReferenceListenerTests {
    /// A room that joins does not know its skew yet. What it was told then must not be carried on
    /// along the wrong slope when nothing more is told.
    @Test func `a correction that nobody renews does not run away`() {
        var listener = ReferenceListener()
        listener.setRefusal(nil)
        var now = LocalInstant(nanoseconds: 5_000)
        func line(skew: Double) -> ClockMap<LocalClock, GroupClock> {
            ClockMap(from: now, to: GroupInstant(nanoseconds: 7_000_000_000), skew: skew)
        }
        func clock(_ map: ClockMap<LocalClock, GroupClock>) -> SharedClock {
            SharedClock(
                map: map, uncertainty: .milliseconds(1), estimatedAt: now, epoch: 1,
                quality: .locked)
        }
        let said = line(skew: 40e-6)
        _ = listener.report(
            at: now, sequence: 1, clock(said), skew: 40e-6, error: .microseconds(20))
        let correction = Nanoseconds.microseconds(10)
        listener.take(
            ReferenceVerdict(state: .inUse, rooms: 3, correction: correction, share: 0.9),
            sequence: 1, isNeeded: true, at: now)
        // The true skew is 10 ppm; the filter finds that within seconds, the two-way line does not
        // err.
        let start = now
        for step in 1...120 {
            let elapsed = Nanoseconds.milliseconds(500 * Int64(step))
            now = start + elapsed
            let wrong = 30e-6 / Double(step)
            let twoWay = ClockMap<LocalClock, GroupClock>(
                from: now, to: said.toAnchor + elapsed + Nanoseconds(elapsed.count / 100_000),
                skew: 10e-6 + wrong)
            listener.aim(
                at: now, twoWay, skew: StoredSkew(skew: 10e-6 + wrong, deviation: wrong),
                error: .microseconds(20), limit: .milliseconds(10), maySet: false)
            let published = listener.corrected(clock(twoWay), at: now).map
            let applied = published(now) - twoWay(now)
            // The cluster's line errs by half a second of 30 ppm, and so does the published one.
            let most = correction + .microseconds(30)
            #expect(applied.magnitude <= most, "after \(step / 2) s: \(applied)")
            guard step > 60 else { continue }
            let limit = correction + .microseconds(1)
            #expect(applied.magnitude <= limit, "after \(step / 2) s: \(applied)")
        }
    }
}
