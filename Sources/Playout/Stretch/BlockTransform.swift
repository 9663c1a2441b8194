import TuttiTiming

/// Makes the frames of a voice in blocks that lie on a fixed grid.
///
/// Each block is a function of its number: what runs on from block to block is only a shorter way
/// to the same samples.
protocol FrameBlocks: AnyObject {
    /// Frames of each block.
    var blockFrames: Int { get }

    /// Makes frames `index · blockFrames ...` of the voice.
    ///
    /// - Parameter index: not negative.
    func make(_ index: Int64, into block: StereoBuffer)

    /// The next call begins anew.
    func forget()
}

/// Cuts blocks into the reads that are asked for, and ends where the item does.
///
/// A block is made of frames that lie beyond its own place. Where these cannot be read they are silent,
/// as behind the item's end: what lies before the place that fails is played, and then it fails.
final class BlockTransform<Blocks: FrameBlocks>: FrameTransform {
    let map: FrameMap
    private let speed: Double
    private let frames: PlayedFrames
    private let blocks: Blocks
    private let block: StereoBuffer
    /// Which one lies in `block`.
    private var heldIndex: Int64?

    init(map: FrameMap, frames: PlayedFrames, blocks: Blocks) {
        self.map = map
        speed = map.step.magnitude
        self.frames = frames
        self.blocks = blocks
        block = StereoBuffer(capacity: blocks.blockFrames)
    }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        let wanted = buffer.count / 2
        var done = 0
        while done < wanted {
            let next = frame.adding(saturating: Int64(done))
            let count = unsafe copy(
                from: next, into: UnsafeMutableBufferPointer(rebasing: buffer[(2 * done)...]))
            if count == 0 {
                if done == 0, let error = failure(at: next) {
                    forget()
                    throw error
                }
                break
            }
            done += count
        }
        return done
    }

    private func forget() {
        heldIndex = nil
        frames.forget()
        blocks.forget()
    }

    /// Why the item cannot be read at a frame of the voice.
    private func failure(at frame: Int64) -> MediaError? {
        guard let failure = frames.failure else { return nil }
        return failed(failure.frames).contains(frame) ? failure.error : nil
    }

    /// Frames of the voice that lie on frames of the item.
    private func failed(_ frames: Range<Int64>) -> Range<Int64> {
        let first = VoiceLength.of(frames.lowerBound, speed: speed)
        return first..<max(first, VoiceLength.of(frames.upperBound, speed: speed))
    }

    /// Copies what one block has of the frames from `frame` on; 0 at the end, and where it fails.
    private func copy(
        from frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) -> Int {
        let wanted = buffer.count / 2
        guard frame >= 0 else {
            let silent = Int(min(frame.magnitude, UInt64(wanted)))
            for i in 0..<(2 * silent) { unsafe buffer[i] = 0 }
            return silent
        }
        guard frame < voiceEnd else { return 0 }
        let length = Int64(blocks.blockFrames)
        let index = frame / length
        if heldIndex != index {
            blocks.make(index, into: block)
            heldIndex = index
        }
        let place = Int(frame % length)
        // Making the block may have found the item's end, or what cannot be read.
        var end = voiceEnd
        if let failed = frames.failure.map({ self.failed($0.frames) }), frame < failed.upperBound {
            end = min(end, failed.lowerBound)
        }
        let existing = max(0, min(length - Int64(place), end - frame))
        let count = min(wanted, Int(existing))
        for i in 0..<count {
            unsafe buffer[2 * i] = block.left[place + i]
            unsafe buffer[2 * i + 1] = block.right[place + i]
        }
        return count
    }

    private var voiceEnd: Int64 { VoiceLength.of(frames.end, speed: speed) }
}

/// How many frames a voice has.
enum VoiceLength {
    /// The number of voice frames that lie before an item's end: the first `n` with
    /// `n · speed ≥ itemFrames`.
    ///
    /// - Parameter itemFrames: 0…``PlayedFrames/positionLimit``.
    static func of(_ itemFrames: Int64, speed: Double) -> Int64 {
        let end = Double(itemFrames)
        var n = Int64(saturating: end / speed)
        while Double(n) * speed < end { n += 1 }
        while n > 0, Double(n - 1) * speed >= end { n -= 1 }
        return n
    }
}
