import NIOCore
import Synchronization
import TuttiLinuxHost
import TuttiTiming

/// Wakes the owner of a pure machine when the machine's next deadline has come.
final class Alarm: Sendable {
    /// One element when the time set last has come; set times that were replaced are silent.
    let rings: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let pending = Mutex<(deadline: LocalInstant, timer: Scheduled<Void>)?>(nil)
    private let eventLoop: any EventLoop = LoopExecutor.shared.loop

    init() {
        (rings, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Rings once at `deadline`, at once if it is past; `nil` cancels.
    func set(_ deadline: LocalInstant?) {
        pending.withLock { pending in
            guard pending?.deadline != deadline else { return }
            pending?.timer.cancel()
            pending = deadline.map { deadline in
                let wait = max(.zero, deadline - HostClock.now())
                let timer = eventLoop.scheduleTask(in: .nanoseconds(wait.count)) {
                    self.ring()
                }
                return (deadline, timer)
            }
        }
    }

    private func ring() {
        pending.withLock { $0 = nil }
        continuation.yield(())
    }

    /// Ends `rings`.
    func finish() {
        set(nil)
        continuation.finish()
    }
}
