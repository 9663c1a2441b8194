import Synchronization
import Testing
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiRoom

/// A machine cannot be put to sleep here; what the kernel would say of it is given.
@Suite struct LeaderClockTests {
    private final class Kernel: Sendable {
        let suspended: Mutex<Nanoseconds>

        init(_ suspended: Nanoseconds) { self.suspended = Mutex(suspended) }
    }

    @Test func `the group's time goes on while the leader sleeps, and only then`() {
        // It has slept before it led.
        let kernel = Kernel(.seconds(7_000))
        let clock = LeaderClock(epoch: 5) { kernel.suspended.withLock { $0 } }
        var expected = Nanoseconds.zero
        for (slept, isSleep) in [
            (Nanoseconds.zero, false), (.milliseconds(199), false), (.seconds(60), true),
            (.milliseconds(-150), false), (.milliseconds(20), false), (.seconds(3_600), true),
        ] {
            kernel.suspended.withLock { $0 = .seconds(7_000) + expected + slept }
            if isSleep { expected += slept }
            let before = HostClock.now()
            let now = clock.groupNow()
            let after = HostClock.now()
            // A map of rate 1: between two looks at the local clock, and as far ahead as it slept.
            #expect(now.nanoseconds >= (before + expected).nanoseconds)
            #expect(now.nanoseconds <= (after + expected).nanoseconds)
            #expect(clock.current().epoch == 5)
            #expect(clock.local(now) >= before && clock.local(now) <= after)
        }
    }

    @Test func `a leader that continues another's clock goes on with its line and its rate`() {
        let kernel = Kernel(.zero)
        let now = HostClock.now()
        let map = ClockMap<LocalClock, GroupClock>(
            from: now, to: GroupInstant(nanoseconds: 5_000_000_000_000), skew: 40e-6)
        let known = SharedClock(
            map: map, uncertainty: .microseconds(30), estimatedAt: now, epoch: 3, quality: .locked)
        let cell = ClockCell(known)
        let clock = LeaderClock(
            .continuing(known, at: now + .seconds(1), skew: 40e-6, epoch: 4), in: cell
        ) { kernel.suspended.withLock { $0 } }
        for ahead in [Nanoseconds.zero, .seconds(1), .seconds(3_600)] {
            let error = clock.current().map(now + ahead) - map(now + ahead)
            #expect(error.magnitude <= Nanoseconds(1))
            #expect(cell.load().map == clock.current().map)
        }
        #expect(clock.current().epoch == 4)
        #expect(clock.current().quality == .locked)

        // Whoever plays by another clock from now on is left alone; others are still told the time.
        let last = clock.release()
        kernel.suspended.withLock { $0 = .seconds(60) }
        #expect(clock.current().map.toAnchor - last.map.toAnchor == .seconds(60))
        #expect(cell.load() == last)
    }
}
