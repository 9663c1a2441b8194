import CTuttiFFmpeg

/// How many frames a packet decodes to, told from its bytes without decoding it.
///
/// This is what makes frame numbers exact where timestamps are not (milliseconds in Matroska, none
/// in ADTS, wrong ones in the last page of Ogg): counting from the start needs no timestamp.
@safe
final class PacketLength {
    enum Rule: Equatable {
        /// Every packet alike: MP3, AAC, AC-3, E-AC-3.
        case fixed(Int)
        /// Plain samples: bytes divided by this.
        case bytesPerFrame(Int)
        case flac, opus, vorbis
        /// Given in the last packet only, this many frames otherwise.
        case alac(Int)
        /// Only the decoder knows.
        case decoded
    }

    private(set) var rule: Rule
    private var vorbis: OpaquePointer?
    private var isFirst = true
    private let isMPEG: Bool

    /// - Parameter probed: frames that the decoder made of the second packet, where its length is
    ///   that of all.
    init(for parameters: UnsafeMutablePointer<AVCodecParameters>, probed: Int) {
        let bits = unsafe Int(av_get_exact_bits_per_sample(parameters.pointee.codec_id))
        let channels = unsafe Int(parameters.pointee.ch_layout.nb_channels)
        isMPEG = unsafe [AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3].contains(
            parameters.pointee.codec_id)
        switch unsafe parameters.pointee.codec_id {
        case AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3, AV_CODEC_ID_AAC, AV_CODEC_ID_AC3,
            AV_CODEC_ID_EAC3:
            rule = probed > 0 ? .fixed(probed) : .decoded
        case AV_CODEC_ID_FLAC: rule = .flac
        case AV_CODEC_ID_OPUS: rule = .opus
        case AV_CODEC_ID_VORBIS:
            unsafe vorbis = unsafe av_vorbis_parse_init(
                parameters.pointee.extradata, parameters.pointee.extradata_size)
            rule = unsafe vorbis == nil ? .decoded : .vorbis
        case AV_CODEC_ID_ALAC:
            // CAF says it; in MP4 it stands in what only the decoder reads.
            let stated = unsafe Int(parameters.pointee.frame_size)
            let size = stated > 0 ? stated : probed
            rule = size > 0 ? .alac(size) : .decoded
        case let id
        where id.rawValue >= AV_CODEC_ID_FIRST_AUDIO.rawValue
            && id.rawValue < AV_CODEC_ID_ADPCM_IMA_QT.rawValue && bits >= 8 && channels > 0:
            rule = .bytesPerFrame(bits / 8 * channels)
        default: rule = .decoded
        }
    }

    deinit { unsafe av_vorbis_parse_free(&vorbis) }

    /// To be called where decoding begins anew.
    func restart() {
        isFirst = true
        if unsafe vorbis != nil { unsafe av_vorbis_parse_reset(vorbis) }
    }

    /// Packets have that many frames from here on, where all are alike.
    func setFixed(_ frames: Int) {
        if case .fixed = rule, frames > 0 { rule = .fixed(frames) }
    }

    /// Frames of `packet`, which must follow the previous one; `nil` when only the decoder knows.
    func frames(of packet: UnsafeMutablePointer<AVPacket>) -> Int? {
        guard let data = unsafe packet.pointee.data, unsafe packet.pointee.size > 0 else {
            return 0
        }
        let bytes = unsafe UnsafeBufferPointer(start: data, count: Int(packet.pointee.size))
        defer { isFirst = false }
        switch rule {
        case .fixed(let frames):
            // What lies between two frames of MPEG audio is no frame.
            let isFrame = unsafe !isMPEG || bytes.count >= 4 && bytes[0] == 0xFF && bytes[1] >= 0xE0
            return isFrame ? frames : 0
        case .bytesPerFrame(let size): return bytes.count / size
        case .flac: return unsafe Self.flacFrames(bytes)
        case .opus: return unsafe Self.opusFrames(bytes)
        // No packet is longer than the usual: a number beyond it is damage, and decodes to nothing.
        case .alac(let usual): return unsafe min(Self.alacFrames(bytes) ?? usual, usual)
        case .vorbis:
            let frames = unsafe av_vorbis_parse_frame(vorbis, data, Int32(bytes.count))
            // The first block only prepares the overlap with the second.
            return isFirst ? 0 : max(0, Int(frames))
        case .decoded: return nil
        }
    }
}

extension PacketLength {
    /// Block size from a FLAC frame header (RFC 9639, 9.1).
    static func flacFrames(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        guard bytes.count >= 8, unsafe bytes[0] == 0xFF else { return 0 }
        let code = unsafe Int(bytes[2] >> 4)
        switch code {
        case 1: return 192
        case 2...5: return 576 << (code - 2)
        case 6, 7:
            // The coded number before it is 1 to 7 bytes long, as in UTF-8.
            let lead = unsafe bytes[4]
            let length = lead < 0x80 ? 1 : (~lead).leadingZeroBitCount
            let at = 4 + length
            guard at + 1 < bytes.count else { return 0 }
            let first = unsafe Int(bytes[at])
            return code == 6 ? first + 1 : unsafe (first << 8 | Int(bytes[at + 1])) + 1
        case 8...15: return 256 << (code - 8)
        default: return 0
        }
    }

    /// Frames at 48 kHz from an Opus packet's first two bytes (RFC 6716, 3.1 and 3.2).
    static func opusFrames(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        let configuration = unsafe Int(bytes[0] >> 3)
        let length =
            switch configuration {
            case 0..<12: [480, 960, 1920, 2880][configuration & 3]
            case 12..<16: [480, 960][configuration & 1]
            default: [120, 240, 480, 960][configuration & 3]
            }
        switch unsafe bytes[0] & 3 {
        case 0: return length
        case 1, 2: return 2 * length
        default: return unsafe bytes.count > 1 ? length * Int(bytes[1] & 0x3F) : 0
        }
    }

    /// The explicit length of a shortened ALAC packet, `nil` when it has the usual one.
    static func alacFrames(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        guard bytes.count >= 7 else { return 0 }
        // 3 bits element, 4 instance, 12 unused, 1 "has length", 2 shift, 1 verbatim, 32 length.
        guard unsafe bytes[2] & 0x10 != 0 else { return nil }
        var value = 0
        for index in 2..<7 { value = unsafe value << 8 | Int(bytes[index]) }
        return (value >> 1) & 0xFFFF_FFFF
    }
}
