import Synchronization

/// Who wants to know when something changed; told at most once for any number of changes that it has
/// not looked at yet.
final class Watchers: Sendable {
    private struct State {
        var continuations: [Int: AsyncStream<Void>.Continuation] = [:]
        var count = 0
        var isOver = false
    }
    private let state = Mutex(State())

    /// One element at once, and one after each change.
    func add() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(
            bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.count += 1
            state.continuations[state.count] = continuation
            return state.count
        }
        continuation.yield()
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.continuations.removeValue(forKey: number) }
        }
        return stream
    }

    func tell() {
        for continuation in state.withLock({ Array($0.continuations.values) }) {
            continuation.yield()
        }
    }

    func finish() {
        let all = state.withLock { state in
            state.isOver = true
            return Array(state.continuations.values)
        }
        for continuation in all { continuation.finish() }
    }
}
