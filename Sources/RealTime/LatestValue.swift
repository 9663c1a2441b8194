public import Synchronization

/// The newest value of something: one writer replaces it, any number of readers look at it.
///
/// Neither side waits for the other, so a reader on the output thread is not held up by a writer
/// that the scheduler has put aside in the middle of a store. The value is kept as 64-bit words in
/// four slots used in turn, and `generation` names the newest complete one. A reader copies that
/// slot and asks once more for the generation: the copy is whole unless the writer has meanwhile
/// come round to the same slot, which takes three further stores; only then does it read again.
///
/// `@unchecked Sendable`: the words are atomics, hence no access is a data race. A torn copy is
/// recognised because each word is stored with release and loaded with acquire order: a reader
/// that sees a word of generation g + 4 also sees generation ≥ g + 3 and reads again.
@safe public final class LatestValue<Value: BitwiseCopyable & Sendable>: @unchecked Sendable {
    /// Gives `load` a value to overwrite; `Value` has no other way to come into being.
    @usableFromInline let initial: Value
    @usableFromInline let wordCount: Int
    @usableFromInline let words: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline let generation = Atomic<UInt64>(0)

    /// A cell that holds `value` until the first store. Allocates four copies, once.
    public init(_ value: Value) {
        initial = value
        wordCount = (MemoryLayout<Value>.size + 7) / 8
        unsafe words = .allocate(capacity: 4 * wordCount)
        for i in 0..<4 * wordCount { unsafe (words + i).initialize(to: Atomic(0)) }
        store(value)
    }

    deinit {
        unsafe words.deinitialize(count: 4 * wordCount)
        unsafe words.deallocate()
    }

    /// Replaces the value. One thread at a time; no lock, no allocation, never waits.
    @inlinable @inline(__always)
    public func store(_ value: Value) {
        let next = generation.load(ordering: .relaxed) &+ 1
        let count = wordCount
        let slot = unsafe words + Int(next & 3) * count
        unsafe withUnsafeBytes(of: value) { bytes in
            for i in 0..<count {
                var word: UInt64 = 0
                for k in 0..<min(8, bytes.count - 8 * i) {
                    word |= unsafe UInt64(bytes[8 * i + k]) << UInt64(8 * k)
                }
                unsafe slot[i].store(word, ordering: .releasing)
            }
        }
        generation.store(next, ordering: .releasing)
    }

    /// The newest value that was stored completely. Any thread; no lock, no allocation.
    @inlinable @inline(__always)
    public func load() -> Value {
        var value = initial
        while true {
            let newest = generation.load(ordering: .acquiring)
            let count = wordCount
            let slot = unsafe words + Int(newest & 3) * count
            unsafe withUnsafeMutableBytes(of: &value) { bytes in
                for i in 0..<count {
                    let word = unsafe slot[i].load(ordering: .acquiring)
                    for k in 0..<min(8, bytes.count - 8 * i) {
                        unsafe bytes[8 * i + k] = UInt8(truncatingIfNeeded: word >> UInt64(8 * k))
                    }
                }
            }
            if generation.load(ordering: .relaxed) &- newest < 3 { return value }
        }
    }
}
