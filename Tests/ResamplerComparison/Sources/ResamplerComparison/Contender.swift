/// A resampler in the comparison.
///
/// The task is that of a room: the item is at 48 kHz, the card is too, but by another crystal. In
/// each period of 480 frames the ratio may move a little.
protocol Contender {
    var name: String { get }
    /// Whether the ratio can change on the way.
    var follows: Bool { get }
    /// Makes what ``convert(_:ratios:)`` needs; not timed.
    ///
    /// - Parameter input: interleaved stereo Float.
    mutating func prepare(_ input: [Float], firstRatio: Double)
    /// - Parameter ratios: input frames per output frame at the beginning of each period; one more
    ///   than there are periods.
    /// - Returns: interleaved stereo Float, roughly 480 frames for each period.
    mutating func convert(_ input: [Float], ratios: [Double]) -> [Float]
}

let periodFrames = 480
