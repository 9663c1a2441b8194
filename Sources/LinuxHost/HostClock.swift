import CTuttiLinux
import Glibc
public import TuttiTiming

/// The clock of this machine.
///
/// Local time is CLOCK_MONOTONIC_RAW: the crystal as it is. CLOCK_MONOTONIC is slewed by the time
/// daemon (chrony may by thousands of ppm), and a clock that somebody else steers cannot be
/// compared with another machine's. The kernel cannot sleep on RAW (ENOTSUP), so a wait is
/// converted to MONOTONIC at the moment it begins.
public enum HostClock {
    /// Local time now. About 50 ns; no lock; never fails.
    @inline(__always)
    public static func now() -> LocalInstant {
        LocalInstant(nanoseconds: read(CLOCK_MONOTONIC_RAW))
    }

    /// Waits until local time has reached `instant`; returns at once when it has.
    ///
    /// Late by the scheduler's latency (some µs with SCHED_FIFO), never early. A signal does not
    /// end the wait. Blocks the thread.
    public static func sleep(until instant: LocalInstant) {
        // The two clocks differ by the daemon's slew, so a wake-up may come early; then the rest
        // is waited for, and it is a thousand times shorter.
        while true {
            let remaining = instant - now()
            guard remaining > .zero else { return }
            let wake = read(CLOCK_MONOTONIC).adding(saturating: remaining.count)
            var time = timespec(
                tv_sec: Int(wake / 1_000_000_000), tv_nsec: Int(wake % 1_000_000_000))
            let code = unsafe clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil)
            precondition(code == 0 || code == EINTR, "clock_nanosleep(\(wake)) gave \(code)")
        }
    }

    /// How long the machine has been suspended since it was started; grows by a suspend only.
    ///
    /// Local time stands still while suspended, the leader's does not: whoever keeps a relation to
    /// another machine's clock compares two of these and starts anew when they differ by more than
    /// ``suspendThreshold``.
    public static func suspendedTime() -> Nanoseconds {
        // MONOTONIC is read on both sides so that a preemption between the reads is not a suspend.
        let before = read(CLOCK_MONOTONIC)
        let boot = read(CLOCK_BOOTTIME)
        let after = read(CLOCK_MONOTONIC)
        return Nanoseconds(boot - (before + (after - before) / 2))
    }

    /// Two ``suspendedTime()`` differ by less than this while awake. Half the time between two
    /// clock reads, which a busy host can stretch to tens of ms; a suspend lasts longer.
    public static let suspendThreshold = Nanoseconds.milliseconds(200)

    /// Any clock of the kernel, in nanoseconds since its own epoch.
    @inline(__always)
    static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        let code = unsafe clock_gettime(clock, &time)
        precondition(code == 0, "clock_gettime(\(clock)) gave \(code)")
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
