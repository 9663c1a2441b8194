/// Decoded frames of an item from any frame on: what stands between a decoder and a voice reads from one
/// and is one.
public protocol FrameReader: AnyObject {
    /// Reads interleaved stereo from `frame` on. Going on where the last read ended is cheap; elsewhere
    /// it is a seek.
    ///
    /// - Returns: frames written, at most `buffer.count / 2`; 0 only at the end of the item.
    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int
}

/// How frames that a voice plays lie on frames of their item: `origin + step · n` for the voice's frame
/// `n`.
///
/// A voice that plays an item as it is has step 1. One whose frames were stretched to keep their pitch
/// has the rate as its step, and its own line runs at 1; one that plays backwards has a negative step.
@frozen
public struct FrameMap: Equatable, Sendable, BitwiseCopyable {
    /// Item frame of the voice's frame 0.
    public var origin: Double
    /// Item frames for each frame of the voice; not 0.
    public var step: Double

    /// Without arguments: frames as they are.
    @inlinable
    public init(origin: Double = 0, step: Double = 1) {
        self.origin = origin
        self.step = step
    }

    /// The voice plays the item as it is.
    public static let identity = FrameMap()

    /// Where in the item the voice's frame `voiceFrame` was taken from.
    @inlinable
    public func itemFrame(_ voiceFrame: Double) -> Double { origin + step * voiceFrame }

    /// The voice's frame that was taken from the item's frame `itemFrame`, with its fraction.
    @inlinable
    public func voiceFrame(_ itemFrame: Double) -> Double { (itemFrame - origin) / step }
}

/// Makes frames for a voice out of frames of an item, at another pace or backwards.
///
/// Each frame is a function of its number alone, whatever was read before: two rooms that came to a
/// place by different ways play the same samples there, bit for bit.
public protocol FrameTransform: FrameReader {
    /// How its frames lie on those of the item.
    var map: FrameMap { get }
}
