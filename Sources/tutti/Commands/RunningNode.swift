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
    // Where there can be no thread for it, memory is what suffers.
    let keeper = try? ResidentMemory.Keeper()
    defer { keeper?.stop() }
    try await body()
}

/// A node that is told to end has ended by then, under two seconds: what it says at last, and closes,
/// takes a tenth of that.
let millisecondsToEndNode = 1_700
