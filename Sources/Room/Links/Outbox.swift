import Synchronization

/// The sending end of one link: keeps order, holds a bounded number of messages, never waits.
///
/// A peer that does not read would otherwise make us hold everything it misses. When the box is
/// full the link is as good as dead and is ended: a room that comes back gets the whole state.
struct Outbox<Message: Sendable>: Sendable {
    /// Far more than a healthy link ever holds: a start is some four messages a room.
    static var capacity: Int { 256 }
    /// The same in bytes: some of the longest message, a state with a full queue.
    static var byteCapacity: Int { 1 << 24 }

    let messages: AsyncStream<Message>
    private let continuation: AsyncStream<Message>.Continuation
    private let size: @Sendable (Message) -> Int
    private let held = Held()

    /// Bytes in the box.
    private final class Held: Sendable {
        let bytes = Atomic<Int>(0)
    }

    /// - Parameter size: of a message, bytes; about.
    init(size: @escaping @Sendable (Message) -> Int = { _ in 0 }) {
        self.size = size
        (messages, continuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(Self.capacity))
    }

    func send(_ message: Message) {
        let count = size(message)
        guard held.bytes.add(count, ordering: .relaxed).newValue <= Self.byteCapacity else {
            return continuation.finish()
        }
        if case .dropped = continuation.yield(message) { continuation.finish() }
    }

    /// A message has left the box.
    func taken(_ message: Message) { held.bytes.subtract(size(message), ordering: .relaxed) }

    /// Calls `body` when the box is finished, by either end; to be set before there is anything in
    /// it. What it holds may still be on its way then.
    func whenFinished(_ body: @escaping @Sendable () -> Void) {
        continuation.onTermination = { _ in body() }
    }

    /// What was sent before still leaves; then the link ends.
    func finish() { continuation.finish() }
}
