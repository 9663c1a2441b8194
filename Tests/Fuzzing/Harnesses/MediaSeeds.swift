import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Bytes that libavformat's callbacks read as a file.
final class MemoryReader: LibraryReader {
    private let contents: [UInt8]

    init(_ contents: [UInt8]) {
        self.contents = contents
        super.init(part: 0..<Int64.max)
    }

    override var byteCount: Int64 { Int64(contents.count) }
    override var goesBeyondEnd: Bool { true }

    override func fill(
        _ buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int64
    ) throws(MediaError) -> Int {
        let bytes = Self.bytes(contents, offset, buffer.count)
        for (place, byte) in bytes.enumerated() { unsafe buffer[place] = byte }
        return bytes.count
    }

    /// As many as there are from an offset on, which may be beyond the end.
    static func bytes(_ contents: [UInt8], _ offset: Int64, _ count: Int) -> [UInt8] {
        let start = Int(min(max(0, offset), Int64(contents.count)))
        return Array(contents[start...].prefix(max(0, count)))
    }
}

enum MovieSeeds {
    /// A movie of one track with three edits, in the first version of its boxes or the second.
    static func movie(isWide: Bool) -> [UInt8] {
        func word(_ value: Int64, _ width: Int = 4) -> [UInt8] {
            (0..<width).map { UInt8(truncatingIfNeeded: value >> Int64(8 * (width - 1 - $0))) }
        }
        func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
            word(Int64(content.count) + 8) + Array(type.utf8) + content
        }
        let width = isWide ? 8 : 4
        let version = word(isWide ? 1 << 24 : 0)
        func header(_ type: String, _ value: Int64) -> [UInt8] {
            box(type, version + word(0, 2 * width) + word(value) + word(0, width))
        }
        let entries = [(100, -1), (2_000, 1_024), (0, 0)].flatMap { duration, time in
            word(Int64(duration), width) + word(Int64(time), width) + word(0x1_0000)
        }
        let edits = box("edts", box("elst", version + word(3) + entries))
        let track = box(
            "trak", header("tkhd", 1) + edits + box("mdia", header("mdhd", 44_100)))
        // A box may say its size in eight bytes.
        let movie = header("mvhd", 1_000) + track
        let wide = word(1) + Array("moov".utf8) + word(Int64(movie.count) + 16, 8) + movie
        return box("ftyp", Array("M4A ".utf8)) + (isWide ? wide : box("moov", movie))
            + box("mdat", [1, 2, 3])
    }
}

extension MovieSeeds {
    /// Two boxes that end with the largest number.
    static var endless: [UInt8] {
        func box(_ type: String, at offset: Int64) -> [UInt8] {
            [0, 0, 0, 1] + Array(type.utf8)
                + (0..<8).map { UInt8(truncatingIfNeeded: (.max - offset) >> (56 - 8 * $0)) }
        }
        return box("moov", at: 0) + box("free", at: 16)
    }
}

enum ChunkSeeds {
    private static func chunk(
        _ name: String, _ size: UInt64, width: Int, isBig: Bool = false, padding: Int = 0
    ) -> [UInt8] {
        let digits = (0..<width).map { UInt8(truncatingIfNeeded: size >> UInt64(8 * $0)) }
        return Array(name.utf8) + [UInt8](repeating: 0, count: padding)
            + (isBig ? digits.reversed() : digits)
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    /// The first frame of an MP3, which counts a hundred more, in a file that is as long as it says.
    static var promise: [UInt8] {
        let size = 834
        let counts =
            chunk("Info", 15, width: 4, isBig: true) + chunk("", 100, width: 4, isBig: true)
            + chunk("", UInt64(size), width: 4, isBig: true)
        // 576 frames of delay and 1 280 of padding.
        let encoder = Array("LAME3.100".utf8) + zeros(12) + [0x24, 0x05, 0x00]
        let frame = [0xFF, 0xFB, 0x90, 0x64] + zeros(32) + counts + zeros(104) + encoder
        return frame + zeros(size - frame.count)
    }

    /// By their place in the harness's list.
    static var files: [(container: Int, bytes: [UInt8])] {
        let wave =
            Array("RF64....WAVE".utf8) + chunk("ds64", 28, width: 4) + zeros(8)
            + chunk("", 40, width: 8) + zeros(12) + chunk("data", 0xFFFF_FFFF, width: 4) + zeros(40)
        let wide =
            zeros(40) + chunk("fmt ", 40, width: 8, padding: 12) + zeros(16)
            + chunk("data", 64, width: 8, padding: 12) + zeros(40)
        let core =
            zeros(8) + chunk("desc", 4, width: 8, isBig: true) + zeros(4)
            + chunk("data", 20, width: 8, isBig: true) + zeros(20)
        let windows = chunk("head", 30, width: 8, padding: 12) + zeros(6)
        let media: [UInt8] = [0x36, 0x26, 0xB2, 0x75]
        let advanced =
            windows + media + zeros(12) + chunk("", 64, width: 8) + zeros(40)
        let video =
            zeros(12) + chunk("LIST", 8, width: 4) + Array("movi".utf8) + zeros(4)
        let oneBit =
            zeros(16) + chunk("FVER", 4, width: 8, isBig: true) + zeros(4)
            + chunk("DSD ", 8, width: 8, isBig: true) + zeros(8)
        let stream =
            chunk("DSD ", 28, width: 8) + zeros(16) + chunk("data", 40, width: 8) + zeros(28)
        let sun = Array(".snd".utf8) + [0, 0, 0, 28, 0, 0, 0, 40] + zeros(16)
        let blocks: [UInt8] = [0x80, 0, 0, 32, 3, 18, 4, 2, 0, 0, 0xAC, 0x44, 0, 0, 1, 0]
        let exchange = Array(".SoX".utf8) + [28, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0] + zeros(16)
        let all = [wave, wide, core, advanced, video, oneBit, stream, sun, blocks, exchange]
            .enumerated().map { ($0.offset, $0.element) }
        return all + [(1, zeros(40) + chunk("fmt ", 1 << 63, width: 8, padding: 12))]
    }

    /// Some frames of each coding between what is none.
    static var recordings: [[UInt8]] {
        let layer: [UInt8] = [0xFF, 0xFB, 0x10, 0xC0] + zeros(100)
        let length = FrameScan.mpeg(layer)?.length ?? 0
        let frame = Array(layer.prefix(length))
        var counted = Array(frame.prefix(104))
        counted.replaceSubrange(21..<25, with: Array("Xing".utf8))
        let tag: [UInt8] = [0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5]
        let mpeg = tag + frame + frame + frame + counted + frame + Array("TAG".utf8)
        let adts: [UInt8] = [0xFF, 0xF1, 0x50, 0x80, 0x01, 0xFF, 0xFC] + zeros(8)
        let ac3: [UInt8] = [0x0B, 0x77, 0, 0, 0, 0x40] + zeros(122)
        return [
            [0] + mpeg, [1] + adts + adts + adts + [0],
            [2] + ac3 + ac3 + ac3 + Array("APETAGEX".utf8),
        ]
    }

    static var pictures: [[UInt8]] {
        let mark: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        func part(_ name: String, _ content: [UInt8]) -> [UInt8] {
            [0, 0, 0, UInt8(content.count)] + Array(name.utf8) + content + [1, 2, 3, 4]
        }
        let png =
            mark + part("IHDR", zeros(13)) + part("tEXt", [65]) + part("IDAT", zeros(8))
            + part("IEND", [])
        let jpeg: [UInt8] =
            [0xFF, 0xD8, 0xFF, 0xC2, 0, 11, 8, 0xFF, 0xFF, 0, 16, 1, 0, 0, 0xFF, 0xDA, 0, 8, 0xFF]
        return [png, jpeg, Array("GIF89a".utf8), Array("RIFF....WEBP".utf8), Array("BM".utf8)]
    }
}
