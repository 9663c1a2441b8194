import CFFmpeg
import Playout

/// Decoded frames of any sample format and channel count as interleaved stereo Float.
///
/// Mono goes to both sides at unity. Two channels keep their values: the integer formats convert
/// exactly. More are mixed as ``Downmix`` says.
@safe
final class StereoConverter {
    private var resampler: OpaquePointer?
    private var format: Int32 = -1
    /// Of the frame before.
    private var layout = unsafe AVChannelLayout()
    private var isMixed = false
    /// Interleaved stereo; grows to the largest frame met and is used again.
    private(set) var buffer: UnsafeMutableBufferPointer<Float>
    /// Frames in `buffer`.
    private(set) var count = 0

    init() { unsafe buffer = .allocate(capacity: 2 * 8192) }

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
        if isMixed {
            unsafe Downmix.limit(buffer.baseAddress! + 2 * count, frames: Int(converted))
        }
        count += Int(converted)
        return 0
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
        var input = unsafe AVChannelLayout()
        var output = unsafe AVChannelLayout()
        defer { unsafe av_channel_layout_uninit(&input) }
        unsafe av_channel_layout_default(&output, 2)
        if unsafe frame.pointee.ch_layout.order == AV_CHANNEL_ORDER_NATIVE {
            unsafe av_channel_layout_copy(&input, &frame.pointee.ch_layout)
        } else {
            // Up to eight channels have a usual order; others stay without one.
            unsafe av_channel_layout_default(&input, frame.pointee.ch_layout.nb_channels)
            if unsafe input.nb_channels > 8 {
                unsafe av_channel_layout_uninit(&input)
                unsafe input.order = AV_CHANNEL_ORDER_UNSPEC
                unsafe input.nb_channels = frame.pointee.ch_layout.nb_channels
            }
        }
        let sampleFormat = AVSampleFormat(rawValue: unsafe frame.pointee.format)
        let rate = unsafe frame.pointee.sample_rate
        var code = unsafe swr_alloc_set_opts2(
            &resampler, &output, AV_SAMPLE_FMT_FLT, rate, &input, sampleFormat, rate, 0, nil)
        guard code >= 0, let resampler = unsafe resampler else { return code }
        isMixed = unsafe input.nb_channels > 2
        if unsafe input.nb_channels != 2 {
            code = unsafe swr_set_matrix(
                resampler, Downmix.matrix(for: &input), input.nb_channels)
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
}
