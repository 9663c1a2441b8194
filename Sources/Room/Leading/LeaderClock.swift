import LinuxHost
import Playout
import RealTime
import Synchronization
import Timing

/// The group clock of a leader: its machine's own clock, and what that missed while the machine
/// slept.
///
/// Local time stands still in a suspend. The rooms play on meanwhile, by the line as it ran, so the
/// group's time must go on too: a leader that wakes is then where they are, instead of taking them
/// back to where it fell asleep. How long it slept is known as well as the kernel knows it
/// (CLOCK_BOOTTIME): by a clock that counted through it, at that clock's rate, or else by one of
/// whole seconds (timekeeping_resume in the kernel's timekeeping.c). What is wrong by that is for
/// the rooms a clock that jumped, by so much less.
final class LeaderClock: Sendable {
    /// What the leader's own room plays by.
    let cell: ClockCell
    private let epoch: UInt64
    private let suspendedTime: @Sendable () -> Nanoseconds
    /// ``HostClock/suspendedTime()`` at the start, and how much more it was when it grew last.
    private let slept: Mutex<(before: Nanoseconds, missed: Nanoseconds)>

    init(
        epoch: UInt64,
        suspendedTime: @escaping @Sendable () -> Nanoseconds = HostClock.suspendedTime
    ) {
        self.epoch = epoch
        self.suspendedTime = suspendedTime
        slept = Mutex((Self.median(suspendedTime), .zero))
        cell = ClockCell(Self.clock(epoch, missed: .zero))
    }

    /// The clock as it is now. Any thread; never waits: who comes while another looks whether the
    /// machine slept takes what was known before.
    func current() -> SharedClock {
        let suspended = suspendedTime()
        slept.withLockIfAvailable { slept in
            let more = suspended - slept.before - slept.missed
            guard more > HostClock.suspendThreshold else { return }
            slept.missed = Self.median(suspendedTime) - slept.before
            cell.store(Self.clock(epoch, missed: slept.missed))
        }
        return cell.load()
    }

    func groupNow() -> GroupInstant { current().map(HostClock.now()) }

    /// When the group's time is `instant`, if the machine does not sleep until then.
    func local(_ instant: GroupInstant) -> LocalInstant { cell.load().map.inverted(instant) }

    /// Of a few readings: one that was held up is off by half of that.
    private static func median(_ read: () -> Nanoseconds) -> Nanoseconds {
        (0..<5).map { _ in read() }.sorted()[2]
    }

    private static func clock(_ epoch: UInt64, missed: Nanoseconds) -> SharedClock {
        var clock = SharedClock.own(at: LocalInstant(nanoseconds: 0), epoch: epoch)
        clock.map.toAnchor += missed
        return clock
    }
}
