import Synchronization

/// A value that a task of a test changes and the test reads.
final class Kept<Value: Sendable>: Sendable {
    private let held: Mutex<Value>
    init(_ value: Value) { held = Mutex(value) }
    var value: Value { held.withLock { $0 } }
    func change(_ body: @Sendable (inout Value) -> Void) {
        held.withLock { body(&$0) }
    }
}
