/// What `ffmpeg` of Debian 12 can write and our opener accepts.
extension Corpus {
    static let kinds = (plain + lossless + transforms + predictions).flatMap { $0 }

    private static let everyRate = [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 192_000]
    private static let upTo48 = Array(everyRate[..<5])
    private static let upTo96 = Array(everyRate[..<6])
    private static let dolby = [44_100, 48_000]
    private static let studio = Array(everyRate[3...])

    /// Rates that a container takes, where they are not all.
    private static let takes = [
        "flv": [11_025, 22_050, 44_100], "vob": [48_000, 96_000],
    ]
    /// What `ffmpeg` calls a container that no ending of a name means to it.
    private static let formats = ["aifc": "aiff", "vob": "vob", "mpg": "mpeg", "pieces.mp4": "mp4"]

    /// One coding in each of several containers.
    ///
    /// - Parameters:
    ///   - coder: its name, and what else it is told.
    ///   - containers: endings of names, which tell `ffmpeg` the container.
    private static func each(
        _ containers: String, _ coder: String, _ promise: CorpusKind.Promise,
        _ packet: CorpusPacket = .frames(1_024), _ rates: [Int] = everyRate,
        _ channels: [Int] = [1, 2]
    ) -> [CorpusKind] {
        containers.split(separator: " ").map { container in
            let ending = String(container)
            let format = formats[ending].map { " -f \($0)" } ?? ""
            let pieces = ending == "pieces.mp4" ? " -movflags frag_keyframe+empty_moov" : ""
            let options = "-strict -2 -c:a \(coder)\(format)\(pieces)"
            return CorpusKind(
                name: "\(coder.prefix { $0 != " " }).\(ending)", promise: promise, packet: packet,
                rates: rates.filter { takes[ending]?.contains($0) ?? true }, channels: channels,
                options: options.split(separator: " ").map(String.init))
        }
    }

    private static let many = [1, 2, 6, 8]

    /// Samples one after the other.
    private static let plain = [
        each(
            "wav caf mov mka avi nut", "pcm_s16le", .samples, .frames(1_024), everyRate,
            many),
        each("voc asf flv", "pcm_s16le", .samples),
        each("aiff au", "pcm_s16be", .samples, .frames(1_024), everyRate, many),
        each("wav", "pcm_s24le -rf64 always", .samples, .frames(1_024), everyRate, many),
        each("w64", "pcm_s16le", .padded(upTo: 3), .frames(1_024), everyRate, many),
        each("sox", "pcm_s32le", .samples, .frames(1_024), everyRate, many),
        each("mov aiff caf", "pcm_s24be", .samples, .frames(1_024), everyRate, many),
        each("mkv", "pcm_f32le", .samples, .frames(1_024), everyRate, many),
        each("aifc au", "pcm_f32be", .samples, .frames(1_024), everyRate, many),
        each("wav", "pcm_f64le", .samples, .frames(1_024), everyRate, many),
        each("wav au", "pcm_alaw", .count, .frames(1_024), everyRate, many),
        each("mov caf", "pcm_mulaw", .count),
        each("aiff", "pcm_s8", .count),
        each("ast", "pcm_s16be_planar", .samples, .frames(10_080), everyRate, [1, 2, 6, 8]),
        each("vob", "pcm_dvd", .samples),
        each("ts", "s302m", .samples, .frames(1_024), [48_000], [2, 6, 8]),
    ]

    private static let lossless = [
        each("flac oga mka caf", "flac", .samples, .flac, everyRate, many),
        each("mp4", "flac", .samples, .flac, studio, many),
        // With more channels its encoder aborts where a packet has few frames.
        each("m4a caf mka", "alac", .samples, .frames(4_096)),
        // FFmpeg's Matroska of TTA lacks the number of frames, without which nothing decodes it.
        each("tta", "tta", .samples, .trueAudio, everyRate, many),
        each("wv mka", "wavpack", .samples, .wavPack, everyRate, many),
        each("thd", "truehd", .about(1_000), .frames(40), studio, [2, 6]),
        each("mlp", "mlp", .about(1_000), .frames(40), studio, [1, 2, 6]),
    ]

    private static let transforms = [
        each("mp3", "libmp3lame", .count, .frames(1_152), upTo48),
        each("mp4", "libmp3lame", .count, .frames(1_152), Array(upTo48[2...])),
        each(
            "mka avi flv wav ts nut asf", "libmp3lame", .about(2_304), .frames(1_152),
            upTo48),
        each("mp2 ts mka mpg", "mp2", .about(2_304), .frames(1_152), Array(upTo48[2...])),
        each("m4a 3gp mov", "aac", .count, .frames(1_024), upTo96, many),
        each(
            "aac ts mka pieces.mp4", "aac", .about(2_048), .frames(1_024), upTo96,
            [1, 2, 6]),
        each("latm flv", "aac", .about(2_048), .frames(1_024), upTo96),
        each(
            "ac3 mka mp4 ts avi vob", "ac3", .about(3_072), .frames(1_536), dolby,
            [1, 2, 6]),
        each("rm", "ac3", .about(3_072), .frames(1_536), dolby),
        each("eac3 mka ts", "eac3", .about(3_072), .frames(1_536), dolby, [1, 2, 6]),
        each("dts mka", "dca", .about(1_024), .frames(512), upTo48),
        each("opus webm mp4", "libopus", .count, .frames(960), [48_000], many),
        each("ts", "libopus", .about(1_920), .frames(960), [48_000]),
        each("ogg", "libvorbis", .count, .frames(1_024), everyRate, [1, 2, 6]),
        each("mka", "libvorbis", .about(8_192), .frames(1_024), everyRate, [1, 2, 6]),
        each("asf", "wmav1", .about(8_192), .frames(2_048), upTo48),
        each("wma mka", "wmav2", .about(8_192), .frames(2_048), upTo48),
    ]

    /// Sample is predicted from sample.
    private static let predictions = [
        each("wav avi", "adpcm_ima_wav", .about(4_096), .frames(2_041)),
        each("wav", "adpcm_ms", .about(4_096), .frames(1_012)),
        each("wav", "adpcm_yamaha", .about(4_096), .frames(1_024)),
        each("mov", "adpcm_ima_qt", .about(4_096), .frames(64)),
        each("flv", "adpcm_swf", .about(8_192), .frames(4_096)),
        each("adx", "adpcm_adx", .about(32), .frames(32)),
        each("wav", "libgsm_ms", .about(640), .frames(320), [8_000], [1]),
        each("flv", "nellymoser", .about(1_024), .frames(256), upTo48, [1]),
        each("rm", "real_144", .about(640), .frames(160), [8_000], [1]),
        each("oga", "libspeex", .about(1_280), .frames(160), [8_000]),
    ]
}
