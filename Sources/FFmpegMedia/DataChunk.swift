import TuttiTiming

/// The chunk of a file that holds the sound, as its header says it: a file that ends before that
/// chunk does was cut off.
///
/// FFmpeg reads such files to their end and takes their length from that.
enum DataChunk {
    /// How a kind of container writes its chunks.
    private struct Layout {
        /// Bytes before the first chunk.
        var start: Int64
        /// Bytes of a chunk's name, the first four of which tell.
        var name: Int
        var size: Int
        var isBigEndian: Bool
        /// Whether the size counts name and size.
        var countsHead: Bool
        /// What a chunk's length is rounded up to.
        var alignment: Int64
        /// The first four bytes of the name of the chunk with the sound.
        var mark: [UInt8]
        /// What that chunk begins with, where others have its name too.
        var beginning: [UInt8] = []
    }

    private static func layout(of container: String) -> Layout? {
        let mark = Array("data".utf8)
        return switch container {
        case "wav":
            Layout(
                start: 12, name: 4, size: 4, isBigEndian: false, countsHead: false, alignment: 2,
                mark: mark)
        case "w64":
            Layout(
                start: 40, name: 16, size: 8, isBigEndian: false, countsHead: true, alignment: 8,
                mark: mark)
        case "caf":
            Layout(
                start: 8, name: 4, size: 8, isBigEndian: true, countsHead: false, alignment: 1,
                mark: mark)
        // Advanced Systems Format, 5.1: the data object's GUID.
        case "asf":
            Layout(
                start: 0, name: 16, size: 8, isBigEndian: false, countsHead: true, alignment: 1,
                mark: [0x36, 0x26, 0xB2, 0x75])
        // Video for Windows; the sound is in pieces of one list.
        case "avi":
            Layout(
                start: 12, name: 4, size: 4, isBigEndian: false, countsHead: false, alignment: 2,
                mark: Array("LIST".utf8), beginning: Array("movi".utf8))
        // DSDIFF 1.5, 3; FFmpeg calls it by the format that it is modelled on.
        case "iff":
            Layout(
                start: 16, name: 4, size: 8, isBigEndian: true, countsHead: false, alignment: 2,
                mark: Array("DSD ".utf8))
        // DSF 1.01: as wide as others, in a header of 28 bytes that counts itself.
        case "dsf":
            Layout(
                start: 0, name: 4, size: 8, isBigEndian: false, countsHead: true, alignment: 1,
                mark: mark)
        default: nil
        }
    }

    private static let chunksMax = 1_000

    /// Sizes that programs write to a pipe, which cannot know: as much as the field holds, or half.
    static let openSize: Int64 = 0x7FFF_0000

    /// - Parameter bytes: of the file, fewer at its end.
    /// - Returns: where the chunk's content begins and is to end; `nil` where that is left open, and
    ///   for other containers.
    static func range(
        in container: String, fileSize: Int64, bytes: FrameScan.Bytes
    ) -> Range<Int64>? {
        switch container {
        case "au": return sun(bytes)
        case "adx": return adx(bytes)
        case "sox": return sox(bytes)
        default: break
        }
        guard let layout = layout(of: container) else { return nil }
        var offset = layout.start
        var wide: Int64?
        for _ in 0..<chunksMax {
            let head = bytes(offset, layout.name + layout.size)
            guard head.count == layout.name + layout.size else { return nil }
            let digits = head[layout.name...]
            var size = number(layout.isBigEndian ? Array(digits) : digits.reversed())
            if head.starts(with: "ds64".utf8) {
                // RF64 (EBU Tech 3306) says long sizes here, and all ones in the chunk.
                let sizes = bytes(offset + 16, 8)
                wide = sizes.count == 8 ? number(sizes.reversed()) : nil
            }
            let content = offset + Int64(head.count)
            let isIt =
                head.starts(with: layout.mark)
                && (layout.beginning.isEmpty
                    || bytes(content, layout.beginning.count) == layout.beginning)
            if isIt {
                if layout.size == 4, size == 0xFFFF_FFFF, let wide { size = wide }
                if layout.countsHead { size = size.subtracting(saturating: Int64(head.count)) }
                let isOpen = size <= 0 || size >= openSize && fileSize < openSize
                return isOpen || size > .max - content ? nil : content..<content + size
            }
            if layout.countsHead { size = size.subtracting(saturating: Int64(head.count)) }
            // Behind one that reaches the end there is none; a server may say that a file is as
            // long as a number can be.
            guard size >= 0, size < fileSize - content - layout.alignment else { return nil }
            offset = content + size
            let over = offset % layout.alignment
            if over > 0 { offset += layout.alignment - over }
        }
        return nil
    }

    /// The header of Sun and NeXT: where the sound begins, and its bytes unless they are left open.
    private static func sun(_ bytes: FrameScan.Bytes) -> Range<Int64>? {
        let head = bytes(0, 12)
        guard head.count == 12, head.starts(with: ".snd".utf8) else { return nil }
        let begin = number(Array(head[4..<8]))
        let size = number(Array(head[8...]))
        return size == 0xFFFF_FFFF || size == 0 ? nil : begin..<begin + size
    }

    /// CRI ADX: blocks of so many bytes for each channel, and how many frames there are.
    private static func adx(_ bytes: FrameScan.Bytes) -> Range<Int64>? {
        let head = bytes(0, 16)
        guard head.count == 16, head[0] == 0x80, head[5] > 2, head[6] == 4 else { return nil }
        let begin = number(Array(head[2..<4])) + 4
        let framesPerBlock = Int64(head[5] - 2) * 2
        let frames = number(Array(head[12...]))
        let blocks = (frames + framesPerBlock - 1) / framesPerBlock
        return frames == 0 ? nil : begin..<begin + blocks * Int64(head[5]) * Int64(head[7])
    }

    /// SoX's own format: samples of four bytes, and how many there are.
    private static func sox(_ bytes: FrameScan.Bytes) -> Range<Int64>? {
        let head = bytes(0, 16)
        let isBigEndian = head.starts(with: "XoS.".utf8)
        guard head.count == 16, isBigEndian || head.starts(with: ".SoX".utf8) else { return nil }
        let (length, count) = (head[4..<8], head[8...])
        let begin = 4 + number(isBigEndian ? Array(length) : length.reversed())
        let samples = number(isBigEndian ? Array(count) : count.reversed())
        return samples <= 0 || samples > .max / 8 ? nil : begin..<begin + 4 * samples
    }

    private static func number(_ bytes: [UInt8]) -> Int64 {
        Int64(truncatingIfNeeded: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
