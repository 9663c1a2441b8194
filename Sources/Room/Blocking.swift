import Dispatch
import FFmpegMedia
import Playout

/// Runs work that blocks on a file or the network off the cooperative threads.
///
/// Cancelling the task cancels the work's `MediaCancellation`; the work then throws `.cancelled`.
///
/// - Parameters:
///   - queue: one of its own for what takes long: the global ones have few threads.
///   - cancellation: for whoever may end it otherwise.
func blocking<Value: Sendable>(
    on queue: DispatchQueue = .global(qos: .userInitiated),
    cancellation: MediaCancellation = MediaCancellation(),
    _ work: @escaping @Sendable (MediaCancellation) throws(MediaError) -> Value
) async throws -> Value {
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
