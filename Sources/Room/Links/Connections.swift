import NIOCore
import NIOPosix
import TuttiLinuxHost

/// The threads that serve a node's TCP connections.
public enum Connections {
    /// One instead of one per core: messages are few, and assets are read by other threads. Before
    /// the first connection of the process.
    public static func useOneThread() { NIOSingletons.groupLoopCountSuggestion = 1 }
}

extension OpenFiles {
    /// Sees to it that a node can begin, and does not die when there are none left later; before the
    /// first connection.
    ///
    /// - Parameter count: wanted.
    /// - Throws: `RoomError` with code `noFiles` where there are too few for the threads that serve
    ///   connections, which end the process without.
    static func claim(_ count: Int) async throws(RoomError) {
        let allowed = allow(count)
        guard allowed >= least else {
            throw RoomError(
                .noFiles,
                "this process may have only \(allowed) files open, and a node needs \(least): raise the limit (ulimit -n, or LimitNOFILE= in the unit)"
            )
        }
        await openTimers()
    }
}
