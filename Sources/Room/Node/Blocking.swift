import Dispatch
import TuttiFFmpegMedia
import TuttiLinuxHost
import TuttiPlayout

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
        try await blocking(on: queue) { try work(cancellation) }
    } onCancel: {
        cancellation.cancel()
    }
}

/// The same with what is short enough to be waited for, whoever is cancelled.
func blocking<Value: Sendable>(
    on queue: DispatchQueue, _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        queue.async { continuation.resume(with: Result { try work() }) }
    }
}

/// The same on a thread of its own that stands back for every other, where `inBackground`.
func blocking<Value: Sendable>(
    inBackground: Bool, _ work: @escaping @Sendable (MediaCancellation) throws(MediaError) -> Value
) async throws -> Value {
    guard inBackground else { return try await blocking(work) }
    let cancellation = MediaCancellation()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            let job: @Sendable () -> Void = {
                do throws(MediaError) {
                    continuation.resume(returning: try work(cancellation))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            let thread = try? RealTimeThread.start(name: "tutti-reader", priority: 0) {
                ThreadPriority.standBack()
                job()
            }
            // Where there can be no thread, one of the others does it.
            if thread == nil { DispatchQueue.global().async(execute: job) }
        }
    } onCancel: {
        cancellation.cancel()
    }
}
