import CTuttiFFmpeg

/// What the installed FFmpeg can read: distributions build it with different parts.
public enum InstalledCodecs {
    /// What people have on their disks, each with the library's names of decoder and container.
    static let usual: [(title: String, decoder: String, container: String)] = [
        ("WAV", "pcm_s16le", "wav"), ("FLAC", "flac", "flac"), ("MP3", "mp3float", "mp3"),
        ("AAC in MP4", "aac", "mov"), ("ALAC", "alac", "mov"),
        ("Ogg Vorbis", "vorbis", "ogg"), ("Opus", "opus", "ogg"), ("AIFF", "pcm_s16be", "aiff"),
    ]

    /// Formats of ``usual`` that cannot be read here; empty with any ordinary build.
    public static func missing() -> [String] {
        missing(of: usual)
    }

    static func missing(
        of formats: [(title: String, decoder: String, container: String)]
    ) -> [String] {
        formats.filter { _, decoder, container in
            unsafe avcodec_find_decoder_by_name(decoder) == nil
                || av_find_input_format(container) == nil
        }.map(\.title)
    }

    /// All formats that are looked for.
    public static var titles: [String] { usual.map(\.title) }

    /// Whether assets can be fetched from a leader or a web server.
    public static func readsHTTP() -> Bool {
        var opaque: UnsafeMutableRawPointer?
        while let name = unsafe avio_enum_protocols(&opaque, 0) {
            if unsafe String(cString: name) == "http" { return true }
        }
        return false
    }

    /// The library's version, such as `59.27.100`.
    public static var version: String {
        let number = avformat_version()
        return "\(number >> 16).\(number >> 8 & 0xFF).\(number & 0xFF)"
    }
}
