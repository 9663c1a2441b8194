/// Tells a role to end.
final class Ending: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func end() { continuation.finish() }

    /// Returns when it is to end, or with the task. One at a time.
    func wait() async { for await _ in stream {} }
}
