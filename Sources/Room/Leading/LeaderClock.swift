import Synchronization
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The group clock of a leader: a line over its machine's own clock, and what that missed while the
/// machine slept.
///
/// The first leader of a group begins it at its own clock, number for number. Every later one goes on
/// from what it knows of it: the group's time is never set, whoever leads.
///
/// Local time stands still in a suspend. The rooms play on meanwhile, by the line as it ran, so the
/// group's time must go on too: a leader that wakes is then where they are, instead of taking them
/// back to where it fell asleep. How long it slept is known as well as the kernel knows it
/// (CLOCK_BOOTTIME): by a clock that counted through it, at that clock's rate, or else by one of
/// whole seconds (timekeeping_resume in the kernel's timekeeping.c). What is wrong by that is for
/// the rooms a clock that jumped, by so much less.
final class LeaderClock: Sendable {
    private struct Sleep {
        /// ``HostClock/suspendedTime()`` at the start, and how much more it was when it grew last.
        var before: Nanoseconds
        var missed = Nanoseconds.zero
        /// The leader's own room plays by ``cell``.
        var isPlayedBy = true
    }

    /// What the leader's own room plays by.
    let cell: ClockCell
    /// The clock as it is told to others.
    private let told: ClockCell
    private let line: SharedClock
    private let suspendedTime: @Sendable () -> Nanoseconds
    private let slept: Mutex<Sleep>

    /// The clock of the first leader.
    convenience init(
        epoch: UInt64,
        suspendedTime: @escaping @Sendable () -> Nanoseconds = HostClock.suspendedTime
    ) {
        let line = SharedClock.own(at: LocalInstant(nanoseconds: 0), epoch: epoch)
        self.init(line, in: ClockCell(line), suspendedTime: suspendedTime)
    }

    /// The clock of a leader that continues the one before.
    ///
    /// - Parameters:
    ///   - line: as ``SharedClock/continuing(_:at:skew:epoch:)`` gives it.
    ///   - cell: what the node's room plays by; nobody else writes to it any more.
    init(
        _ line: SharedClock, in cell: ClockCell,
        suspendedTime: @escaping @Sendable () -> Nanoseconds = HostClock.suspendedTime
    ) {
        self.line = line
        self.cell = cell
        self.suspendedTime = suspendedTime
        told = ClockCell(line)
        slept = Mutex(Sleep(before: Self.median(suspendedTime)))
        cell.store(line)
    }

    /// The clock as it is now. Any thread; never waits: who comes while another looks whether the
    /// machine slept takes what was known before.
    func current() -> SharedClock {
        let suspended = suspendedTime()
        slept.withLockIfAvailable { slept in
            let more = suspended - slept.before - slept.missed
            guard more > HostClock.suspendThreshold else { return }
            slept.missed = Self.median(suspendedTime) - slept.before
            var clock = line
            clock.map.toAnchor += slept.missed
            told.store(clock)
            if slept.isPlayedBy { cell.store(clock) }
        }
        return told.load()
    }

    /// The room plays by another clock from now on, and goes on where this one is: its cell is not
    /// written to any more. Others may still ask for the time.
    func release() -> SharedClock {
        let clock = current()
        slept.withLock { $0.isPlayedBy = false }
        return clock
    }

    func groupNow() -> GroupInstant { current().map(HostClock.now()) }

    /// When the group's time is `instant`, if the machine does not sleep until then.
    func local(_ instant: GroupInstant) -> LocalInstant { told.load().map.inverted(instant) }

    /// Of a few readings: one that was held up is off by half of that.
    private static func median(_ read: () -> Nanoseconds) -> Nanoseconds {
        (0..<5).map { _ in read() }.sorted()[2]
    }
}
