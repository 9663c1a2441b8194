import LinuxHost
import Synchronization
import Testing
import Timing

@testable import Room

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
}
