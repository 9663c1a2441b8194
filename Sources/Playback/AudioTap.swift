/// Sees, and may change, the samples of an item before they are heard: a meter, a spectrum, an
/// equaliser.
///
/// It gets them where they are decoded: before they are stretched or resampled, and ahead of the
/// output by what is decoded ahead, some seconds. `itemFrame` says exactly which they are; when
/// they are heard is what the player's item time says. A seek, a pause or another rate may mean
/// that frames it was given are not heard, or are given to it again.
///
/// Calls come one at a time, from whatever queue decodes. They hold up decoding, and are not
/// allowed to take longer than what they are given lasts.
public protocol AudioTap: AnyObject, Sendable {
    /// Before the first samples, and again after ``unprepare()``.
    func prepare(sampleRate: Int, channelCount: Int)

    /// Sees samples and may write others in their place. Those that are no finite numbers
    /// afterwards become silence.
    ///
    /// - Parameters:
    ///   - samples: interleaved stereo Float, −1…1; not to be kept.
    ///   - itemFrame: the number of the first frame.
    ///   - sampleRate: frames per second of the item.
    ///   - isContinuous: whether they follow those of the call before, frame by frame. If not, what
    ///     a filter remembers is of another place.
    func process(
        _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
        isContinuous: Bool)

    /// No samples come any more, or none until it is prepared again.
    func unprepare()
}
