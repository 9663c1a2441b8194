/// Frames of an item in the order in which they are played: forwards, or from its last one to its
/// first.
///
/// Frame 0 is what is played first. Before it and behind the last lies silence, so that filters and
/// grains may reach there. A window over them goes with the player: going on costs what is new.
@safe final class PlayedFrames {
    /// The first frame that is known not to exist. Without a known length it is found by reading
    /// there, and the largest position until then.
    private(set) var end: Int64
    /// What ``load(from:count:)`` has loaded.
    let held: StereoBuffer

    /// Read at once, backwards: a seek for every 8192 frames, 0.17 s. Shorter blocks cost more
    /// seeks, longer ones more reading after a jump.
    static let blockFrames = 8_192
    /// Positions from here on do not exist: below, a `Double` still has an eighth of a frame.
    static let positionLimit: Int64 = 1 << 50
    /// Read at once, forwards.
    private static let chunkFrames = 2_048
    /// Samples beyond this, and what is no number, are damage and are read as silence.
    private static let sampleLimit: Float = 1e6

    private let reader: any FrameReader
    /// Frames of the item where it is played backwards; `nil`: forwards.
    private let reversedCount: Int64?
    /// Frames that are worth a seek rather than to be read and dropped.
    private let skipFrames: Int64
    private var first: Int64 = 0
    private var count = 0
    /// What could not be read, and why: read as silence, for whoever only reaches there.
    private(set) var failure: (frames: Range<Int64>, error: MediaError)?
    /// What ``end`` was before anything was read.
    private let declaredEnd: Int64
    private let scratch: UnsafeMutableBufferPointer<Float>
    /// Which block of the item lies in `scratch`, backwards.
    private var heldBlock: Int64?

    /// - Parameters:
    ///   - window: frames that one ``load(from:count:)`` asks for at most.
    ///   - frameCount: of the item; must be known where `isReversed`.
    init(
        reader: any FrameReader, frameCount: Int64?, isReversed: Bool, window: Int, sampleRate: Int
    ) {
        precondition(frameCount != nil || !isReversed, "backwards from an unknown end")
        self.reader = reader
        reversedCount = isReversed ? frameCount : nil
        declaredEnd = min(frameCount ?? Self.positionLimit, Self.positionLimit)
        end = declaredEnd
        skipFrames = Int64(sampleRate / 4)
        held = StereoBuffer(capacity: 3 * window + Self.chunkFrames)
        let frames = isReversed ? Self.blockFrames : Self.chunkFrames
        unsafe scratch = .allocate(capacity: 2 * frames)
        unsafe scratch.initialize(repeating: 0)
    }

    deinit { unsafe scratch.deallocate() }

    /// Everything is read anew: what failed may be there the next time.
    func forget() {
        (end, count, failure, heldBlock) = (declaredEnd, 0, nil, nil)
    }

    /// Makes `count` frames from `start` on available in ``held``.
    ///
    /// What cannot be read is silence, as behind an end, and a ``failure``.
    ///
    /// - Returns: where in ``held`` frame `start` lies.
    func load(from start: Int64, count wanted: Int) -> Int {
        let heldEnd = first + Int64(count)
        var skippedFrom: Int64?
        if start < first || start > heldEnd + skipFrames || count == 0 {
            skippedFrom = count > 0 && start > heldEnd ? heldEnd : nil
            first = start
            count = 0
        }
        while first + Int64(count) < start + Int64(wanted) {
            let position = first + Int64(count)
            makeRoom(for: start, wanted: wanted)
            let limit = Int(min(Int64(Self.chunkFrames), start + Int64(wanted) - position))
            let knownEnd = end
            count += fetch(at: position, limit: limit, to: count)
            if let skippedFrom, end < knownEnd, failure == nil {
                end = knownEnd
                end = findEnd(from: skippedFrom, to: position)
            }
        }
        return Int(start - first)
    }

    /// Drops what lies far before `start` when the next chunk would not fit.
    private func makeRoom(for start: Int64, wanted: Int) {
        guard count + Self.chunkFrames > held.capacity else { return }
        let dropped = Int(min(Int64(count), max(0, start - Int64(wanted) - first)))
        held.copy(from: held, at: dropped, to: 0, count: count - dropped)
        first += Int64(dropped)
        count -= dropped
    }

    /// Appends up to `limit` frames at `index` of ``held``.
    private func fetch(at position: Int64, limit: Int, to index: Int) -> Int {
        if position < 0 || position >= end {
            let silent = position < 0 ? Int(min(Int64(limit), -position)) : limit
            held.clear(from: index, count: silent)
            return silent
        }
        let wanted = Int(min(Int64(limit), end - position))
        if let reversedCount {
            return fetchReversed(from: reversedCount - 1 - position, limit: wanted, to: index)
        }
        let part = unsafe UnsafeMutableBufferPointer(rebasing: scratch[..<(2 * wanted)])
        let read = unsafe min(wanted, readForwards(at: position, into: part))
        guard read > 0 else {
            end = position
            return 0
        }
        for i in 0..<read { put(i, at: index + i) }
        return read
    }

    /// A place that fails is an end that has a reason.
    private func readForwards(
        at position: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) -> Int {
        do {
            return unsafe try reader.read(at: position, into: buffer)
        } catch {
            failure = (position..<Self.positionLimit, error)
            return 0
        }
    }

    /// Frames of the item from `itemFrame` downwards.
    private func fetchReversed(from itemFrame: Int64, limit: Int, to index: Int) -> Int {
        let block = itemFrame / Int64(Self.blockFrames)
        if heldBlock != block { readBlock(block) }
        let place = Int(itemFrame % Int64(Self.blockFrames))
        let count = min(limit, place + 1)
        for i in 0..<count { put(place - i, at: index + i) }
        return count
    }

    /// What the item does not have, though its length said so, is silence.
    private func readBlock(_ block: Int64) {
        unsafe scratch.update(repeating: 0)
        var count = 0
        while count < Self.blockFrames {
            let part = unsafe UnsafeMutableBufferPointer(rebasing: scratch[(2 * count)...])
            let frame = block * Int64(Self.blockFrames) + Int64(count)
            do {
                let read = unsafe try reader.read(at: frame, into: part)
                if read <= 0 { break }
                count += read
            } catch {
                fail(from: frame, inBlock: block, error)
                break
            }
        }
        heldBlock = block
    }

    /// Backwards, what lies above a place that fails in its block is played before it.
    private func fail(from frame: Int64, inBlock block: Int64, _ error: MediaError) {
        guard let reversedCount else { return }
        let last = min((block + 1) * Int64(Self.blockFrames), reversedCount) - 1
        guard frame <= last else { return }
        failure = (reversedCount - 1 - last..<reversedCount - frame, error)
    }

    private func put(_ frame: Int, at index: Int) {
        let left = unsafe scratch[2 * frame]
        let right = unsafe scratch[2 * frame + 1]
        unsafe held.left[index] = left.magnitude < Self.sampleLimit ? left : 0
        unsafe held.right[index] = right.magnitude < Self.sampleLimit ? right : 0
    }

    /// The exact end where a skip went beyond it: frames between may exist.
    private func findEnd(from heldEnd: Int64, to start: Int64) -> Int64 {
        var position = max(0, heldEnd)
        while position < start {
            let read = unsafe readForwards(at: position, into: scratch)
            if read <= 0 { break }
            position += Int64(min(read, Self.chunkFrames))
        }
        return position
    }
}
