public import TuttiGroupControl

/// A group as whoever steers it sees it: its state, its queue, and commands.
///
/// The same in the process of the leader and over the network. Errors are the implementation's; one
/// that refuses a command gives one sentence that says why, and what to do instead.
public protocol GroupControlling: Sendable {
    /// The group as the leader sees it now.
    ///
    /// - Parameter hasPoints: with every point of the rooms' histories; up to 3.6 kB a room.
    func status(hasPoints: Bool) async throws -> GroupStatus

    /// Gives a command. Returns when it is known what comes of it, which takes as long as the rooms
    /// take to prepare, and ``CommandEffect/longestWait`` at most.
    @discardableResult
    func perform(_ command: GroupCommand) async throws -> CommandEffect

    /// So many items of the queue from this position on; at most ``QueueListing/mostItems``.
    func queue(first: Int, count: Int) async throws -> QueueListing

    /// Puts something into the queue; returns when the leader has begun to look into it.
    func add(_ addition: QueueAddition) async throws

    /// The present state and each that follows, numbered.
    ///
    /// Each is whole, and of several that nobody has looked at yet only the newest is kept.
    ///
    /// - Returns: a sequence that ends with an error when the leader is gone.
    func events() -> AsyncThrowingStream<GroupEvent, any Error>
}

extension GroupControlling {
    /// The group as it is now, without the points of the rooms' histories.
    public func status() async throws -> GroupStatus { try await status(hasPoints: false) }

    /// The beginning of the queue, as much of it as one listing holds.
    public func queue() async throws -> QueueListing {
        try await queue(first: 0, count: QueueListing.mostItems)
    }

    /// All of the queue; asked for again where it changes meanwhile.
    package func wholeQueue() async throws -> QueueListing {
        var listing = try await queue()
        while listing.items.count < listing.count {
            let more = try await queue(first: listing.items.count, count: QueueListing.mostItems)
            guard more.revision == listing.revision else {
                listing = try await queue()
                continue
            }
            guard !more.items.isEmpty else { break }
            listing.items += more.items
        }
        return listing
    }
}
