import Synchronization
import TuttiLinuxHost
import TuttiRoom
import TuttiTiming

/// Runs a leader or a follower, with a process to itself.
///
/// What concerns the process as a whole is not decided by the library, which may live in somebody
/// else's: one thread for connections, and memory that is let go of when a start, the opening of an
/// item or a seek has left it behind.
///
/// The service manager hears that the process is alive from a task like those of the node: where these
/// stand still, so does it.
///
/// - Parameter body: given what is to be called when the node is ready.
func runningNode(_ body: (@escaping @Sendable () -> Void) async throws -> Void) async throws {
    ResidentMemory.mapLargeBlocks()
    Connections.useOneThread()
    // A node that gets no thread for it plays all the same, and only holds more memory.
    let keeper = try? ResidentMemory.Keeper()
    defer { keeper?.stop() }
    let manager = ServiceManager()
    let alive = manager.interval.map { interval in
        Task {
            while !Task.isCancelled {
                manager.tell(.alive)
                try await Task.sleep(for: .nanoseconds(interval.count))
            }
        }
    }
    defer {
        alive?.cancel()
        manager.tell(.stopping)
    }
    try await body { manager.tell(.ready) }
}

/// Time after which a node that is told to end has ended, under two seconds: what it still has to
/// say and to close takes a tenth of it.
let millisecondsToEndNode = 1_700

/// What is called when a node is ready that was made before.
final class Ready: Sendable {
    private let called = Mutex<@Sendable () -> Void>({})

    func take(_ call: @escaping @Sendable () -> Void) { called.withLock { $0 = call } }

    func tell() { called.withLock { $0 }() }
}
