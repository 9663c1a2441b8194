import TuttiTiming

/// An item at another sample rate, frame by frame.
///
/// Frame `k` lies at frame `origin + k · inputRate / outputRate` of what is read, and is filtered
/// as the output filters (``OfflineResampler``). It is a function of its number alone: frames are
/// made in windows that begin at multiples of ``windowFrames``, each at a position that is computed
/// exactly, and a window is never cut, whatever is asked for. So a read after a seek gives what a
/// read in one go gives, bit for bit, and nothing drifts. Around the input lies silence, and behind a
/// place that cannot be read: what lies before it is read, and then it fails.
///
/// Confined to one thread.
@safe public final class ResampledReader: FrameReader {
    /// Output frames that are made at once: at most a packet's worth, fewer where the input has so
    /// many more that they would not fit in ``inputLimit``.
    public let windowFrames: Int
    /// Input frames of one window, besides the filter's length.
    private static let inputLimit = 4_096
    /// Output frames of one window: about 20 ms.
    private static let windowLimit = 1_024
    /// As ``MediaFormat/sampleRate``.
    public static let rates = 1...768_000

    private let reader: any FrameReader
    private let inputRate: Int
    private let outputRate: Int
    private let origin: Int64
    private let bank: FilterBank

    private let left: UnsafeMutablePointer<Float>
    private let right: UnsafeMutablePointer<Float>
    private let output: UnsafeMutablePointer<Float>
    private let interleaved: UnsafeMutableBufferPointer<Float>
    /// Frames that `left` and `right` hold.
    private let capacity: Int
    /// Input frames that are in them.
    private var held: Range<Int64> = 0..<0
    /// The window that is in `output`.
    private var window: Int64?
    /// The first input frame that is not there, once that was seen.
    private var end: Int64?
    /// Why it is not there, where that is no end.
    private var failure: MediaError?

    /// - Parameters:
    ///   - reader: the input.
    ///   - inputRate, outputRate: frames per second, each of ``rates``.
    ///   - origin: the input frame that output frame 0 lies on; not negative.
    public init(
        of reader: any FrameReader, inputRate: Int, outputRate: Int, origin: Int64 = 0
    ) {
        precondition(
            Self.rates.contains(inputRate) && Self.rates.contains(outputRate),
            "from \(inputRate) to \(outputRate) frames per second")
        precondition(origin >= 0, "no frame \(origin)")
        self.reader = reader
        self.inputRate = inputRate
        self.outputRate = outputRate
        self.origin = origin
        bank = FilterBank.shared(inputRate: Double(inputRate), outputRate: Double(outputRate))
        windowFrames = min(Self.windowLimit, max(1, Self.inputLimit * outputRate / inputRate))
        // The last frame of a window lies less than a frame beside where a whole number would.
        capacity = windowFrames * inputRate / outputRate + bank.taps + 2
        unsafe left = .allocate(capacity: capacity)
        unsafe right = .allocate(capacity: capacity)
        unsafe output = .allocate(capacity: 2 * windowFrames)
        unsafe interleaved = .allocate(capacity: 2 * capacity)
        unsafe left.initialize(repeating: 0, count: capacity)
        unsafe right.initialize(repeating: 0, count: capacity)
        unsafe output.initialize(repeating: 0, count: 2 * windowFrames)
        unsafe interleaved.initialize(repeating: 0)
    }

    deinit {
        unsafe left.deallocate()
        unsafe right.deallocate()
        unsafe output.deallocate()
        unsafe interleaved.deallocate()
    }

    /// - Returns: frames written, up to the end of a window; 0 where no frame of the input is
    ///   within reach of the filter any more.
    public func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        guard buffer.count >= 2 else { return 0 }
        let (index, offset) = frame.flooredDivision(by: Int64(windowFrames))
        let position = inputPosition(ofWindow: index)
        // Of what is behind the end nobody needs to ask twice.
        if !isSilent(from: position.base), window != index { try make(index, at: position) }
        if let failure, frame >= firstFailing {
            forget()
            throw failure
        }
        if isSilent(from: position.base) { return 0 }
        let first = Int(offset)
        var count = min(buffer.count / 2, windowFrames - first)
        if failure != nil { count = min(count, Int(firstFailing.subtracting(saturating: frame))) }
        for k in 0..<count {
            unsafe buffer[2 * k] = output[first + k]
            unsafe buffer[2 * k + 1] = output[windowFrames + first + k]
        }
        return count
    }

    /// Everything is read anew: what failed may be there the next time.
    private func forget() {
        (held, window, end, failure) = (0..<0, nil, nil, nil)
    }

    /// The first output frame that lies on or behind the input's end.
    private var firstFailing: Int64 {
        guard let end else { return .max }
        let frames = (Int128(end) - Int128(origin)) * Int128(outputRate) + Int128(inputRate) - 1
        return Int64(clamping: frames / Int128(inputRate))
    }

    /// Whether a window that begins there, and all behind it, has nothing of the input in reach.
    private func isSilent(from base: Int64) -> Bool {
        guard let end else { return false }
        return base.subtracting(saturating: Int64(bank.taps / 2)) >= end
    }

    /// Where the first frame of a window lies, exactly: a whole frame and what is beyond it, 0 ..<
    /// 1.
    private func inputPosition(ofWindow index: Int64) -> (base: Int64, offset: Double) {
        let frames = Int128(index) * Int128(windowFrames) * Int128(inputRate)
        var (base, rest) = frames.quotientAndRemainder(dividingBy: Int128(outputRate))
        if rest < 0 { (base, rest) = (base - 1, rest + Int128(outputRate)) }
        return (
            Int64(clamping: base + Int128(origin)), Double(Int64(rest)) / Double(outputRate)
        )
    }

    private func make(
        _ index: Int64, at position: (base: Int64, offset: Double)
    ) throws(MediaError) {
        window = nil
        let first = position.base.subtracting(saturating: Int64(bank.taps / 2 - 1))
        guard first > .min, first < .max - Int64(capacity) else {
            throw MediaError(
                .unsupported, operation: "resample", subject: "frame \(index)",
                reason: "lies beyond what can be counted")
        }
        fill(from: first)
        unsafe output.update(repeating: 0, count: 2 * windowFrames)
        let path = FramePath(
            base: position.base, offset: position.offset,
            step: Double(inputRate) / Double(outputRate), bend: 0)
        let buffers = unsafe RenderBuffers(
            inputLeft: left, inputRight: right, sumLeft: output, sumRight: output + windowFrames,
            gains: output, ghostGains: output, fade: output, fadeFrames: 0, cross: output,
            crossFrames: 0)
        unsafe Resampler.add(
            outputs: 0..<windowFrames, path: path, origin: 0, rows: UnsafePointer(bank.rows),
            taps: bank.taps, buffers: buffers, gains: nil)
        window = index
    }

    /// Makes `left` and `right` begin with input frame `first`. What they hold already is not read
    /// again: going back by the filter's length would be a seek for each window.
    private func fill(from first: Int64) {
        let wanted = first..<first + Int64(capacity)
        let kept = held.clamped(to: wanted)
        if kept.isEmpty || kept.lowerBound != first {
            held = first..<first
        } else {
            let (from, count) = (Int(first - held.lowerBound), kept.count)
            unsafe left.update(from: left + from, count: count)
            unsafe right.update(from: right + from, count: count)
            held = kept
        }
        while held.upperBound < wanted.upperBound {
            let next = held.upperBound
            if next < 0 {
                silence(until: min(0, wanted.upperBound))
            } else if let end, next >= end {
                silence(until: wanted.upperBound)
            } else {
                read(until: wanted.upperBound)
            }
        }
    }

    private func silence(until last: Int64) {
        let place = held.count
        let count = Int(last - held.upperBound)
        unsafe (left + place).update(repeating: 0, count: count)
        unsafe (right + place).update(repeating: 0, count: count)
        held = held.lowerBound..<last
    }

    private func read(until last: Int64) {
        let (next, place) = (held.upperBound, held.count)
        let room = 2 * Int(last - next)
        var count = 0
        do {
            count = unsafe try reader.read(
                at: next, into: UnsafeMutableBufferPointer(rebasing: interleaved[..<room]))
        } catch {
            failure = error
        }
        if count == 0 { end = min(end ?? .max, next) }
        for k in 0..<count {
            unsafe left[place + k] = interleaved[2 * k]
            unsafe right[place + k] = interleaved[2 * k + 1]
        }
        held = held.lowerBound..<next + Int64(count)
    }
}

extension Int64 {
    /// Quotient towards −∞, and the remainder, 0 ..< `divisor`.
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
