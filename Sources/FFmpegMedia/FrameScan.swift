/// Where in a file of bare MPEG audio, ADTS or AC-3 frames the recordings are.
///
/// Such files have no table of contents: sound is whatever looks like frames, and tags, covers,
/// lyrics, web pages or zeros before, between and behind it look like frames in places. A frame's
/// header tells how long the frame is, so the next must follow: three in a row are believed.
///
/// A recording ends where the chain of frames breaks, where their rate changes, and before a frame
/// that holds a new count of frames (`Xing`, `Info`), with which encoders begin.
struct FrameScan {
    /// What a header says.
    struct Header: Equatable {
        var length: Int
        /// Version, layer and rate: alike in all frames of a recording.
        var kind: UInt32
        /// Where `Xing` or `Info` would stand; `nil`: nowhere.
        var countOffset: Int?
    }

    enum Coding {
        case mpeg, adts, ac3

        func header(_ head: [UInt8]) -> Header? {
            switch self {
            case .mpeg: FrameScan.mpeg(head)
            case .adts: FrameScan.adts(head)
            case .ac3: FrameScan.ac3(head)
            }
        }
    }

    /// Bytes from an offset on, as many as there are up to `count`.
    typealias Bytes = (_ offset: Int64, _ count: Int) -> [UInt8]

    private static let block = 65_536
    /// Frames in a row that make a recording.
    private static let needed = 3
    /// Recordings in one file; more are damage, and such a file is played as FFmpeg reads it.
    static let recordingsMax = 256

    private let coding: Coding
    private let size: Int64
    private let fetch: Bytes
    private var window: [UInt8] = []
    private var windowStart: Int64 = 0

    private init(_ coding: Coding, size: Int64, fetch: @escaping Bytes) {
        self.coding = coding
        self.size = size
        self.fetch = fetch
    }

    /// - Returns: bytes of each recording in order; empty where there is none.
    static func recordings(
        _ coding: Coding, size: Int64, bytes: @escaping Bytes
    ) -> [Range<Int64>] {
        var scan = FrameScan(coding, size: size, fetch: bytes)
        return scan.run()
    }

    private mutating func run() -> [Range<Int64>] {
        var found: [Range<Int64>] = []
        var offset: Int64 = 0
        while found.count <= Self.recordingsMax, let begin = nextChain(from: offset) {
            offset = chainEnd(from: begin)
            found.append(begin..<offset)
        }
        return found
    }

    /// The first frame of the next recording.
    private mutating func nextChain(from start: Int64) -> Int64? {
        var offset = start
        while offset < size {
            // Nothing more can be read, or nobody wants to know any more.
            guard let first = bytes(offset, 1).first else { return nil }
            guard mayBegin(first) else {
                offset += 1
                continue
            }
            let tag = tagLength(at: offset)
            if tag > 0 {
                offset += tag
                continue
            }
            if isChain(at: offset) { return offset }
            offset += 1
        }
        return nil
    }

    private mutating func isChain(at start: Int64) -> Bool {
        guard let first = header(at: start) else { return false }
        var offset = start
        for index in 0..<Self.needed {
            guard let next = header(at: offset), next.kind == first.kind else {
                // A recording of a frame or two ends with the file or before a tag.
                return index > 0 && (offset == size || tagLength(at: offset) > 0)
            }
            offset += Int64(next.length)
            // The last frame of a file that was cut off.
            if offset > size { return index > 0 }
        }
        return true
    }

    /// Where the recording that begins at `start` ends.
    private mutating func chainEnd(from start: Int64) -> Int64 {
        var offset = start
        guard let first = header(at: start) else { return start }
        while offset < size, let next = header(at: offset), next.kind == first.kind {
            if offset > start, holdsCount(offset, next) { break }
            offset = min(size, offset + Int64(next.length))
        }
        return offset
    }

    private mutating func holdsCount(_ offset: Int64, _ header: Header) -> Bool {
        guard let place = header.countOffset else { return false }
        let mark = bytes(offset + Int64(place), 4)
        return mark.elementsEqual("Xing".utf8) || mark.elementsEqual("Info".utf8)
    }
}

// MARK: Bytes

extension FrameScan {
    private mutating func bytes(_ offset: Int64, _ count: Int) -> ArraySlice<UInt8> {
        if offset < windowStart || offset + Int64(count) > windowStart + Int64(window.count) {
            window = fetch(offset, max(count, Self.block))
            windowStart = offset
        }
        let low = min(Int(offset - windowStart), window.count)
        return window[low..<min(low + count, window.count)]
    }

    private mutating func header(at offset: Int64) -> Header? {
        coding.header(Array(bytes(offset, 8)))
    }

    /// Whether a frame or a tag may begin with it.
    private func mayBegin(_ byte: UInt8) -> Bool {
        byte == (coding == .ac3 ? 0x0B : 0xFF) || byte == UInt8(ascii: "I")
            || byte == UInt8(ascii: "A")
    }

    /// Bytes of a tag that states its length; 0 where there is none.
    private mutating func tagLength(at offset: Int64) -> Int64 {
        let head = Array(bytes(offset, 32))
        guard head.count >= 10 else { return 0 }
        // ID3v2: four times seven bits, a footer of ten bytes perhaps.
        if head[..<3] == [0x49, 0x44, 0x33], head[3] < 0xFF, head[6..<10].allSatisfy({ $0 < 0x80 })
        {
            let size = head[6..<10].reduce(Int64(0)) { $0 << 7 | Int64($1) }
            return 10 + size + (head[5] & 0x10 != 0 ? 10 : 0)
        }
        // APEv2's header says how long what follows is, its footer included.
        if head.count == 32, head[..<8] == Array("APETAGEX".utf8)[...] {
            let size = head[12..<16].reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
            return 32 + (head[23] & 0x20 != 0 ? size : 0)
        }
        return 0
    }
}

// MARK: Headers

extension FrameScan {
    /// ISO/IEC 11172-3, 2.4.2.3, with the lower rates of 13818-3 and those of "MPEG 2.5".
    static func mpeg(_ head: [UInt8]) -> Header? {
        guard head.count >= 4, head[0] == 0xFF, head[1] & 0xE0 == 0xE0 else { return nil }
        let version = Int(head[1] >> 3 & 3)
        let layer = 4 - Int(head[1] >> 1 & 3)
        let rateIndex = Int(head[2] >> 2 & 3)
        let bitIndex = Int(head[2] >> 4)
        guard version != 1, layer < 4, rateIndex < 3, (1...14).contains(bitIndex) else {
            return nil
        }
        let isFirst = version == 3
        let rate = [44_100, 48_000, 32_000][rateIndex] >> (isFirst ? 0 : version == 2 ? 1 : 2)
        let kilobits = bitRates[isFirst ? layer - 1 : layer == 1 ? 3 : 4][bitIndex - 1]
        let padding = Int(head[2] >> 1 & 1)
        let frames = layer == 1 ? 384 : layer == 3 && !isFirst ? 576 : 1_152
        let slot = layer == 1 ? 4 : 1
        let length = (frames / 8 / slot * kilobits * 1_000 / rate + padding) * slot
        let isMono = head[3] >> 6 == 3
        let sideInformation = isFirst ? (isMono ? 17 : 32) : (isMono ? 9 : 17)
        return Header(
            length: length, kind: UInt32(head[1] & 0xFE) << 8 | UInt32(rateIndex),
            countOffset: layer == 3 ? 4 + sideInformation : nil)
    }

    /// Kilobits a second: layers 1 to 3 of version 1; layer 1, then 2 and 3, of the others.
    private static let bitRates = [
        [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ]

    /// ISO/IEC 13818-7, 6.2.
    static func adts(_ head: [UInt8]) -> Header? {
        guard head.count >= 7, head[0] == 0xFF, head[1] & 0xF6 == 0xF0 else { return nil }
        let rateIndex = head[2] >> 2 & 15
        let length = Int(head[3] & 3) << 11 | Int(head[4]) << 3 | Int(head[5] >> 5)
        guard rateIndex < 13, length > 7 else { return nil }
        return Header(
            length: length, kind: UInt32(head[1] & 0xF8) << 8 | UInt32(head[2] & 0xFC),
            countOffset: nil)
    }

    /// ETSI TS 102 366, 4.3 and 5.3.1; with E.1.2 for what has a stream identification above 10.
    static func ac3(_ head: [UInt8]) -> Header? {
        guard head.count >= 6, head[0] == 0x0B, head[1] == 0x77 else { return nil }
        let rateIndex = Int(head[4] >> 6)
        let identification = head[5] >> 3
        if identification > 10 {
            guard identification <= 16, head[2] >> 6 < 3 else { return nil }
            let length = 2 * (Int(head[2] & 7) << 8 | Int(head[3])) + 2
            let half = rateIndex == 3 ? Int(head[4] >> 4 & 3) + 4 : rateIndex
            return Header(length: length, kind: UInt32(0x10 + half), countOffset: nil)
        }
        let sizeIndex = Int(head[4] & 63)
        guard rateIndex < 3, sizeIndex < 38 else { return nil }
        let kilobits = dolbyRates[sizeIndex >> 1]
        let words = [2 * kilobits, 320 * kilobits / 147 + sizeIndex & 1, 3 * kilobits][rateIndex]
        return Header(length: 2 * words, kind: UInt32(rateIndex), countOffset: nil)
    }

    private static let dolbyRates = [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
    ]
}
