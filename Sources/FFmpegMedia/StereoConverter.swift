import CTuttiFFmpeg
import TuttiPlayout

/// Decoded frames of any sample format and channel count as interleaved stereo Float.
///
/// Mono goes to both sides at unity. Two channels keep their values: the integer formats convert
/// exactly. More are mixed as ``Downmix`` says, or to two of an output's channels as ``PairMatrix``
/// says.
@safe
final class StereoConverter {
    private var resampler: OpaquePointer?
    private var format: Int32 = -1
    /// Of the frame before.
    private var layout = unsafe AVChannelLayout()
    /// The sides that are sums.
    private var bends = (left: false, right: false)
    /// `nil`: all channels in two.
    private let pair: ChannelPair?
    /// Whether samples are the file's own bits, which may be no number or an infinite one: these become
    /// silence. What a decoder computes is finite.
    var mayMeetAnyBits = false
    /// Interleaved stereo; grows to the largest frame met and is used again.
    private(set) var buffer: UnsafeMutableBufferPointer<Float>
    /// Frames in `buffer`.
    private(set) var count = 0

    init(_ pair: ChannelPair? = nil) {
        self.pair = pair
        unsafe buffer = .allocate(capacity: 2 * 8192)
    }

    deinit {
        unsafe swr_free(&resampler)
        unsafe av_channel_layout_uninit(&layout)
        unsafe buffer.deallocate()
    }

    func removeAll() { count = 0 }

    /// Appends a decoded frame; a negative code of the library when it cannot be converted.
    func append(_ frame: UnsafeMutablePointer<AVFrame>) -> Int32 {
        let frames = unsafe Int(frame.pointee.nb_samples)
        guard frames > 0 else { return 0 }
        let code = unsafe configure(for: frame)
        guard code >= 0 else { return code }
        makeRoom(for: frames)
        var target: UnsafeMutablePointer<UInt8>? = unsafe UnsafeMutableRawPointer(
            buffer.baseAddress! + 2 * count
        ).assumingMemoryBound(to: UInt8.self)
        let source = unsafe UnsafeMutableRawPointer(frame.pointee.extended_data!)
            .assumingMemoryBound(to: UnsafePointer<UInt8>?.self)
        let converted = unsafe swr_convert(
            resampler, &target, Int32(frames), source, Int32(frames))
        guard converted >= 0 else { return converted }
        if bends.left || bends.right {
            unsafe Downmix.limit(
                buffer.baseAddress! + 2 * count, frames: Int(converted), bends: bends)
        }
        if mayMeetAnyBits { silenceWhatIsNotFinite(2 * count..<2 * (count + Int(converted))) }
        count += Int(converted)
        return 0
    }

    private func silenceWhatIsNotFinite(_ samples: Range<Int>) {
        for index in samples where unsafe !buffer[index].isFinite {
            unsafe buffer[index] = 0
        }
    }

    /// Cuts to `length` frames, or fills up with silence.
    func setCount(_ length: Int) {
        if length > count {
            makeRoom(for: length - count)
            unsafe (buffer.baseAddress! + 2 * count).update(
                repeating: 0, count: 2 * (length - count))
        }
        count = length
    }

    private func makeRoom(for frames: Int) {
        let needed = 2 * (count + frames)
        guard unsafe needed > buffer.count else { return }
        let larger = unsafe UnsafeMutableBufferPointer<Float>.allocate(
            capacity: max(needed, 2 * buffer.count))
        unsafe larger.baseAddress!.update(from: buffer.baseAddress!, count: 2 * count)
        unsafe buffer.deallocate()
        unsafe buffer = larger
    }

    /// A resampler for the frame's format; the one at hand when nothing changed.
    private func configure(for frame: UnsafeMutablePointer<AVFrame>) -> Int32 {
        if unsafe resampler != nil, unsafe frame.pointee.format == format,
            unsafe av_channel_layout_compare(&layout, &frame.pointee.ch_layout) == 0
        {
            return 0
        }
        unsafe swr_free(&resampler)
        format = -1
        var input = unsafe Self.usualLayout(of: &frame.pointee.ch_layout)
        var output = unsafe AVChannelLayout()
        defer { unsafe av_channel_layout_uninit(&input) }
        let matrix = unsafe choose(&output, of: &frame.pointee.ch_layout, usual: &input)
        let sampleFormat = AVSampleFormat(rawValue: unsafe frame.pointee.format)
        let rate = unsafe frame.pointee.sample_rate
        var code = unsafe swr_alloc_set_opts2(
            &resampler, &output, AV_SAMPLE_FMT_FLT, rate, &input, sampleFormat, rate, 0, nil)
        guard code >= 0, let resampler = unsafe resampler else { return code }
        if let matrix {
            code = unsafe swr_set_matrix(resampler, matrix, input.nb_channels)
            guard code >= 0 else { return code }
        }
        unsafe av_opt_set_sample_fmt(
            UnsafeMutableRawPointer(resampler), "internal_sample_fmt", AV_SAMPLE_FMT_FLTP, 0)
        code = unsafe swr_init(resampler)
        guard code >= 0 else { return code }
        code = unsafe av_channel_layout_copy(&layout, &frame.pointee.ch_layout)
        guard code >= 0 else { return code }
        format = unsafe frame.pointee.format
        return 0
    }

    /// - Returns: the weights; `nil` where two channels are left as they are.
    private func choose(
        _ output: UnsafeMutablePointer<AVChannelLayout>,
        of layout: UnsafeMutablePointer<AVChannelLayout>,
        usual: UnsafeMutablePointer<AVChannelLayout>
    ) -> [Double]? {
        guard let pair else {
            unsafe av_channel_layout_default(output, 2)
            let count = unsafe usual.pointee.nb_channels
            bends = (count > 2, count > 2)
            return count == 2 ? nil : unsafe Downmix.matrix(for: usual)
        }
        let matrix = unsafe PairMatrix(pair, of: layout, usual: usual)
        bends = (matrix.mayExceed.first, matrix.mayExceed.second)
        // Two that are not called stereo. From six or eight to stereo libswresample adds up even
        // channels that weigh nothing, and nothing times infinity would be heard.
        unsafe av_channel_layout_from_mask(
            output, 1 << AV_CHAN_BACK_LEFT.rawValue | 1 << AV_CHAN_BACK_RIGHT.rawValue)
        return matrix.weights
    }

    private static func usualLayout(
        of layout: UnsafeMutablePointer<AVChannelLayout>
    ) -> AVChannelLayout {
        var usual = unsafe AVChannelLayout()
        if unsafe layout.pointee.order == AV_CHANNEL_ORDER_NATIVE {
            unsafe av_channel_layout_copy(&usual, layout)
            return unsafe usual
        }
        // Up to eight channels have a usual order; others stay without one.
        unsafe av_channel_layout_default(&usual, layout.pointee.nb_channels)
        if unsafe usual.nb_channels > 8 {
            unsafe av_channel_layout_uninit(&usual)
            unsafe usual.order = AV_CHANNEL_ORDER_UNSPEC
            unsafe usual.nb_channels = layout.pointee.nb_channels
        }
        return unsafe usual
    }
}
