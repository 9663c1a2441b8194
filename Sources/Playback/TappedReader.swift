import Synchronization
public import TuttiPlayout
import TuttiTiming

/// A tap on an item, for all who read from it.
///
/// A seek is a second reader beside the first, on another queue: this keeps their calls apart, and
/// the tap prepared as long as one of them is left.
public final class TapAttachment: Sendable {
    private struct State {
        var readers = 0
        /// The frame after the last one that was seen.
        var next: Int64?
        var silenced: Int64 = 0
    }

    private let tap: any AudioTap
    private let sampleRate: Int
    /// Held across calls of the tap: that is what it is for. The tap cannot come back here.
    private let state = Mutex(State())

    /// - Parameter sampleRate: frames per second of the item.
    public init(_ tap: any AudioTap, sampleRate: Int) {
        self.tap = tap
        self.sampleRate = sampleRate
    }

    /// Samples that the tap made something of that is no finite number; they became silence.
    public var silencedSampleCount: Int64 { state.withLock { $0.silenced } }

    fileprivate func begin() {
        state.withLock { state in
            if state.readers == 0 { tap.prepare(sampleRate: sampleRate, channelCount: 2) }
            state.readers += 1
        }
    }

    fileprivate func end() {
        state.withLock { state in
            state.readers -= 1
            guard state.readers == 0 else { return }
            state.next = nil
            tap.unprepare()
        }
    }

    fileprivate func process(
        _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64
    ) {
        state.withLock { state in
            tap.process(
                samples, itemFrame: itemFrame, sampleRate: sampleRate,
                isContinuous: itemFrame == state.next)
            state.next = itemFrame.adding(saturating: Int64(samples.count / 2))
            for i in samples.indices where !samples[i].isFinite {
                samples[i] = 0
                state.silenced = state.silenced.adding(saturating: 1)
            }
        }
    }
}

/// Frames that a tap has seen before whoever reads them.
///
/// Use from one thread at a time.
public final class TappedReader: FrameReader {
    private let reader: any FrameReader
    private let attachment: TapAttachment
    private var isPrepared = false

    /// - Parameter attachment: the same for all readers of the item.
    public init(_ reader: any FrameReader, attachment: TapAttachment) {
        self.reader = reader
        self.attachment = attachment
    }

    deinit { if isPrepared { attachment.end() } }

    public func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        let count = try reader.read(at: frame, into: buffer)
        guard count > 0 else { return count }
        if !isPrepared {
            isPrepared = true
            attachment.begin()
        }
        attachment.process(
            UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * count)]), itemFrame: frame)
        return count
    }
}
