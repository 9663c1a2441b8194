import func Glibc.sin

/// Reads an item between its samples with the voices' resampler, at rates that a voice does not
/// have.
///
/// Voice frame `v` lies on item frame `v · speed`, and the filter around it is all it depends on:
/// nothing here runs on. Blocks have a grid because a position is exact as a sum from the block's
/// first one, and would differ in its last bits from that of another first one.
///
/// Beyond 8 times as fast the filter would be thousands of taps long. There every second or fourth
/// frame of a version without the upper band is read instead.
@safe final class VarispeedBlocks: FrameBlocks {
    static let size = 256
    let blockFrames: Int = size

    private let frames: PlayedFrames
    private let speed: Double
    /// Frames of the item for each that is resampled: 1, 2 or 4.
    private let stride: Int
    /// Low-pass before frames are dropped; one tap where none are.
    private let lowPass: [Float]
    private let bank: FilterBank
    private let thinned: StereoBuffer

    /// Frames that one block is made of, for ``PlayedFrames``.
    static func window(speed: Double) -> Int {
        Int(Double(size) * speed) + 1_024 * stride(speed: speed) + 512
    }

    init(frames: PlayedFrames, speed: Double) {
        self.frames = frames
        self.speed = speed
        stride = Self.stride(speed: speed)
        lowPass = Self.lowPass(stride: stride)
        bank = FilterBank.shared(inputRate: speed / Double(stride), outputRate: 1)
        let reach = Int(Double(Self.size) * speed / Double(stride))
        thinned = StereoBuffer(capacity: reach + bank.taps + 8)
    }

    private static func stride(speed: Double) -> Int { speed > 16 ? 4 : speed > 8 ? 2 : 1 }

    /// A windowed sinc that keeps what the resampler behind it lets through, up to an eighth of
    /// what is left of the band, and nothing of what would fold back onto that.
    private static func lowPass(stride: Int) -> [Float] {
        guard stride > 1 else { return [1] }
        let half = 12 * stride
        let taps = (-half...half).map { k in
            let x = .pi * Double(k) / Double(stride)
            let u = .pi * (Double(k) / Double(half + 1))
            // Blackman and Harris' window with four terms: side lobes at −92 dB.
            let window =
                0.358_75 + 0.488_29 * cosine(u) + 0.141_28 * cosine(2 * u)
                + 0.011_68 * cosine(3 * u)
            return window * (k == 0 ? 1 : sin(x) / x)
        }
        let sum = taps.reduce(0, +)
        return taps.map { Float($0 / sum) }
    }

    private static func cosine(_ x: Double) -> Double { sin(x + .pi / 2) }

    func make(_ index: Int64, into block: StereoBuffer) {
        let step = speed / Double(stride)
        let position = Double(index * Int64(blockFrames)) * step
        let base = Int64(position)
        let path = FramePath(base: base, offset: position - Double(base), step: step, bend: 0)
        let origin = 1 - bank.taps / 2
        thin(from: base + Int64(origin), count: Int(path.offset(blockFrames)) + bank.taps + 2)
        block.clear(from: 0, count: blockFrames)
        let buffers = unsafe RenderBuffers(
            inputLeft: thinned.left, inputRight: thinned.right, sumLeft: block.left,
            sumRight: block.right, gains: block.left, ghostGains: block.left, fade: block.left,
            fadeFrames: 0, cross: block.left, crossFrames: 0)
        unsafe Resampler.add(
            outputs: 0..<blockFrames, path: path, origin: 0, rows: UnsafePointer(bank.rows),
            taps: bank.taps, buffers: buffers, gains: nil)
    }

    func forget() {}

    /// Fills `thinned` with every `stride`-th frame of the item's lower band.
    private func thin(from first: Int64, count: Int) {
        let half = lowPass.count / 2
        let start = first * Int64(stride) - Int64(half)
        let place = frames.load(from: start, count: (count - 1) * stride + lowPass.count)
        guard stride > 1 else {
            thinned.copy(from: frames.held, at: place, to: 0, count: count)
            return
        }
        for i in 0..<count {
            let left = unsafe frames.held.left + (place + i * stride)
            let right = unsafe frames.held.right + (place + i * stride)
            var sum = SIMD2<Float>(0, 0)
            for k in lowPass.indices {
                unsafe sum += lowPass[k] * SIMD2(left[k], right[k])
            }
            unsafe thinned.left[i] = sum.x
            unsafe thinned.right[i] = sum.y
        }
    }
}
