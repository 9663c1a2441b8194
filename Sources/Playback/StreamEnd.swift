import Dispatch

extension AsyncStream.Continuation {
    /// Runs `body` once nobody listens any more.
    ///
    /// Not on the thread that cancels: that one holds the lock of the task that listened. Whoever
    /// tells this task something at the same moment waits for it, with the lock in hand that `body`
    /// takes.
    func whenLeft(_ body: @escaping @Sendable () -> Void) {
        onTermination = { _ in DispatchQueue.global().async(execute: body) }
    }
}
