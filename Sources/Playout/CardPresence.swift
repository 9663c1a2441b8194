import Synchronization

/// Whether there is a card behind an output, and who wants to be told.
///
/// Whoever owns the device says so; it may be the output thread, which is not rendering then.
final class CardPresence: Sendable {
    private struct State {
        var isThere = true
        var observers: [Int: @Sendable (Bool) -> Void] = [:]
        var count = 0
    }
    private let state = Mutex(State())

    var isThere: Bool { state.withLock { $0.isThere } }

    func set(_ isThere: Bool) {
        let observers = state.withLock { state -> [@Sendable (Bool) -> Void] in
            guard state.isThere != isThere else { return [] }
            state.isThere = isThere
            return Array(state.observers.values)
        }
        for observer in observers { observer(isThere) }
    }

    func observe(_ body: @escaping @Sendable (Bool) -> Void) -> Int {
        state.withLock {
            $0.count += 1
            $0.observers[$0.count] = body
            return $0.count
        }
    }

    func forget(_ number: Int) {
        // The closure goes outside the lock.
        _ = state.withLock { $0.observers.removeValue(forKey: number) }
    }
}
