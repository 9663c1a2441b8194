import Synchronization
package import TuttiTrust

/// Tags of datagrams that a clock's thread and their owner have together: the thread opens and seals,
/// the owner tells of keys and links.
///
/// Each has them for a microsecond or two; a new key takes some tens, and comes when a member is removed.
/// The kernel lends the thread's priority to whoever holds the lock.
package final class SharedTags<Tags: Sendable>: Sendable {
    private let tags: Mutex<Tags>

    package init(_ tags: Tags) { self.tags = Mutex(tags) }

    package func callAsFunction<Result: Sendable, Failure: Error>(
        _ body: (inout Tags) throws(Failure) -> sending Result
    ) throws(Failure) -> Result {
        try tags.withLock { tags throws(Failure) in try body(&tags) }
    }
}

/// A leader's, shared with its ``TimeService``.
package typealias SharedLeaderTags = SharedTags<LeaderTags>

/// A room's, shared with its ``ClockClient``.
package typealias SharedRoomTags = SharedTags<RoomTags>
