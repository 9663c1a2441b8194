/// Runs `body` such that cancelling the caller first lets `farewell` say goodbye to the others.
///
/// A cancelled child task cannot send any more, so the body runs in a task that hears of the
/// cancellation only after the farewell, or when that has taken ``farewellPatience``: who is busy with
/// something else ends, too. That task is awaited here, whatever happens.
func withGracefulStop(
    _ farewell: @escaping @Sendable () async -> Void,
    _ body: @escaping @Sendable () async throws -> Void
) async throws {
    let task = Task { try await body() }
    try await withTaskCancellationHandler {
        try await task.value
    } onCancel: {
        Task {
            await farewell()
            task.cancel()
        }
        Task {
            try? await Task.sleep(for: farewellPatience)
            task.cancel()
        }
    }
}

/// A goodbye is a message in a queue that may be long; a service is expected to end in seconds.
private let farewellPatience = Duration.seconds(1)
