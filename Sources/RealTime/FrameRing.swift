import Synchronization

/// Decoded frames on their way from a decoder to the output thread: interleaved stereo Float.
///
/// Frames carry the absolute numbers of their item, so that both sides speak of the same frame
/// without counting along. The ring holds `firstFrame ..< endFrame`: the producer moves the end,
/// the consumer the beginning, and neither ever waits.
///
/// `@unchecked Sendable`: one producer writes `end`, one consumer writes `first`, both atomics.
/// Samples of `first ..< end` are only read, by the consumer; the others are only written, by the
/// producer. A frame changes sides with a release store of one count that the other side loads
/// with acquire order. ``reset(firstFrame:)`` writes both and is allowed only without a consumer.
@safe public final class FrameRing: @unchecked Sendable {
    /// Frames that fit; a power of two.
    public let capacityFrames: Int
    /// Frame k lies at `samples[2 × (k & mask)]` and the sample after it.
    private let samples: UnsafeMutablePointer<Float>
    private let mask: Int64
    private let first = Atomic<Int64>(0)
    private let end = Atomic<Int64>(0)
    private let finished = Atomic<Bool>(false)

    /// - Parameter capacityFrames: rounded up to a power of two, 1 to 16 777 216.
    public init(capacityFrames: Int) {
        precondition((1...16_777_216).contains(capacityFrames), "ring of \(capacityFrames) frames")
        var rounded = 1
        while rounded < capacityFrames { rounded *= 2 }
        self.capacityFrames = rounded
        mask = Int64(rounded - 1)
        unsafe samples = .allocate(capacity: 2 * rounded)
        unsafe samples.initialize(repeating: 0, count: 2 * rounded)
    }

    deinit { unsafe samples.deallocate() }

    // MARK: Producer

    /// Frames that can be written now.
    public var writableFrames: Int {
        capacityFrames
            - Int(end.load(ordering: .relaxed) - first.load(ordering: .acquiring))
    }

    /// Appends frames behind ``endFrame``.
    ///
    /// - Parameter frames: interleaved stereo Float, `frames.count / 2` frames.
    /// - Returns: frames taken; fewer than offered when the ring is full.
    public func write(_ frames: UnsafeBufferPointer<Float>) -> Int {
        let offered = frames.count / 2
        let count = min(offered, writableFrames)
        let start = end.load(ordering: .relaxed)
        guard count > 0, let source = frames.baseAddress else { return 0 }
        let index = Int(start & mask)
        let straight = min(count, capacityFrames - index)
        unsafe (samples + 2 * index).update(from: source, count: 2 * straight)
        unsafe samples.update(from: source + 2 * straight, count: 2 * (count - straight))
        end.store(start + Int64(count), ordering: .releasing)
        return count
    }

    /// Says that no frame will follow: ``endFrame`` is the end of the item.
    public func finish() { finished.store(true, ordering: .releasing) }

    /// Empties the ring; the next frame written is number `firstFrame`.
    ///
    /// Only while no consumer uses the ring: before its voice has been started.
    public func reset(firstFrame: Int64) {
        finished.store(false, ordering: .relaxed)
        first.store(firstFrame, ordering: .relaxed)
        end.store(firstFrame, ordering: .releasing)
    }

    // MARK: Consumer

    /// The oldest frame held.
    public var firstFrame: Int64 {
        @_noLocks @_noAllocation get { first.load(ordering: .acquiring) }
    }

    /// One behind the newest frame held.
    public var endFrame: Int64 {
        @_noLocks @_noAllocation get { end.load(ordering: .acquiring) }
    }

    /// Whether ``endFrame``, read after this, is final.
    public var isFinished: Bool {
        @_noLocks @_noAllocation get { finished.load(ordering: .acquiring) }
    }

    /// Copies frames into two planes.
    ///
    /// - Parameters:
    ///   - frame: the first; `frame ..< frame + count` lies within `firstFrame ..< endFrame`.
    ///   - left, right: room for `count` samples each.
    @_noLocks @_noAllocation
    public func copy(
        from frame: Int64, count: Int, left: UnsafeMutablePointer<Float>,
        right: UnsafeMutablePointer<Float>
    ) {
        var done = 0
        while done < count {
            let index = Int((frame + Int64(done)) & mask)
            let straight = min(count - done, capacityFrames - index)
            let source = unsafe samples + 2 * index
            for i in 0..<straight {
                unsafe left[done + i] = source[2 * i]
                unsafe right[done + i] = source[2 * i + 1]
            }
            done += straight
        }
    }

    /// Read-only access to one held frame: left sample, right sample.
    @_noLocks @_noAllocation
    public func pointer(toFrame frame: Int64) -> UnsafePointer<Float> {
        unsafe UnsafePointer(samples + 2 * Int(frame & mask))
    }

    /// Gives the room of all frames before `frame` back to the producer; never moves backwards, and
    /// never beyond what has been written.
    @_noLocks @_noAllocation
    public func release(upTo frame: Int64) {
        let target = min(frame, end.load(ordering: .relaxed))
        if target > first.load(ordering: .relaxed) { first.store(target, ordering: .releasing) }
    }
}
