import CTuttiFFmpeg
import TuttiPlayout

/// One codec context and the frames that come out of it.
///
/// The decoder is told to leave encoder delay and padding in place (`SKIP_MANUAL`): its owner
/// numbers every frame and cuts by number, so that a seek and a linear decode count alike.
///
/// A fresh context, not a flushed one, begins every run of packets: some decoders keep state across
/// a flush (AAC's noise generator), and then the same seek would sound different each time.
@safe
final class AudioDecoder {
    private let location: MediaLocation
    private let codec: UnsafePointer<AVCodec>
    private var context: UnsafeMutablePointer<AVCodecContext>?
    private let frame: UnsafeMutablePointer<AVFrame>
    private let converter: StereoConverter
    /// Frames a second of what was decoded first; 0 before the first frame.
    private(set) var sampleRate = 0
    private(set) var channelCount = 0
    /// Whether frames may have another rate than the first; else they are refused.
    var followsRates = false
    /// Frames a second of what was decoded last, whatever ``sampleRate`` was at first.
    private(set) var lastSampleRate = 0
    /// Frames at the beginning that are no part of the recording, as far as decoder and container
    /// said with what came out since ``restart(for:)``.
    ///
    /// Decoders know some delays that no container states: WMA's 4096 frames, libfaac's 1024. Of
    /// AAC with spectral band replication they know that a frame of the container is two.
    private(set) var announcedDelay: Int64 = 0

    /// - Throws: `.unsupported` when this FFmpeg cannot decode the stream.
    init(for stream: UnsafeMutablePointer<AVStream>, location: MediaLocation) throws(MediaError) {
        let parameters = unsafe stream.pointee.codecpar!
        // libopus yields exactly what the packet says; the built-in decoder delays SILK packets.
        // The fixed-point MPEG decoders dither, and would not repeat themselves after a seek.
        let preferred: UnsafePointer<AVCodec>? =
            switch unsafe parameters.pointee.codec_id {
            case AV_CODEC_ID_OPUS: unsafe avcodec_find_decoder_by_name("libopus")
            case AV_CODEC_ID_MP1: unsafe avcodec_find_decoder_by_name("mp1float")
            case AV_CODEC_ID_MP2: unsafe avcodec_find_decoder_by_name("mp2float")
            default: nil
            }
        let found = unsafe preferred ?? avcodec_find_decoder(parameters.pointee.codec_id)
        guard let codec = unsafe found else {
            throw unsafe CodingName.cannotDecode(parameters, "avcodec_find_decoder", location)
        }
        unsafe self.codec = codec
        self.location = location
        converter = StereoConverter(location.channels)
        guard let frame = unsafe av_frame_alloc() else { fatalError("no memory for a frame") }
        unsafe self.frame = frame
        converter.mayMeetAnyBits = [
            AV_CODEC_ID_PCM_F32LE, AV_CODEC_ID_PCM_F32BE, AV_CODEC_ID_PCM_F64LE,
            AV_CODEC_ID_PCM_F64BE, AV_CODEC_ID_PCM_F16LE, AV_CODEC_ID_PCM_F24LE,
        ].contains(unsafe codec.pointee.id)
        do throws(MediaError) { unsafe try restart(for: stream) } catch {
            // A class whose init throws after all fields are set runs its deinit.
            throw error
        }
    }

    deinit {
        var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
        unsafe av_frame_free(&frame)
        unsafe avcodec_free_context(&context)
    }

    /// What decoding would show, from an earlier time.
    func assume(sampleRate: Int, channelCount: Int) {
        (self.sampleRate, self.channelCount) = (sampleRate, channelCount)
    }

    /// Forgets everything decoded so far.
    ///
    /// - Parameter settings: what the decoder is told instead of what the stream says.
    func restart(
        for stream: UnsafeMutablePointer<AVStream>, settings: [UInt8]? = nil
    ) throws(MediaError) {
        unsafe avcodec_free_context(&context)
        guard let fresh = unsafe avcodec_alloc_context3(codec) else {
            fatalError("no memory for a codec context")
        }
        unsafe context = fresh
        announcedDelay = 0
        let parameters = unsafe stream.pointee.codecpar!
        var code = unsafe avcodec_parameters_to_context(fresh, parameters)
        if let settings { unsafe Self.set(settings, in: fresh) }
        if code >= 0 {
            unsafe fresh.pointee.pkt_timebase = stream.pointee.time_base
            unsafe fresh.pointee.thread_count = 1
            unsafe fresh.pointee.flags2 |= Int32(bitPattern: UInt32(AV_CODEC_FLAG2_SKIP_MANUAL))
            unsafe fresh.pointee.request_sample_fmt = AV_SAMPLE_FMT_FLT
            if unsafe parameters.pointee.codec_id == AV_CODEC_ID_FLAC {
                // A damaged frame becomes silence instead of noise.
                unsafe fresh.pointee.err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE
            }
            code = unsafe avcodec_open2(fresh, codec, nil)
        }
        guard code >= 0 else {
            if unsafe code == cff_error_patch_welcome || CodingName.isBeyondLibrary(parameters) {
                throw unsafe CodingName.cannotDecode(parameters, "avcodec_open2", location)
            }
            throw MediaError(library: code, operation: "avcodec_open2", location: location)
        }
    }

    private static func set(
        _ settings: [UInt8], in context: UnsafeMutablePointer<AVCodecContext>
    ) {
        unsafe av_freep(&context.pointee.extradata)
        let padding = Int(AV_INPUT_BUFFER_PADDING_SIZE)
        guard let copy = unsafe av_mallocz(settings.count + padding) else {
            fatalError("no memory for a decoder's settings")
        }
        unsafe copy.copyMemory(from: settings, byteCount: settings.count)
        unsafe context.pointee.extradata = copy.assumingMemoryBound(to: UInt8.self)
        unsafe context.pointee.extradata_size = Int32(settings.count)
    }

    /// Decodes one packet, or what is left after the last (`nil`); replaces ``output``.
    ///
    /// Damaged packets yield fewer frames or none: the caller knows how many there should be.
    func decode(_ packet: UnsafeMutablePointer<AVPacket>?) throws(MediaError) {
        converter.removeAll()
        // A refused packet is a damaged one: it yields nothing, and the count is made up later.
        _ = unsafe avcodec_send_packet(context, packet)
        while true {
            let code = unsafe avcodec_receive_frame(context, frame)
            if code < 0 { return }
            defer { unsafe av_frame_unref(frame) }
            if let side = unsafe av_frame_get_side_data(frame, AV_FRAME_DATA_SKIP_SAMPLES),
                unsafe side.pointee.size >= 4
            {
                announcedDelay += unsafe littleEndianWord(side.pointee.data)
            }
            let rate = unsafe Int(frame.pointee.sample_rate)
            // Some decoders label the first frame of another rate with the one before.
            unsafe lastSampleRate = Int(context!.pointee.sample_rate)
            if sampleRate == 0 {
                sampleRate = rate
                channelCount = unsafe Int(frame.pointee.ch_layout.nb_channels)
            } else if rate != sampleRate, !followsRates {
                throw MediaError(
                    .unsupported, operation: "avcodec_receive_frame", subject: location.subject,
                    reason: "changes from \(sampleRate) to \(rate) frames a second on its way;"
                        + " split or convert it")
            }
            let converted = unsafe converter.append(frame)
            guard converted >= 0 else {
                if unsafe frame.pointee.ch_layout.nb_channels > Downmix.channelsMax {
                    throw MediaError(
                        .unsupported, operation: "swr_init", subject: location.subject,
                        reason: "has \(channelCount) channels, and \(Downmix.channelsMax) are the "
                            + "most that can be mixed; convert it to fewer")
                }
                throw MediaError(library: converted, operation: "swr_convert", location: location)
            }
        }
    }

    /// Frames that the last packet yielded.
    var outputCount: Int { converter.count }

    /// Interleaved stereo, valid until the next ``decode(_:)``.
    var output: UnsafeMutableBufferPointer<Float> {
        unsafe UnsafeMutableBufferPointer(rebasing: converter.buffer[..<(2 * converter.count)])
    }

    /// Cuts the output to `count` frames or fills it up with silence.
    func setOutputCount(_ count: Int) { converter.setCount(count) }

    /// `flac`, `aac`, `mp3float` …
    var codecName: String {
        unsafe String(cString: avcodec_get_name(codec.pointee.id))
    }
}
