import CTuttiFFmpeg
import TuttiPlayout

/// The recordings that one file holds, as ranges of its bytes.
enum Recordings {
    /// Recordings chained in Ogg or joined as FLAC: an internet radio's day has some hundred songs.
    private static let most = 1_024
    private static let block = 65_536
    /// Of a file's bytes, one in so many is sound: machine code has a frame or two in a hundred
    /// thousand bytes.
    private static let leastShare: Int64 = 8

    /// - Returns: `nil` where the whole file is one, as FFmpeg reads it; also for what stays on a server
    ///   (``Spool``), which would be fetched twice: there only changes of the rate are seen.
    /// - Throws: `.notMedia` for what has the name of such a file, and next to none of its frames.
    static func find(in demuxer: Demuxer) throws(MediaError) -> [Range<Int64>]? {
        guard demuxer.isSeekable, let size = demuxer.byteCount, demuxer.location.part == nil,
            !demuxer.location.isRemote
        else { return nil }
        let bytes: FrameScan.Bytes = { demuxer.bytes(from: $0, count: $1) }
        switch demuxer.containerName {
        case "mp3", "aac", "ac3", "eac3":
            demuxer.location.incoming?.needsAll()
            let codings: [String: FrameScan.Coding] = ["mp3": .mpeg, "aac": .adts]
            let coding = codings[demuxer.containerName] ?? .ac3
            let found = FrameScan.recordings(coding, size: size, bytes: bytes)
            let share = found.reduce(0) { $0 + Int64($1.count) }
            if demuxer.isNamedOnly, share < size / leastShare {
                throw MediaError(
                    .notMedia, operation: "find", subject: demuxer.location.subject,
                    reason: "is not an audio file that can be played, though its name ends like one"
                )
            }
            guard (1...FrameScan.recordingsMax).contains(found.count) else { return nil }
            // One that is all there is, but for a tag in front that FFmpeg has passed.
            let isWhole =
                found.count == 1 && found[0].upperBound == size && isTag(found[0], bytes)
            return isWhole ? nil : found
        case "ogg":
            demuxer.location.incoming?.needsAll()
            let found = oggLinks(size: size, bytes)
            return (2...most).contains(found.count) ? found : nil
        default:
            return nil
        }
    }

    /// Whether nothing or one ID3v2 tag lies before.
    private static func isTag(_ range: Range<Int64>, _ bytes: FrameScan.Bytes) -> Bool {
        if range.lowerBound == 0 { return true }
        let head = bytes(0, 10)
        guard head.count == 10, head.starts(with: "ID3".utf8) else { return false }
        let size = head[6...].reduce(Int64(0)) { $0 << 7 | Int64($1 & 0x7F) }
        return range.lowerBound == 10 + size + (head[5] & 0x10 != 0 ? 10 : 0)
    }

    /// Links of a chained Ogg file (RFC 3533, 4 and 6): each begins with the first pages of its
    /// streams, and those of the link before have ended.
    static func oggLinks(size: Int64, _ bytes: FrameScan.Bytes) -> [Range<Int64>] {
        var starts: [Int64] = []
        var window = (start: Int64(0), bytes: [UInt8]())
        var wasFirst = false
        var offset: Int64 = 0
        while offset + 27 <= size, starts.count <= most {
            let needed = 27 + 255
            if offset < window.start
                || offset + Int64(needed) > window.start + Int64(window.bytes.count)
            {
                window = (offset, bytes(offset, block))
                // Nothing more can be read, or nobody wants to know any more.
                if window.bytes.count < 27 { break }
            }
            let page = window.bytes.dropFirst(Int(offset - window.start)).prefix(needed)
            let base = page.startIndex
            guard page.count >= 27, page.starts(with: "OggS".utf8), page[base + 4] == 0 else {
                offset += Int64(distance(toPageIn: window.bytes[page.startIndex...]))
                continue
            }
            let isFirst = page[base + 5] & 2 != 0
            if isFirst, !wasFirst { starts.append(offset) }
            wasFirst = isFirst
            let segments = Int(page[base + 26])
            let lengths = page.dropFirst(27).prefix(segments)
            offset += Int64(27 + segments + lengths.reduce(0) { $0 + Int($1) })
        }
        return zip(starts, starts.dropFirst() + [size]).map { $0..<$1 }
    }

    /// Bytes to the next that may begin a page, at least 1; all where none is there.
    private static func distance(toPageIn bytes: ArraySlice<UInt8>) -> Int {
        let next = bytes.dropFirst().firstIndex(of: UInt8(ascii: "O"))
        return max(1, (next ?? bytes.endIndex) - bytes.startIndex)
    }

    /// FLAC files that were joined: each begins with its mark and a header of 34 bytes.
    static func flacFiles(in demuxer: Demuxer) -> [Range<Int64>]? {
        guard demuxer.location.part == nil, let size = demuxer.byteCount else { return nil }
        demuxer.location.incoming?.needsAll()
        let mark = Array("fLaC".utf8)
        var starts: [Int64] = []
        var offset: Int64 = 0
        while offset + 42 <= size, starts.count <= most {
            let bytes = demuxer.bytes(from: offset, count: block)
            guard bytes.count >= 42 else { break }
            var index = 0
            while let next = bytes[index...].firstIndex(of: mark[0]), next + 8 <= bytes.count {
                if bytes[next..<next + 4] == mark[...], bytes[next + 4] & 0x7F == 0,
                    bytes[next + 5..<next + 8] == [0, 0, 34]
                {
                    starts.append(offset + Int64(next))
                }
                index = next + 1
            }
            // A mark may lie across the blocks' border.
            offset += Int64(max(1, bytes.count - 7))
        }
        guard (2...most).contains(starts.count) else { return nil }
        return zip(starts, starts.dropFirst() + [size]).map { $0..<$1 }
    }

    // MARK: Transport streams

    private static let transportPacket = 188
    /// Packets looked through for a table: a joint has its tables right before its first sound.
    private static let tablesMax = 32

    /// Ranges between places at which the sound's rate changes.
    ///
    /// A recording that follows another begins with its tables (PAT, packet identifier 0), a few
    /// packets before its sound: without them nothing in it is found.
    static func split(at changes: [Int64], in demuxer: Demuxer) -> [Range<Int64>] {
        guard let size = demuxer.byteCount else { return [] }
        let starts = changes.map { change -> Int64 in
            for index in 1...tablesMax {
                let offset = change - Int64(index * transportPacket)
                let head = demuxer.bytes(from: max(0, offset), count: 3)
                guard offset > 0, head.count == 3, head[0] == 0x47 else { return change }
                if head[1] & 0x1F == 0, head[2] == 0 { return offset }
            }
            return change
        }
        return zip([0] + starts, starts + [size]).map { $0..<max($0, $1) }
    }
}
