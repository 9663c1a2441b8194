import Testing
import TuttiTiming

@testable import TuttiClockSync

/// A node that led until now follows, from where its own clock is.
@Suite struct ContinuedLineTests {
    private let start = LocalInstant(nanoseconds: 7_000_000_000)

    private var known: SharedClock {
        SharedClock(
            map: ClockMap(
                from: start, to: GroupInstant(nanoseconds: 90_000_000_000), skew: 3e-6),
            uncertainty: .microseconds(20), estimatedAt: start, epoch: 3, quality: .locked)
    }

    private func follower() -> ClockFollower {
        ClockFollower(start: start, seed: 1, continuing: known, stored: .continuing(known))
    }

    @Test func `what plays plays on by it before anybody has answered`() throws {
        let follower = follower()
        for ahead in [Nanoseconds.zero, .milliseconds(300), .seconds(20)] {
            let clock = try #require(follower.sharedClock(at: start + ahead))
            #expect(clock.quality.isPlayable)
            #expect(clock.map(start + ahead) == known.map(start + ahead))
            #expect(clock.epoch == known.epoch)
            #expect(clock.uncertainty >= known.uncertainty)
        }
    }

    /// The leader's clock is 8 µs ahead of what is known of it here.
    @Test func `it leans to what the next leader says, and is never set`() throws {
        var follower = follower()
        let ahead = Nanoseconds.microseconds(8)
        var before = try #require(follower.sharedClock(at: start))
        var now = start
        while now < start + .seconds(12) {
            now = max(now, follower.nextDeadline)
            for effect in follower.advance(to: now) {
                guard case .send(let request) = effect else { continue }
                _ = follower.transmitted(sequence: request.sequence, at: now, now: now)
                let there = now + .microseconds(60)
                let back = there + .microseconds(60)
                let reply = TimeReply(
                    sequence: request.sequence, epoch: 77, t1: request.t1,
                    t2: known.map(there) + ahead, t3: known.map(there) + ahead, stamps: .kernel,
                    previous: nil)
                _ = follower.receive(reply, t4: back, isKernelStamp: true, at: back)
                now = back
            }
            let clock = try #require(follower.sharedClock(at: now))
            // Each lean is anchored at a whole nanosecond.
            #expect((clock.map(now) - before.map(now)).magnitude <= Nanoseconds(5))
            #expect(clock.epoch == known.epoch)
            before = clock
        }
        #expect(before.quality == .locked)
        #expect((before.map(now) - known.map(now) - ahead).magnitude < .microseconds(1))
    }
}
