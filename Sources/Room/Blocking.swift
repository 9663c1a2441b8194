import Dispatch
import FFmpegMedia
import Playout

/// Runs work that blocks on a file or the network off the cooperative threads.
///
/// Cancelling the task cancels the work's `MediaCancellation`; the work then throws `.cancelled`.
///
/// - Parameter queue: one of its own for what takes long: the global ones have few threads.
func blocking<Value: Sendable>(
    on queue: DispatchQueue = .global(qos: .userInitiated),
    _ work: @escaping @Sendable (MediaCancellation) throws(MediaError) -> Value
) async throws -> Value {
    let cancellation = MediaCancellation()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            queue.async {
                do throws(MediaError) {
                    continuation.resume(returning: try work(cancellation))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    } onCancel: {
        cancellation.cancel()
    }
}
