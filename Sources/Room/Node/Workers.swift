import Synchronization

/// So many pieces of work at once, whatever is asked for: each may need a thread, files and a
/// connection.
///
/// What was asked for last is wanted most: a leader goes on, and what it asked for before is of no
/// use any more. So the newest of those that wait goes first, and when all places are taken the
/// oldest work is cancelled for it.
final class Workers: Sendable {
    /// Pieces of work that wait for a place; the oldest beyond are given up.
    static let mostWaiting = 64

    struct GaveWay: Error, CustomStringConvertible {
        var description: String { "gave way to what was asked for later" }
    }

    private struct State {
        var nextID = 0
        var running: [(id: Int, cancel: @Sendable () -> Void)] = []
        /// Taken, and not yet running.
        var starting = 0
        var waiting: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    }
    private let count: Int
    private let cancelsOldest: Bool
    private let state = Mutex(State())

    /// - Parameter cancelsOldest: for work that may take long.
    init(_ count: Int, cancelsOldest: Bool = true) {
        self.count = count
        self.cancelsOldest = cancelsOldest
    }

    /// - Throws: what `body` throws, `CancellationError`, or ``GaveWay``.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await takePlace(id)
        guard cancelsOldest else {
            state.withLock { state in
                state.starting -= 1
                state.running.append((id, {}))
            }
            defer { givePlace(id) }
            return try await body()
        }
        // One that can be cancelled without its caller.
        let task = Task { try await body() }
        state.withLock { state in
            state.starting -= 1
            state.running.append((id, { task.cancel() }))
        }
        defer { givePlace(id) }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func takePlace(_ id: Int) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (isCancelled, dropped, oldest) = state.withLock { state in
                    enqueue(id, continuation, &state)
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
                dropped?.resume(throwing: GaveWay())
                oldest?()
            }
        } onCancel: {
            let waiting = state.withLock { state in
                let place = state.waiting.firstIndex { $0.id == id }
                return place.map { state.waiting.remove(at: $0).continuation }
            }
            waiting?.resume(throwing: CancellationError())
        }
    }

    private typealias Waiting = CheckedContinuation<Void, any Error>

    private func enqueue(
        _ id: Int, _ continuation: Waiting, _ state: inout State
    ) -> (isCancelled: Bool, dropped: Waiting?, oldest: (@Sendable () -> Void)?) {
        // Cancelled before it could be found among those that wait.
        if Task.isCancelled { return (true, nil, nil) }
        if state.running.count + state.starting < count {
            state.starting += 1
            continuation.resume()
            return (false, nil, nil)
        }
        state.waiting.append((id, continuation))
        let isTooMany = state.waiting.count > Self.mostWaiting
        let dropped = isTooMany ? state.waiting.removeFirst().continuation : nil
        return (false, dropped, cancelsOldest ? state.running.first?.cancel : nil)
    }

    private func givePlace(_ id: Int) {
        let next = state.withLock { state -> Waiting? in
            state.running.removeAll { $0.id == id }
            guard let next = state.waiting.popLast() else { return nil }
            state.starting += 1
            return next.continuation
        }
        next?.resume()
    }
}
