import CTuttiFFmpeg
import TuttiPlayout
import TuttiTiming

extension Demuxer {
    /// A file may claim any number of either.
    private static let mostTags = 1_000
    private static let mostChapters = 10_000
    /// Pictures beyond this are not for a player.
    private static let largestArtwork = 16 << 20

    /// Tags of the file and of the stream, chapters and the first picture.
    var metadata: MediaMetadata {
        var metadata = MediaMetadata()
        // Ogg keeps its tags with the stream, most others with the file.
        unsafe Self.collect(stream.pointee.metadata, into: &metadata.tags)
        unsafe Self.collect(context.pointee.metadata, into: &metadata.tags)
        metadata.chapters = chapters
        metadata.artwork = artwork
        return metadata
    }

    static func collect(_ dictionary: OpaquePointer?, into tags: inout [String: String]) {
        var entry: UnsafePointer<AVDictionaryEntry>?
        for _ in 0..<mostTags {
            guard
                let next = unsafe av_dict_get(
                    dictionary, "", entry, AV_DICT_IGNORE_SUFFIX),
                let key = unsafe next.pointee.key
            else { return }
            unsafe entry = UnsafePointer(next)
            let name = unsafe String(cString: key)
            if let text = unsafe MediaInfo.text(name, in: dictionary) {
                tags[name.lowercased()] = text
            }
        }
    }

    private var chapters: [MediaMetadata.Chapter] {
        unsafe Self.chapters(of: context).compactMap { chapter in
            guard let end = chapter.end, chapter.start < end else { return nil }
            return MediaMetadata.Chapter(
                title: chapter.title, range: TimeRange(start: chapter.start, end: end))
        }
    }

    /// As the container lists them; the end is `nil` where it does not say it.
    static func chapters(
        of context: UnsafeMutablePointer<AVFormatContext>
    ) -> [(title: String?, start: MediaTime, end: MediaTime?)] {
        let count = unsafe min(Int(context.pointee.nb_chapters), mostChapters)
        return (0..<count).compactMap { index in
            guard let chapter = unsafe context.pointee.chapters[index] else { return nil }
            let base = unsafe chapter.pointee.time_base
            func time(_ value: Int64) -> MediaTime? {
                guard base.num > 0, base.den > 0, value >= 0 else { return nil }
                let (scaled, isTooLong) = value.multipliedReportingOverflow(by: Int64(base.num))
                return isTooLong ? nil : MediaTime(value: scaled, timescale: base.den)
            }
            guard let start = unsafe time(chapter.pointee.start) else { return nil }
            return (
                title: unsafe MediaInfo.text("title", in: chapter.pointee.metadata), start: start,
                end: unsafe time(chapter.pointee.end)
            )
        }
    }

    private var artwork: MediaMetadata.Artwork? {
        for index in 0..<Int(unsafe context.pointee.nb_streams) {
            guard let stream = unsafe context.pointee.streams[index],
                unsafe stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC != 0,
                let data = unsafe stream.pointee.attached_pic.data
            else { continue }
            let size = unsafe Int(stream.pointee.attached_pic.size)
            guard size > 0, size <= Self.largestArtwork,
                let type = unsafe Self.mimeType(of: stream.pointee.codecpar.pointee.codec_id)
            else { continue }
            return MediaMetadata.Artwork(
                bytes: unsafe [UInt8](UnsafeBufferPointer(start: data, count: size)),
                mimeType: type)
        }
        return nil
    }

    private static func mimeType(of codec: AVCodecID) -> String? {
        switch codec {
        case AV_CODEC_ID_MJPEG: "image/jpeg"
        case AV_CODEC_ID_PNG: "image/png"
        case AV_CODEC_ID_GIF: "image/gif"
        case AV_CODEC_ID_BMP: "image/bmp"
        case AV_CODEC_ID_WEBP: "image/webp"
        default: nil
        }
    }
}
