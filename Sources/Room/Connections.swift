import NIOCore
import NIOPosix

/// The threads that serve a node's TCP connections.
public enum Connections {
    /// One instead of one per core: messages are few, and assets are read by other threads. Before
    /// the first connection of the process.
    public static func useOneThread() { NIOSingletons.groupLoopCountSuggestion = 1 }
}
