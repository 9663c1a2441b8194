import CTuttiFFmpeg
import TuttiPlayout

/// The streams of a container as tracks.
extension Demuxer {
    /// A file may claim any number of streams.
    private static let mostTracks = 1_000
    /// Bytes of UTF-8; a name that fills a screen is none.
    static let longestTitle = 1_024
    /// Bytes of UTF-8; the longest tag of BCP 47 that it names as an example has 35.
    static let longestLanguage = 64

    /// All but pictures, which are the item's artwork, and attached files.
    var tracks: [MediaTrack] {
        let count = unsafe min(Int(context.pointee.nb_streams), Self.mostTracks)
        return (0..<count).compactMap { index in
            guard let stream = unsafe context.pointee.streams[index],
                let kind = unsafe Self.kind(of: stream)
            else { return nil }
            return unsafe makeTrack(index, kind, stream)
        }
    }

    private static func kind(of stream: UnsafeMutablePointer<AVStream>) -> MediaTrack.Kind? {
        guard unsafe stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0 else {
            return nil
        }
        switch unsafe stream.pointee.codecpar.pointee.codec_type {
        case AVMEDIA_TYPE_AUDIO: return .audio
        case AVMEDIA_TYPE_VIDEO: return .video
        case AVMEDIA_TYPE_SUBTITLE: return .text
        case AVMEDIA_TYPE_ATTACHMENT: return nil
        default: return .other
        }
    }

    private func makeTrack(
        _ index: Int, _ kind: MediaTrack.Kind, _ stream: UnsafeMutablePointer<AVStream>
    ) -> MediaTrack {
        let parameters = unsafe stream.pointee.codecpar!
        let disposition = unsafe stream.pointee.disposition
        let bitRate = unsafe Int(clamping: parameters.pointee.bit_rate)
        var track = MediaTrack(
            id: index, kind: kind,
            codec: unsafe String(cString: avcodec_get_name(parameters.pointee.codec_id)),
            characteristics: Self.characteristics(of: kind, disposition),
            isDefault: disposition & AV_DISPOSITION_DEFAULT != 0,
            isDecodable: unsafe Self.isDecodable(parameters, kind)
                && !Self.isProtected(stream),
            bitRate: bitRate > 0 ? bitRate : nil)
        let metadata = unsafe stream.pointee.metadata
        track.title = unsafe MediaInfo.text("title", in: metadata)?.cut(to: Self.longestTitle)
        track.language = unsafe MediaInfo.text("language", in: metadata)
            .flatMap(Self.language)
        if kind == .audio {
            track.sampleRate = unsafe max(0, Int(parameters.pointee.sample_rate))
            track.channelCount = unsafe max(0, Int(parameters.pointee.ch_layout.nb_channels))
            track.channelLayout = unsafe Self.layout(of: parameters)
        }
        return track
    }

    /// `nil` for what says that nobody knows.
    private static func language(_ tag: String) -> String? {
        tag.lowercased() == "und" ? nil : tag.cut(to: longestLanguage)
    }

    /// Each mark of FFmpeg with what it means here, and for which kinds.
    private static let meanings: [(Int32, Set<MediaTrack.Kind>, MediaCharacteristic)] = [
        (AV_DISPOSITION_DEFAULT, [.audio, .video, .text], .isMainProgramContent),
        (AV_DISPOSITION_DUB, [.audio, .text], .isDubbedTranslation),
        (AV_DISPOSITION_ORIGINAL, [.audio, .video, .text], .isOriginalContent),
        (AV_DISPOSITION_COMMENT, [.audio, .video, .text], .isAuxiliaryContent),
        // Without the voices, or to be mixed with another.
        (AV_DISPOSITION_CLEAN_EFFECTS, [.audio], .isAuxiliaryContent),
        (AV_DISPOSITION_DEPENDENT, [.audio, .video], .isAuxiliaryContent),
        (AV_DISPOSITION_FORCED, [.text], .containsOnlyForcedSubtitles),
        // Of sound it means voices that are easier to follow.
        (AV_DISPOSITION_HEARING_IMPAIRED, [.text], .transcribesSpokenDialog),
        (AV_DISPOSITION_CAPTIONS, [.text], .transcribesSpokenDialog),
        (AV_DISPOSITION_VISUAL_IMPAIRED, [.audio, .text], .describesVideo),
        (AV_DISPOSITION_DESCRIPTIONS, [.audio, .text], .describesVideo),
    ]

    static func characteristics(
        of kind: MediaTrack.Kind, _ disposition: Int32
    ) -> Set<MediaCharacteristic> {
        let marked = meanings.filter { disposition & $0.0 != 0 && $0.1.contains(kind) }.map(\.2)
        switch kind {
        case .audio: return Set(marked + [.audible])
        case .video: return Set(marked + [.visual])
        case .text: return Set(marked + [.legible])
        case .other: return Set(marked)
        }
    }

    private static func isDecodable(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>, _ kind: MediaTrack.Kind
    ) -> Bool {
        let id = unsafe parameters.pointee.codec_id
        guard unsafe avcodec_find_decoder(id) != nil else { return false }
        switch kind {
        case .audio:
            let channels = unsafe Int(parameters.pointee.ch_layout.nb_channels)
            return unsafe !CodingName.isBeyondLibrary(parameters)
                && (1...Downmix.channelsMax).contains(channels)
        case .text: return TextDecoder.isText(id)
        case .video: return true
        case .other: return false
        }
    }

    /// - Returns: `nil` where the file gives its channels no places.
    private static func layout(
        of parameters: UnsafeMutablePointer<AVCodecParameters>
    ) -> String? {
        guard unsafe parameters.pointee.ch_layout.order != AV_CHANNEL_ORDER_UNSPEC else {
            return nil
        }
        var text = [CChar](repeating: 0, count: 256)
        guard
            unsafe av_channel_layout_describe(
                &parameters.pointee.ch_layout, &text, text.count) > 0
        else { return nil }
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension String {
    /// Its beginning, in at most so many bytes of UTF-8.
    func cut(to byteCount: Int) -> String {
        guard utf8.count > byteCount else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: byteCount)
        while end > startIndex, end.samePosition(in: unicodeScalars) == nil {
            end = utf8.index(before: end)
        }
        return String(self[..<end])
    }
}
