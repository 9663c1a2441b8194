import CTuttiTap
import Foundation
import Glibc
import Synchronization
import TuttiLinuxHost
import TuttiTiming

/// Whether this machine did not let threads of the highest standing run.
///
/// A virtual machine whose host has other work stands still for a tenth of a second now and then, one
/// processor or all, and every card on it runs dry then, as it would on a machine that is switched off.
/// What was heard meanwhile says nothing of the program. It is found out without asking the program: by
/// threads above all of its own, one on each processor, that want to wake every few milliseconds.
final class Stalls: Sendable {
    /// Half of what a card holds.
    static let most = Nanoseconds.milliseconds(40)
    /// A machine that always stands still is judged as it is.
    static let mostRepeats = 2
    private static let interval = Nanoseconds.milliseconds(5)
    /// Above those of a room.
    private static let priority: Int32 = 60

    private struct State {
        var longest = Nanoseconds.zero
        var isOver = false
    }
    private let state = Mutex(State())

    /// Begins to watch. Without the right to such threads it sees nothing.
    init() {
        for processor in 0..<max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
            Thread { [self] in watch(processor) }.start()
        }
    }

    /// Ends it.
    ///
    /// - Returns: how late such a thread woke at most.
    func end() -> Nanoseconds {
        state.withLock {
            $0.isOver = true
            return $0.longest
        }
    }

    private func watch(_ processor: Int) {
        var parameters = sched_param(sched_priority: Self.priority)
        guard stayOnProcessor(Int32(processor)) == 0,
            sched_setscheduler(0, SCHED_FIFO, &parameters) == 0
        else { return }
        while !state.withLock({ $0.isOver }) {
            let due = HostClock.now() + Self.interval
            HostClock.sleep(until: due)
            let late = HostClock.now() - due
            state.withLock { $0.longest = max($0.longest, late) }
        }
    }
}

/// What a session gave; one during which the machine stood still is played again, whatever came of it.
func undisturbed<Value>(_ session: () throws -> Value) throws -> Value {
    for _ in 0..<Stalls.mostRepeats {
        let stalls = Stalls()
        let result = Result { try session() }
        let longest = stalls.end()
        if longest <= Stalls.most { return try result.get() }
        print(
            "the machine stood still for \(longest.count / 1_000_000) ms; the session is played again"
        )
    }
    return try session()
}
