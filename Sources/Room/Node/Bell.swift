import NIOCore
import Synchronization
import TuttiTiming

/// Wakes whoever waits for something to change; nobody has to look again and again.
///
/// A change has a number: who has seen one and waits for the next misses none in between.
final class Bell: Sendable {
    private struct State {
        var changes = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextWaiter = 0
    }
    private let state = Mutex(State())

    /// The number of the latest change.
    var changes: Int { state.withLock { $0.changes } }

    func ring() {
        let waiters = state.withLock { state in
            state.changes += 1
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when there was a change after `number`, when `span` is over, or when the task is
    /// cancelled.
    func wait(after number: Int, within span: Nanoseconds? = nil) async {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        var timer: Scheduled<Void>?
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    guard state.changes == number, !Task.isCancelled else { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isDue { return continuation.resume() }
                // Not before there is somebody to wake.
                timer = span.map { span in
                    LoopExecutor.shared.loop.scheduleTask(in: .nanoseconds(max(0, span.count))) {
                        self.release(id)
                    }
                }
            }
        } onCancel: {
            release(id)
        }
        timer?.cancel()
    }

    private func release(_ id: Int) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
}
