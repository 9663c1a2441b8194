public import Synchronization

/// A bounded queue of small values from one thread to one other.
///
/// `@unchecked Sendable`: `pushed` is written by the producer alone and `popped` by the consumer
/// alone. An element between the two counts belongs to the consumer, every other one to the
/// producer; ownership passes with a release store of the count that the other side loads with
/// acquire order, so an element is never accessed by both at once.
@safe public final class CommandRing<Element: BitwiseCopyable & Sendable>: @unchecked Sendable {
    /// Elements that fit.
    public let capacity: Int
    @usableFromInline let elements: UnsafeMutablePointer<Element>
    @usableFromInline let pushed = Atomic<Int>(0)
    @usableFromInline let popped = Atomic<Int>(0)

    /// - Parameter capacity: rounded up to a power of two, 1 to 65 536.
    public init(capacity: Int) {
        precondition((1...65_536).contains(capacity), "ring of \(capacity) elements")
        var rounded = 1
        while rounded < capacity { rounded *= 2 }
        self.capacity = rounded
        unsafe elements = .allocate(capacity: rounded)
    }

    deinit { unsafe elements.deallocate() }

    /// Appends `element`; false when the ring is full. Producer only; never waits.
    @inlinable @inline(__always)
    public func push(_ element: Element) -> Bool {
        let end = pushed.load(ordering: .relaxed)
        if end - popped.load(ordering: .acquiring) == capacity { return false }
        unsafe (elements + (end & (capacity - 1))).initialize(to: element)
        pushed.store(end + 1, ordering: .releasing)
        return true
    }

    /// Takes the oldest element; `nil` when there is none. Consumer only; never waits.
    @inlinable @inline(__always)
    public func pop() -> Element? {
        let first = popped.load(ordering: .relaxed)
        if first == pushed.load(ordering: .acquiring) { return nil }
        let element = unsafe elements[first & (capacity - 1)]
        popped.store(first + 1, ordering: .releasing)
        return element
    }
}
