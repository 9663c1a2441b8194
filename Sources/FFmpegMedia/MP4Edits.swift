import CTuttiFFmpeg

/// What an MP4's edit list says of one track: which stretches of its media are the item.
///
/// FFmpeg applies edit lists itself, to whole packets, and does not give them out; cut to the frame
/// they have to be read again here. Boxes are those of ISO/IEC 14496-12: `moov` holds a `trak` for
/// each track, that its `tkhd` (the track's number) and `edts`/`elst`.
struct MP4Edits: Equatable {
    struct Edit: Equatable {
        /// In units of the movie's timescale; 0: to the end of the media.
        var duration: Int64
        /// In units of the track's timescale; negative: nothing is to be heard for so long.
        var mediaTime: Int64
    }

    /// Units a second of durations.
    var movieTimescale: Int64
    /// Units a second of media times.
    var mediaTimescale: Int64
    var edits: [Edit]

    /// Stretches of the media in frames, in the order in which they are played.
    ///
    /// Empty edits are left out: what was recorded begins with its first sound, as FFmpeg plays it,
    /// and an item that follows another leaves no hole.
    ///
    /// - Parameter end: frame after the media's last.
    /// - Returns: empty where nothing within the media remains, or there are no edits.
    func stretches(sampleRate: Int64, end: Int64) -> [Range<Int64>] {
        // One unit of a coarse timescale is what rounding may have taken from the end.
        let tick = max(1, (sampleRate + movieTimescale - 1) / movieTimescale)
        return edits.compactMap { edit in
            guard edit.mediaTime >= 0 else { return nil }
            let begin = av_rescale(edit.mediaTime, sampleRate, mediaTimescale)
            guard begin >= 0, begin < end else { return nil }
            let length = av_rescale(edit.duration, sampleRate, movieTimescale)
            let isWhole = length <= 0 || length >= end - begin - tick
            return begin..<(isWhole ? end : begin + length)
        }
    }
}

/// Reads boxes at an I/O context's position.
@safe
private struct BoxReader {
    let io: UnsafeMutablePointer<AVIOContext>

    struct Box {
        var type: String
        /// Offsets of the first byte of its content and of the one after it.
        var content: Int64
        var end: Int64
    }

    func bytes(_ offset: Int64, _ count: Int) -> [UInt8]? {
        guard unsafe avio_seek(io, offset, SEEK_SET) == offset else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        guard unsafe avio_read(io, &bytes, Int32(count)) == Int32(count) else { return nil }
        return bytes
    }

    static func number(_ bytes: some Sequence<UInt8>) -> Int64 {
        Int64(truncatingIfNeeded: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    func box(at offset: Int64, before end: Int64) -> Box? {
        // The end of the box around it may be the largest number there is.
        guard offset <= end - 8, let head = bytes(offset, 8) else { return nil }
        var size = Self.number(head[..<4])
        var content = offset + 8
        if size == 1, let long = bytes(content, 8) {
            size = Self.number(long)
            content += 8
        } else if size == 0 {
            size = end - offset
        }
        guard size >= content - offset, size <= .max - offset else { return nil }
        return Box(
            type: String(decoding: head[4...], as: UTF8.self), content: content,
            end: offset + size)
    }

    /// A file has a handful of boxes, a movie a track for each language; beyond that is nonsense.
    private static let boxesMax = 4_096

    func children(of range: (content: Int64, end: Int64)) -> [Box] {
        var found: [Box] = []
        var offset = range.content
        while found.count < Self.boxesMax, let box = box(at: offset, before: range.end) {
            found.append(box)
            if box.end > range.end { break }
            offset = box.end
        }
        return found
    }

    func child(_ type: String, of box: Box?) -> Box? {
        guard let box else { return nil }
        return children(of: (box.content, box.end)).first { $0.type == type }
    }

    /// A number behind version and flags, which is longer and further on in version 1.
    func field(_ box: Box?, _ before: (Int64, Int64), _ width: (Int, Int)) -> Int64? {
        guard let box, let version = bytes(box.content, 1)?[0] else { return nil }
        let offset = box.content + 4 + (version == 1 ? before.1 : before.0)
        let width = version == 1 ? width.1 : width.0
        return bytes(offset, width).map(Self.number)
    }
}

extension MP4Edits {
    /// An edit list has one or two entries; a film that was cut much has hundreds.
    private static let editsMax = 1_024

    /// The edit lists of all tracks that have one, by the track's number in the file.
    ///
    /// - Parameter io: left at the position where it was.
    static func read(
        _ io: UnsafeMutablePointer<AVIOContext>, size: Int64
    ) -> [Int64: MP4Edits] {
        let position = unsafe avio_seek(io, 0, SEEK_CUR)
        defer { unsafe avio_seek(io, position, SEEK_SET) }
        let reader = unsafe BoxReader(io: io)
        let movie = reader.children(of: (0, size)).first { $0.type == "moov" }
        guard let movie,
            let movieScale = reader.field(reader.child("mvhd", of: movie), (8, 16), (4, 4)),
            movieScale > 0
        else { return [:] }
        var found: [Int64: MP4Edits] = [:]
        for box in reader.children(of: (movie.content, movie.end)) where box.type == "trak" {
            guard let track = reader.field(reader.child("tkhd", of: box), (8, 16), (4, 4)),
                found[track] == nil
            else { continue }
            found[track] = edits(of: box, movieScale, reader)
        }
        return found
    }

    private static func edits(
        of track: BoxReader.Box, _ movieScale: Int64, _ reader: BoxReader
    ) -> MP4Edits? {
        guard
            let mediaScale = reader.field(
                reader.child("mdhd", of: reader.child("mdia", of: track)), (8, 16), (4, 4)),
            let list = reader.child("elst", of: reader.child("edts", of: track)),
            mediaScale > 0, let head = reader.bytes(list.content, 8)
        else { return nil }
        let wide = head[0] == 1 ? 8 : 4
        let entry = 2 * wide + 4
        let count = min(
            Int(BoxReader.number(head[4...])), editsMax,
            Int(list.end - list.content - 8) / entry)
        guard count > 0, let bytes = reader.bytes(list.content + 8, count * entry) else {
            return nil
        }
        let edits = (0..<count).map { index in
            let fields = bytes[(index * entry)...]
            let time = BoxReader.number(fields.dropFirst(wide).prefix(wide))
            return Edit(
                duration: BoxReader.number(fields.prefix(wide)),
                mediaTime: wide == 4 ? Int64(Int32(truncatingIfNeeded: time)) : time)
        }
        return MP4Edits(
            movieTimescale: movieScale, mediaTimescale: mediaScale, edits: edits)
    }

    /// Whether the samples come before the table that tells where they are, by the first bytes of a
    /// file: whoever reads it once, from its beginning, cannot play it. False for other kinds of
    /// file; `nil` where more of it has to be seen.
    static func hasTableLast(_ head: [UInt8]) -> Bool? {
        guard head.count >= ContainerSignature.length else { return nil }
        guard ContainerSignature.container(of: head) == "mov" else { return false }
        var offset: Int64 = 0
        while offset + 8 <= head.count {
            let begin = Int(offset)
            let type = head[begin + 4..<begin + 8]
            if type.elementsEqual("moov".utf8) { return false }
            if type.elementsEqual("mdat".utf8) { return true }
            let size = BoxReader.number(head[begin..<begin + 4])
            // To the end of the file, or longer than anything that stands before either.
            guard size >= 8 else { return false }
            offset += size
        }
        return nil
    }

    /// Whether a file of this kind lacks its `moov`, which tells where the samples are: what is left
    /// of a recording or download that broke off.
    static func isIncomplete(_ io: UnsafeMutablePointer<AVIOContext>, size: Int64) -> Bool {
        let boxes = unsafe BoxReader(io: io).children(of: (0, size))
        return boxes.first?.type == "ftyp"
            && !boxes.contains { $0.type == "moov" && $0.end <= size }
    }
}
