import Dispatch
import Glibc
import Synchronization

/// Runs `body` until it ends, or until Ctrl-C or SIGTERM cancels it.
///
/// A first signal cancels the task, so that rooms say goodbye, recordings are closed and the cursor
/// comes back; this counts as success: it is how such a command is meant to end. A second one ends
/// the process at once.
///
/// - Parameter alsoWhenParentEnds: a process that a demo started ends with it: its standard input
///   is a pipe that nobody writes to, and the kernel closes the other end whatever the parent dies
///   of. (PR_SET_PDEATHSIG would watch the parent's thread instead of the parent.)
/// - Parameter millisecondsToEnd: what is still busy so long after the first signal is ended by the
///   kernel's clock, which no queue of ours can hold up; 0 waits.
/// - Returns: what `body` returned; `nil` when it was interrupted.
@discardableResult
func untilInterrupted<Value: Sendable>(
    alsoWhenParentEnds: Bool = false, millisecondsToEnd: Int = 0,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    let (signals, continuation) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let order = SignalOrder()
    let sources = [SIGINT, SIGTERM, SIGHUP].map { number in
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: signalQueue)
        source.setEventHandler {
            if order.isLater() {
                TerminalMode.shared.restore()
                _exit(130)
            }
            endAfter(milliseconds: millisecondsToEnd)
            continuation.yield()
        }
        source.activate()
        return source
    }
    if alsoWhenParentEnds {
        watchStandardInput {
            endAfter(milliseconds: millisecondsToEnd)
            continuation.yield()
        }
    }
    defer { for source in sources { source.cancel() } }

    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            for await _ in signals { return nil }
            // The stream ends only because the other child is done and cancelled this one.
            return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next() else { return nil }
        if let first { return first }
        // Interrupted: let the body tidy up. How it ends does not matter any more.
        group.cancelAll()
        _ = try? await group.next()
        return nil
    }
}

/// Ends the process after this, whatever its threads do: a service manager would kill it after its
/// own patience.
private func endAfter(milliseconds: Int) {
    guard milliseconds > 0 else { return }
    // Status 0: a command that is told to end is meant to end so.
    signal(SIGALRM) { _ in _exit(0) }
    var timer = itimerval()
    timer.it_value = timeval(
        tv_sec: milliseconds / 1_000, tv_usec: suseconds_t(milliseconds % 1_000 * 1_000))
    setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil)
}

private let signalQueue = DispatchQueue(label: "tutti.signals")

/// Tells the first signal from the later ones.
private final class SignalOrder: Sendable {
    private let count = Atomic<Int>(0)
    func isLater() -> Bool { count.add(1, ordering: .relaxed).newValue > 1 }
}

/// Calls `ended` once standard input has been closed from the other side.
private func watchStandardInput(_ ended: @escaping @Sendable () -> Void) {
    let queue = DispatchQueue(label: "tutti.parent")
    queue.async {
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count == 0 || (count < 0 && errno != EINTR) { return ended() }
        }
    }
}
