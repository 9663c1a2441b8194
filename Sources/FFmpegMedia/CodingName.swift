import CTuttiFFmpeg
import TuttiPlayout

/// What a stream's coding is called, for people, and what FFmpeg is known to lack.
enum CodingName {
    /// `FLAC (Free Lossless Audio Codec)`, `xHE-AAC (MPEG-D USAC)`, `FLAC with 32 bits a sample` …
    static func text(of parameters: UnsafeMutablePointer<AVCodecParameters>) -> String {
        if unsafe isExtendedAAC(parameters) { return "xHE-AAC (MPEG-D USAC)" }
        if let bits = unsafe flacBits(parameters), bits > 24 {
            return "FLAC with \(bits) bits a sample"
        }
        let id = unsafe parameters.pointee.codec_id
        if let descriptor = unsafe avcodec_descriptor_get(id) {
            return unsafe String(
                cString: descriptor.pointee.long_name ?? descriptor.pointee.name)
        }
        let tag = unsafe parameters.pointee.codec_tag
        let mark = (0..<4).map { UInt8(truncatingIfNeeded: tag >> (8 * $0)) }
        let isText = mark.allSatisfy { (0x20..<0x7F).contains($0) }
        let name = isText ? String(decoding: mark, as: UTF8.self) : "0x" + String(tag, radix: 16)
        return "a coding that it does not know (\(name))"
    }

    /// The same as an error.
    static func cannotDecode(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>, _ operation: String,
        _ location: MediaLocation
    ) -> MediaError {
        let version = avcodec_version() >> 16
        return unsafe MediaError(
            .unsupported, operation: operation, subject: location.subject,
            reason: "is \(text(of: parameters)), which FFmpeg as installed here (libavcodec "
                + "\(version)) cannot decode; convert it, for example to FLAC with 24 bits")
    }

    /// Whether what does not decode is whole, and FFmpeg too old for it.
    static func isBeyondLibrary(_ parameters: UnsafeMutablePointer<AVCodecParameters>) -> Bool {
        unsafe isExtendedAAC(parameters) || flacBits(parameters) ?? 0 > 24
    }

    /// Bits a sample in a FLAC's header (RFC 9639, 8.2).
    private static func flacBits(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>
    ) -> Int? {
        guard unsafe parameters.pointee.codec_id == AV_CODEC_ID_FLAC,
            let header = unsafe parameters.pointee.extradata,
            unsafe parameters.pointee.extradata_size >= 14
        else { return nil }
        return unsafe (Int(header[12] & 1) << 4 | Int(header[13] >> 4)) + 1
    }

    /// Audio object type 42 of ISO/IEC 14496-3, 1.6.2.1: five bits that are all set, then six.
    private static func isExtendedAAC(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>
    ) -> Bool {
        guard unsafe parameters.pointee.codec_id == AV_CODEC_ID_AAC,
            let header = unsafe parameters.pointee.extradata,
            unsafe parameters.pointee.extradata_size >= 2
        else { return false }
        let word = unsafe Int(header[0]) << 8 | Int(header[1])
        return word >> 11 == 31 && word >> 5 & 63 == 42 - 32
    }
}
