/// The sending end of one link: keeps order, holds a bounded number of messages, never waits.
///
/// A peer that does not read would otherwise make us hold everything it misses. When the box is
/// full the link is as good as dead and is ended: a room that comes back gets the whole state.
struct Outbox<Message: Sendable>: Sendable {
    /// Far more than a healthy link ever holds: a start is some four messages a room.
    static var capacity: Int { 256 }

    let messages: AsyncStream<Message>
    private let continuation: AsyncStream<Message>.Continuation

    init() {
        (messages, continuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(Self.capacity))
    }

    func send(_ message: Message) {
        if case .dropped = continuation.yield(message) { continuation.finish() }
    }

    /// Calls `body` when the box is finished, by either end; to be set before there is anything in
    /// it. What it holds may still be on its way then.
    func whenFinished(_ body: @escaping @Sendable () -> Void) {
        continuation.onTermination = { _ in body() }
    }

    /// What was sent before still leaves; then the link ends.
    func finish() { continuation.finish() }
}
