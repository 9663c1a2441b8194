/// Two channels of samples beside each other, zero at first.
@safe final class StereoBuffer {
    let left: UnsafeMutablePointer<Float>
    let right: UnsafeMutablePointer<Float>
    /// Frames.
    let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        unsafe left = .allocate(capacity: capacity)
        unsafe right = .allocate(capacity: capacity)
        unsafe left.initialize(repeating: 0, count: capacity)
        unsafe right.initialize(repeating: 0, count: capacity)
    }

    deinit {
        unsafe left.deallocate()
        unsafe right.deallocate()
    }

    /// Silence from frame `index` on.
    func clear(from index: Int, count: Int) {
        precondition(index >= 0 && count >= 0 && index + count <= capacity, "outside the buffer")
        unsafe (left + index).update(repeating: 0, count: count)
        unsafe (right + index).update(repeating: 0, count: count)
    }

    /// Copies `count` frames; the places of one buffer may overlap.
    func copy(from other: StereoBuffer, at source: Int, to index: Int, count: Int) {
        precondition(index >= 0 && count >= 0 && index + count <= capacity, "outside the buffer")
        precondition(source >= 0 && source + count <= other.capacity, "outside the source")
        unsafe (left + index).update(from: other.left + source, count: count)
        unsafe (right + index).update(from: other.right + source, count: count)
    }
}
