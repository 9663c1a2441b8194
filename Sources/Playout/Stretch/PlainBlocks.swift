/// Frames as they are, for a rate of −1.
final class PlainBlocks: FrameBlocks {
    static let size = 1_024
    let blockFrames: Int = size
    private let frames: PlayedFrames

    init(frames: PlayedFrames) { self.frames = frames }

    func make(_ index: Int64, into block: StereoBuffer) {
        let first = frames.load(from: index * Int64(blockFrames), count: blockFrames)
        block.copy(from: frames.held, at: first, to: 0, count: blockFrames)
    }

    func forget() {}
}
