import LinuxHost
import Room

/// Runs a leader or a follower, with a process to itself.
///
/// What concerns the process as a whole is not decided by the library, which may live in somebody
/// else's: one thread for connections, and memory that is let go of when a start, the opening of an
/// item or a seek has left it behind.
func runningNode(_ body: () async throws -> Void) async throws {
    ResidentMemory.mapLargeBlocks()
    Connections.useOneThread()
    // A node that gets no thread for it plays all the same, and only holds more memory.
    let keeper = try? ResidentMemory.Keeper()
    defer { keeper?.stop() }
    try await body()
}

/// Time after which a node that is told to end has ended, under two seconds: what it still has to
/// say and to close takes a tenth of it.
let millisecondsToEndNode = 1_700
