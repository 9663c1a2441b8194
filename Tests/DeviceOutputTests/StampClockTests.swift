import Glibc
import Testing
import TuttiLinuxHost
import TuttiTiming

@testable import TuttiDeviceOutput

/// Drivers that stamp with another clock than ours: old ones know MONOTONIC only.
@Suite struct StampClockTests {
    private func read(_ clock: StampClock) -> timespec {
        var time = timespec()
        let id =
            switch clock {
            case .raw: CLOCK_MONOTONIC_RAW
            case .monotonic: CLOCK_MONOTONIC
            case .realTime: CLOCK_REALTIME
            }
        unsafe clock_gettime(id, &time)
        return time
    }

    @Test(arguments: StampClock.allCases)
    func `a stamp of any clock is found on ours`(clock: StampClock) {
        let before = HostClock.now()
        let stamp = read(clock)
        let after = HostClock.now()
        let instant = clock.localInstant(of: stamp)
        // The translation is off by half of its own duration at most.
        let spent = HostClock.now() - after
        #expect(instant >= before - spent && instant <= after + spent)
    }

    /// The two others may lie close together, wall time lies decades away from both.
    @Test(arguments: StampClock.allCases)
    func `a driver that stamps with wall time is found out whatever it says`(declared: StampClock) {
        #expect(declared.confirmed(by: read(.realTime)) == .realTime)
    }

    @Test func `a stamp of another age is none`() {
        var old = read(.realTime)
        old.tv_sec -= 3_600
        #expect(StampClock.realTime.confirmed(by: old) == nil)
    }
}
