import TuttiPlayout

/// How long an MP3 is by what its first frame says, where that can be believed.
///
/// Encoders put a frame without sound in front, which counts the frames and bytes of the file (Xing)
/// and the encoder's delay and padding (LAME). Where the bytes are as many as there are, but for the
/// tag of 128 bytes that may end a file (ID3v1), nothing was cut off, appended or joined since: the
/// packets need not be counted to know the end, and playing can begin with the first of them.
struct PromisedLength: Equatable {
    let framesPerPacket: Int
    /// Raw frame of the item's frame 0: the encoder's delay, and that of a decoder.
    let start: Int64
    /// Raw frame after the item's last.
    let end: Int64

    private static let decoderDelay: Int64 = 529
    /// Of ID3v1.
    private static let tagBytes: Int64 = 128
    /// From the mark on: flags, frames, bytes, a table of a hundred places, a quality, and 24 bytes of
    /// the encoder's, the last three of which are delay and padding.
    private static let length = 144
    private static let delayOffset = 141
    /// Frames, bytes, table and quality are all there.
    private static let allFlags: Int64 = 15

    /// - Parameter size: of the file.
    /// - Returns: `nil` where nothing is said, or is not so.
    init?(size: Int64, bytes: FrameScan.Bytes) {
        let begin = Self.tagLength(bytes(0, 10))
        let head = bytes(begin, 8)
        guard let header = FrameScan.mpeg(head), let place = header.countOffset else { return nil }
        let said = bytes(begin + Int64(place), Self.length)
        guard said.count == Self.length,
            said.starts(with: "Xing".utf8) || said.starts(with: "Info".utf8)
        else { return nil }
        func word(_ offset: Int, _ count: Int) -> Int64 {
            said[offset..<offset + count].reduce(0) { $0 << 8 | Int64($1) }
        }
        let (packets, count) = (word(8, 4), word(12, 4))
        let (delay, padding) = (word(Self.delayOffset, 3) >> 12, word(Self.delayOffset, 3) & 0xFFF)
        guard word(4, 4) & Self.allFlags == Self.allFlags, packets > 0, delay > 0 else {
            return nil
        }
        let isTagged = bytes(size - Self.tagBytes, 3).elementsEqual("TAG".utf8)
        let rest = size - begin - (isTagged ? Self.tagBytes : 0)
        // Some count the first frame, and some do not.
        guard rest == count || rest == count + Int64(header.length) else { return nil }
        framesPerPacket = head[1] >> 3 & 3 == 3 ? 1_152 : 576
        let raw = packets * Int64(framesPerPacket)
        start = delay + Self.decoderDelay
        end = min(raw, raw - padding + Self.decoderDelay)
        guard end > start else { return nil }
    }

    /// Bytes of an ID3v2 tag in front.
    private static func tagLength(_ head: [UInt8]) -> Int64 {
        guard head.count == 10, head.starts(with: "ID3".utf8) else { return 0 }
        let size = head[6...].reduce(Int64(0)) { $0 << 7 | Int64($1 & 0x7F) }
        return 10 + size + (head[5] & 0x10 != 0 ? 10 : 0)
    }
}
