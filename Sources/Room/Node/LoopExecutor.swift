import NIOCore
import NIOPosix
import TuttiLinuxHost
import TuttiTiming

/// Runs tasks on the thread that serves the connections.
///
/// Nearly everything that a node's tasks do begins with a message or a timer, and ends with a
/// message. On the cooperative pool each of these steps wakes another thread, and waking up is what
/// a room at rest spends most of its time with: a report a second was ten wake-ups. On the
/// connections' own thread it is one.
///
/// So nothing that runs here may wait: decoding, files and names have threads of their own.
final class LoopExecutor: TaskExecutor {
    let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Of the first thread of the process that serves connections.
    static let shared = LoopExecutor(MultiThreadedEventLoopGroup.singleton.next())

    /// Returns after `span`, or at once when the task is cancelled.
    ///
    /// `Task.sleep` costs three wake-ups: of the timer's thread and of two of the pool.
    func sleep(for span: Nanoseconds) async {
        let timer = loop.scheduleTask(in: .nanoseconds(max(0, span.count))) {}
        await withTaskCancellationHandler {
            try? await timer.futureResult.get()
        } onCancel: {
            timer.cancel()
        }
    }
}

/// Runs `body`, its child tasks and the actors that they call on the thread of the connections.
func onConnectionThread<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    try await withTaskExecutorPreference(LoopExecutor.shared) { try await body() }
}
