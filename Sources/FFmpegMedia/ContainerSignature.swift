import Glibc
import TuttiPlayout

/// What the first bytes of a file say about its container.
///
/// Asking each of FFmpeg's 300 demuxers touches 3 MB of their code. Most files begin with a mark
/// that only one of them takes.
enum ContainerSignature {
    /// Bytes of a file that tell.
    static let length = 12

    /// - Returns: FFmpeg's name for the container; `nil` where the bytes are no such mark, the file
    ///   cannot be read, or a tag comes first.
    static func container(ofFile path: String) -> String? {
        let descriptor = unsafe open(path.cFileName, O_RDONLY | O_CLOEXEC)
        return descriptor < 0 ? nil : container(of: OpenFile(descriptor))
    }

    /// The same of a file that is open.
    static func container(of file: OpenFile) -> String? {
        let bytes = file.beginning(length)
        return bytes.count == length ? container(of: bytes) : nil
    }

    /// - Parameter bytes: the first ``length`` of a file.
    static func container(of bytes: [UInt8]) -> String? {
        let words = stride(from: 0, to: 12, by: 4).map {
            String(decoding: bytes[$0..<$0 + 4], as: UTF8.self)
        }
        switch (words[0], words[1], words[2]) {
        case ("fLaC", _, _): return "flac"  // RFC 9639
        case ("OggS", _, _): return "ogg"  // RFC 3533
        case ("RIFF", _, "WAVE"): return "wav"  // Multimedia Programming Interface 1.0
        case ("RIFF", _, "AVI "): return "avi"  // Microsoft's AVI RIFF File Reference
        case (".snd", _, _): return "au"  // Sun's audio(4)
        case ("TTA1", _, _): return "tta"  // TTA1 Technical Information
        case ("FORM", _, "AIFF"), ("FORM", _, "AIFC"): return "aiff"  // Apple's AIFF-C, 1991
        case ("caff", _, _): return "caf"  // Apple Core Audio Format Specification
        case ("wvpk", _, _): return "wv"  // WavPack 4 & 5 Binary File Format
        case (_, "ftyp", _): return "mov"  // ISO/IEC 14496-12
        default: break
        }
        return bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) ? "matroska" : nil  // RFC 8794
    }
}
