/// The voices' resampler by itself, over a recording in memory.
///
/// An output reads a ring at positions that two clocks decide. To measure the resampler, its purity
/// and its cost, beside others, the positions must be the measurer's: here they are arguments. It
/// is the same table and the same kernel, in periods as an output takes them.
///
/// Confined to one thread. Around the recording lies silence.
@safe public final class OfflineResampler {
    /// Input frames that each output frame is made of.
    public let taps: Int
    /// Output frames of one call of ``read(step:bend:)``.
    public let periodFrames: Int
    /// Frames of the recording.
    public let frameCount: Int
    /// Where in the recording the next output frame lies; exact, with its fraction.
    public private(set) var position = 0.0

    private let bank: FilterBank
    private let margin: Int
    private let samples: UnsafeMutablePointer<Float>
    private let output: UnsafeMutablePointer<Float>
    private let stride: Int
    private let isPortable: Bool

    /// - Parameters:
    ///   - left, right: the recording; as many samples each.
    ///   - inputRate, outputRate: frames per second, nominal; they choose the filter.
    ///   - isPortable: to do without what only some processors have, as on a processor without it.
    public init(
        left: [Float], right: [Float], inputRate: Double, outputRate: Double,
        periodFrames: Int = 480, isPortable: Bool = false
    ) {
        precondition(left.count == right.count, "\(left.count) and \(right.count) samples")
        precondition((1...65_536).contains(periodFrames), "period of \(periodFrames) frames")
        bank = FilterBank.shared(inputRate: inputRate, outputRate: outputRate)
        taps = bank.taps
        self.periodFrames = periodFrames
        self.isPortable = isPortable
        frameCount = left.count
        margin = taps
        stride = left.count + 2 * margin
        unsafe samples = .allocate(capacity: 2 * stride)
        unsafe samples.initialize(repeating: 0, count: 2 * stride)
        for i in left.indices {
            unsafe samples[margin + i] = left[i]
            unsafe samples[stride + margin + i] = right[i]
        }
        unsafe output = .allocate(capacity: 2 * periodFrames)
        unsafe output.initialize(repeating: 0, count: 2 * periodFrames)
    }

    deinit {
        unsafe samples.deallocate()
        unsafe output.deallocate()
    }

    /// Goes back, or ahead, to a position.
    public func seek(to position: Double) {
        precondition(position >= 0 && position <= Double(frameCount), "no frame \(position)")
        self.position = position
    }

    /// Reads one period at `position + step·k + bend·k²` and leaves the position behind it.
    ///
    /// - Parameters:
    ///   - step: input frames per output frame: 1.0003 for a card that is 300 ppm slow.
    ///   - bend: half of what the step grows by from frame to frame.
    /// - Returns: false, and nothing is read, where the period would reach behind the recording.
    public func read(step: Double, bend: Double = 0) -> Bool {
        var base = Int(position)
        let path = FramePath(
            base: Int64(base), offset: position - Double(base), step: step, bend: bend)
        let count = periodFrames
        let end = position + (path.offset(count) - path.offset)
        guard step > 0, step + 2 * bend * Double(count) > 0, end <= Double(frameCount) else {
            return false
        }
        base += margin - taps / 2 + 1
        unsafe output.update(repeating: 0, count: 2 * count)
        var buffers = unsafe RenderBuffers(
            inputLeft: samples + base, inputRight: samples + stride + base,
            sumLeft: output, sumRight: output + count, gains: output, ghostGains: output,
            fade: output, fadeFrames: 0, cross: output, crossFrames: 0)
        if isPortable { buffers.fusesMultiplyAdd = false }
        unsafe Resampler.add(
            outputs: 0..<count, path: path, origin: 0, rows: UnsafePointer(bank.rows),
            taps: taps, buffers: buffers, gains: nil)
        position = end
        return true
    }

    /// What the last period gave, left or right (0 or 1); −1…1.
    public func period(channel: Int = 0) -> UnsafeBufferPointer<Float> {
        precondition((0...1).contains(channel), "no channel \(channel)")
        return unsafe UnsafeBufferPointer(
            start: output + channel * periodFrames, count: periodFrames)
    }
}
