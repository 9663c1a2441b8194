import CTuttiALSA
import Glibc
import TuttiPlayout

/// What a PCM was opened with. `@safe`: whoever takes the handle frees it.
@safe
struct ALSASetup {
    let pcm: OpaquePointer
    let name: String
    /// `bufferFrames` is the queue that we keep; the card may hold more (`cardFrames`).
    let format: OutputFormat
    let sampleFormat: SampleFormat
    /// Bits of a sample that the card converts, as far as it or a plug-in before it says (`msbits`);
    /// `nil`: nobody does.
    let significantBits: Int?
    /// Frames that the card's own ring holds.
    let cardFrames: Int
    /// Usual rates that it can be opened with.
    let sampleRates: [Int]
    let stampClock: StampClock
}

/// Opens a PCM and agrees with it on format, rate, channels, period, buffer and time stamps.
///
/// The order of wishes: samples as wide as the card takes; the preferred rate without a plug-in
/// resampling behind our back (we resample ourselves, and know the exact position); two channels;
/// a period of a quarter of the wanted buffer but at most 20 ms, 10 ms where the pointer moves by
/// the period. A PCM with a fixed, larger ring
/// (dmix) is filled only up to the wanted buffer: latency is ours to choose.
///
/// The PCM is opened without blocking and stays so: a card in use is an error now, not a hang.
struct ALSANegotiation {
    let name: String
    let preferredSampleRate: Int
    let bufferMilliseconds: Int
    /// In the order of preference.
    var sampleFormats = SampleFormat.allCases

    /// Longest period: how often the ratio is set, and the position read at least every other time.
    /// A crystal needs to be looked at a few times a second.
    static let periodMillisecondsMax = 20
    /// The same for cards whose pointer moves by a period or by packets of the bus, as the driver
    /// says: what it says more often is more precise.
    static let batchPeriodMillisecondsMax = 10
    /// Fewest periods in a queue; below, a late wake-up is an underrun.
    static let periodsMin = 2
    /// Of recordings, and what cards are made for.
    static let usualRates = [
        32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000, 352_800, 384_000,
    ]

    func open() throws(OutputError) -> ALSASetup {
        tutti_alsa_silence()
        var opened: OpaquePointer?
        let code = unsafe snd_pcm_open(&opened, name, SND_PCM_STREAM_PLAYBACK, SND_PCM_NONBLOCK)
        // What a name means may depend on which servers run: the next attempt reads it again.
        if code < 0 { snd_config_update_free_global() }
        try check(code, "snd_pcm_open")
        guard let pcm = unsafe opened else {
            throw ALSAFailure.error("snd_pcm_open", -ENODEV, pcm: name)
        }
        do throws(OutputError) {
            let hardware: Hardware
            do throws(OutputError) {
                hardware = try unsafe chooseHardware(pcm, resampling: false)
            } catch {
                hardware = try unsafe chooseHardware(pcm, resampling: true)
            }
            let stampClock = try unsafe chooseSoftware(pcm, hardware)
            return unsafe ALSASetup(
                pcm: pcm, name: name, format: hardware.format,
                sampleFormat: hardware.sampleFormat, significantBits: hardware.significantBits,
                cardFrames: hardware.cardFrames, sampleRates: hardware.sampleRates,
                stampClock: stampClock)
        } catch {
            unsafe snd_pcm_close(pcm)
            throw error
        }
    }

    private struct Hardware {
        var format: OutputFormat
        var sampleFormat: SampleFormat
        var significantBits: Int?
        var cardFrames: Int
        var sampleRates: [Int]
    }

    private func chooseHardware(
        _ pcm: OpaquePointer, resampling: Bool
    ) throws(OutputError) -> Hardware {
        var allocated: OpaquePointer?
        try check(unsafe snd_pcm_hw_params_malloc(&allocated), "snd_pcm_hw_params_malloc")
        guard let wish = unsafe allocated else {
            throw ALSAFailure.error("snd_pcm_hw_params_malloc", -ENOMEM, pcm: name)
        }
        defer { unsafe snd_pcm_hw_params_free(wish) }

        try check(unsafe snd_pcm_hw_params_any(pcm, wish), "snd_pcm_hw_params_any")
        try check(
            unsafe snd_pcm_hw_params_set_rate_resample(pcm, wish, resampling ? 1 : 0),
            "snd_pcm_hw_params_set_rate_resample")
        try check(
            unsafe snd_pcm_hw_params_set_access(pcm, wish, SND_PCM_ACCESS_RW_INTERLEAVED),
            "snd_pcm_hw_params_set_access", hint: "use plughw: instead of hw:")
        let sampleFormat = try unsafe chooseSampleFormat(pcm, wish)
        let channels = try unsafe chooseChannels(pcm, wish)

        let rates = Self.usualRates.filter {
            unsafe snd_pcm_hw_params_test_rate(pcm, wish, UInt32($0), 0) == 0
        }
        var rate = UInt32(preferredSampleRate)
        try check(
            unsafe snd_pcm_hw_params_set_rate_near(pcm, wish, &rate, nil),
            "snd_pcm_hw_params_set_rate_near")
        let wanted = max(Int(rate) * bufferMilliseconds / 1000, 64)
        let isBatch = unsafe snd_pcm_hw_params_is_batch(wish) == 1
        let longest = isBatch ? Self.batchPeriodMillisecondsMax : Self.periodMillisecondsMax
        var period = snd_pcm_uframes_t(
            min(Int(rate) * longest / 1000, wanted / OutputFormat.usualPeriods))
        try check(
            unsafe snd_pcm_hw_params_set_period_size_near(pcm, wish, &period, nil),
            "snd_pcm_hw_params_set_period_size_near")
        var ring = snd_pcm_uframes_t(max(wanted, Self.periodsMin * Int(period)))
        try check(
            unsafe snd_pcm_hw_params_set_buffer_size_near(pcm, wish, &ring),
            "snd_pcm_hw_params_set_buffer_size_near")
        try check(unsafe snd_pcm_hw_params(pcm, wish), "snd_pcm_hw_params")
        try check(
            unsafe snd_pcm_hw_params_get_period_size(wish, &period, nil),
            "snd_pcm_hw_params_get_period_size")
        try check(
            unsafe snd_pcm_hw_params_get_buffer_size(wish, &ring),
            "snd_pcm_hw_params_get_buffer_size")

        // A PCM may have one period only (null): cut our own.
        let periodFrames = max(1, min(Int(period), Int(ring) / Self.periodsMin))
        let queue = min(Int(ring), max(wanted, Self.periodsMin * periodFrames))
        let description = unsafe describe(pcm)
        return Hardware(
            format: OutputFormat(
                sampleRate: Int(rate), channelCount: channels, periodFrames: periodFrames,
                bufferFrames: queue / periodFrames * periodFrames),
            sampleFormat: sampleFormat,
            significantBits: Self.significantBits(describedBy: description),
            cardFrames: Int(ring),
            sampleRates: resampling || Self.isServer(describedBy: description)
                ? [Int(rate)] : rates)
    }

    /// A sound server takes any rate and resamples to its own: nothing is won by another one.
    static func isServer(describedBy text: String) -> Bool {
        text.contains("PulseAudio") || text.contains("PipeWire")
    }

    /// The library's description of the PCM and of all that it plays through; empty where it has none.
    private func describe(_ pcm: OpaquePointer) -> String {
        var opened: OpaquePointer?
        guard unsafe snd_output_buffer_open(&opened) == 0, let text = unsafe opened else {
            return ""
        }
        defer { unsafe snd_output_close(text) }
        guard unsafe snd_pcm_dump(pcm, text) == 0 else { return "" }
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe snd_output_buffer_string(text, &start)
        guard let start = unsafe start else { return "" }
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
        return unsafe String(decoding: bytes, as: UTF8.self)
    }

    /// The fewest of the PCM and all that it plays through.
    ///
    /// A plug-in's parameters are of the format that it takes, and `plug` cuts what does not fit into the
    /// card's without dither. What it plays through is in the description only, as `msbits : N` for
    /// each.
    static func significantBits(describedBy text: String) -> Int? {
        text.split(separator: "\n").compactMap { line -> Int? in
            let parts = line.split(separator: " ").filter { $0 != ":" }
            guard parts.count == 2, parts[0] == "msbits" else { return nil }
            return Int(parts[1]).flatMap { $0 > 0 ? $0 : nil }
        }.min()
    }

    private func chooseSampleFormat(
        _ pcm: OpaquePointer, _ wish: OpaquePointer
    ) throws(OutputError) -> SampleFormat {
        for format in sampleFormats
        where unsafe snd_pcm_hw_params_test_format(pcm, wish, format.alsa) == 0 {
            try check(
                unsafe snd_pcm_hw_params_set_format(pcm, wish, format.alsa),
                "snd_pcm_hw_params_set_format")
            return format
        }
        var refusal = ALSAFailure.error("snd_pcm_hw_params_test_format", -EINVAL, pcm: name)
        refusal.reason =
            "takes neither 16-, 24- nor 32-bit samples nor Float; "
            + "let ALSA convert: alsa:plughw:… instead of hw:…, or alsa:plug:NAME"
        throw refusal
    }

    private func chooseChannels(
        _ pcm: OpaquePointer, _ wish: OpaquePointer
    ) throws(OutputError) -> Int {
        var channels: UInt32 = 2
        try check(
            unsafe snd_pcm_hw_params_set_channels_near(pcm, wish, &channels),
            "snd_pcm_hw_params_set_channels_near")
        guard VirtualCardOptions.channelCounts.contains(Int(channels)) else {
            var refusal = ALSAFailure.error(
                "snd_pcm_hw_params_set_channels_near", -EINVAL, pcm: name)
            refusal.reason =
                "has \(channels) channels at least, and this program fills 8 at most; let ALSA "
                + "choose two of them: alsa:plughw:… instead of hw:…, or alsa:plug:NAME"
            throw refusal
        }
        return Int(channels)
    }

    /// Never starts by itself, stops when dry, stamps with the clock that nobody steers.
    private func chooseSoftware(
        _ pcm: OpaquePointer, _ hardware: Hardware
    ) throws(OutputError) -> StampClock {
        var allocated: OpaquePointer?
        try check(unsafe snd_pcm_sw_params_malloc(&allocated), "snd_pcm_sw_params_malloc")
        guard let wish = unsafe allocated else {
            throw ALSAFailure.error("snd_pcm_sw_params_malloc", -ENOMEM, pcm: name)
        }
        defer { unsafe snd_pcm_sw_params_free(wish) }
        try check(unsafe snd_pcm_sw_params_current(pcm, wish), "snd_pcm_sw_params_current")
        var boundary: snd_pcm_uframes_t = 0
        try check(
            unsafe snd_pcm_sw_params_get_boundary(wish, &boundary),
            "snd_pcm_sw_params_get_boundary")
        try check(
            unsafe snd_pcm_sw_params_set_start_threshold(pcm, wish, boundary),
            "snd_pcm_sw_params_set_start_threshold")
        try check(
            unsafe snd_pcm_sw_params_set_stop_threshold(
                pcm, wish, snd_pcm_uframes_t(hardware.cardFrames)),
            "snd_pcm_sw_params_set_stop_threshold")
        try check(
            unsafe snd_pcm_sw_params_set_avail_min(
                pcm, wish,
                snd_pcm_uframes_t(
                    hardware.cardFrames - hardware.format.bufferFrames
                        + hardware.format.periodFrames)),
            "snd_pcm_sw_params_set_avail_min")
        try check(
            unsafe snd_pcm_sw_params_set_tstamp_mode(pcm, wish, SND_PCM_TSTAMP_ENABLE),
            "snd_pcm_sw_params_set_tstamp_mode")
        // Refused by old drivers and some plug-ins at one of two places: when asked, or when set.
        for (type, clock) in StampClock.preferred {
            if unsafe snd_pcm_sw_params_set_tstamp_type(pcm, wish, type) < 0 { continue }
            if unsafe snd_pcm_sw_params(pcm, wish) >= 0 { return clock }
        }
        try check(unsafe snd_pcm_sw_params(pcm, wish), "snd_pcm_sw_params")
        return .realTime
    }

    private func check(
        _ code: Int32, _ operation: String, hint: String? = nil
    ) throws(OutputError) {
        guard code < 0 else { return }
        var failure = ALSAFailure.error(operation, code, pcm: name)
        if let hint { failure.reason += "; \(hint)" }
        throw failure
    }
}

extension SampleFormat {
    var alsa: snd_pcm_format_t {
        switch self {
        case .signed32: SND_PCM_FORMAT_S32_LE
        case .signed24: SND_PCM_FORMAT_S24_LE
        case .signed24Packed: SND_PCM_FORMAT_S24_3LE
        case .signed16: SND_PCM_FORMAT_S16_LE
        case .float32: SND_PCM_FORMAT_FLOAT_LE
        }
    }
}
