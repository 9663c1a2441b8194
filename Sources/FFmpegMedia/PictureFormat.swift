import CTuttiFFmpeg
import TuttiPlayout

/// The kinds of pictures that files carry, told by their first bytes: what a tag says of them is
/// often wrong.
///
/// Pictures come from strangers. A decoder cannot be stopped on its way, so what would keep it busy,
/// or make it take memory without end, is found before it begins.
enum PictureFormat: CaseIterable {
    case jpeg, png, gif, bmp, webp

    /// - Returns: `nil` for what begins like none of them.
    init?(_ bytes: [UInt8]) {
        switch bytes.prefix(12) {
        case let start where start.starts(with: [0xFF, 0xD8, 0xFF]): self = .jpeg
        case let start where start.starts(with: Self.pngMark): self = .png
        case let start where start.starts(with: "GIF8".utf8): self = .gif
        case let start where start.starts(with: "BM".utf8): self = .bmp
        case let start where start.starts(with: "RIFF".utf8) && start.suffix(4) == webpMark:
            self = .webp
        default: return nil
        }
    }

    var codec: AVCodecID {
        switch self {
        case .jpeg: AV_CODEC_ID_MJPEG
        case .png: AV_CODEC_ID_PNG
        case .gif: AV_CODEC_ID_GIF
        case .bmp: AV_CODEC_ID_BMP
        case .webp: AV_CODEC_ID_WEBP
        }
    }

    /// What is given to the decoder.
    ///
    /// - Returns: `nil` for what would keep it busy for too long.
    func decodable(_ bytes: [UInt8]) -> [UInt8]? {
        switch self {
        case .jpeg: Self.jpegWork(bytes) <= Self.mostWork ? bytes : nil
        case .png: Self.withoutNotes(bytes)
        case .gif, .bmp, .webp: bytes
        }
    }

    private static let pngMark: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    // MARK: JPEG

    /// Pixels times scans. A progressive picture has about ten scans and may have any number; each
    /// goes through all of its pixels, 100 million a second. Fewer would refuse large covers.
    private static let mostWork = 400_000_000

    /// Pixels of the largest frame, times the scans. Marks within a comment or a thumbnail count
    /// too: nothing can be hidden from it.
    static func jpegWork(_ bytes: [UInt8]) -> Int {
        var (pixels, scans) = (1, 0)
        unsafe bytes.withUnsafeBufferPointer { bytes in
            for index in 0..<max(0, bytes.count - 1) where unsafe bytes[index] == 0xFF {
                switch unsafe bytes[index + 1] {
                case 0xDA: scans += 1
                case 0xC0...0xC3 where index + 8 < bytes.count:
                    func word(_ at: Int) -> Int {
                        unsafe Int(bytes[index + at]) << 8 | Int(bytes[index + at + 1])
                    }
                    pixels = max(pixels, word(5) * word(7))
                default: break
                }
            }
        }
        let (work, isTooMuch) = pixels.multipliedReportingOverflow(by: scans)
        return isTooMuch ? .max : work
    }

    // MARK: PNG

    /// Only the chunks that hold the picture: texts and colour profiles are packed, and unpacked they
    /// may be a thousand times as long.
    ///
    /// - Returns: `nil` where chunks do not follow one another.
    static func withoutNotes(_ bytes: [UInt8]) -> [UInt8]? {
        var kept = pngMark
        var rest = bytes.dropFirst(kept.count)
        let (headLength, tailLength) = (8, 4)
        while rest.count >= headLength + tailLength {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            let name = rest.dropFirst(4).prefix(4)
            let whole = headLength + length + tailLength
            // A file that was cut off still shows its beginning.
            let chunk = rest.prefix(whole)
            if ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"].contains(where: name.elementsEqual) {
                kept += chunk
            }
            rest = rest.dropFirst(whole)
        }
        return kept.count > pngMark.count ? kept : nil
    }
}

private let webpMark = ArraySlice("WEBP".utf8)

extension ArraySlice<UInt8> {
    fileprivate func elementsEqual(_ text: String) -> Bool { elementsEqual(text.utf8) }
}
