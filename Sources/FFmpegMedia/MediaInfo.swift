import CTuttiFFmpeg
import TuttiPlayout

import func Glibc.strlen

/// What a file says about itself.
public struct MediaInfo: Equatable, Sendable {
    /// From the tags; the file's name without its extension when it has none.
    public var title: String
    /// Whether ``title`` is the file's name, for want of a tag.
    public var isNamedByFile = false
    /// From the tags; `nil` where they do not say.
    public var artist: String?
    /// From the tags; `nil` where they do not say.
    public var album: String?
    /// Frames of the item, exact; `nil` for a live stream.
    public var frameCount: Int64?
    /// What the file's header promises, where that is more than a second beyond ``frameCount``: the
    /// file was cut off. `nil` for containers without such a header (Ogg, ADTS, MP3 without Xing).
    public var promisedFrameCount: Int64?
    /// Frames per second.
    public var sampleRate: Int
    /// Channels in the file.
    public var channelCount: Int
    /// FFmpeg's name: `flac`, `aac`, `pcm_s24le` …
    public var codec: String
    /// FFmpeg's first name for it: `flac`, `mov` (for MP4, M4A), `matroska` …
    public var container: String
    /// Bits per second on average; 0 when unknown.
    public var bitRate: Int

    /// Length in seconds; `nil` for a live stream.
    public var duration: Double? { frameCount.map { Double($0) / Double(sampleRate) } }
}

extension MediaInfo {
    init(
        _ demuxer: Demuxer, _ decoder: AudioDecoder, _ format: MediaFormat, missing: Int64
    ) {
        // Ogg keeps its tags with the stream, most others with the file.
        func tag(_ key: String) -> String? {
            unsafe Self.text(key, in: demuxer.context.pointee.metadata)
                ?? Self.text(key, in: demuxer.stream.pointee.metadata)
        }
        let tagged = tag("title")
        title = tagged ?? demuxer.location.name
        isNamedByFile = tagged == nil
        artist = tag("artist") ?? tag("album_artist")
        album = tag("album")
        frameCount = format.frameCount
        sampleRate = format.sampleRate
        let isCutOff = missing > Int64(sampleRate)
        promisedFrameCount = isCutOff ? frameCount.map { $0 + missing } : nil
        channelCount = format.channelCount
        codec = decoder.codecName
        container = demuxer.containerName
        let streamRate = unsafe Int(demuxer.stream.pointee.codecpar.pointee.bit_rate)
        bitRate = unsafe streamRate > 0 ? streamRate : Int(demuxer.context.pointee.bit_rate)
    }

    /// A tag as text. FFmpeg passes on the bytes of ID3v1, RIFF and APE as they are, and takes the
    /// Latin-1 of ID3v2 by the letter, which its writers did not.
    static func text(_ key: String, in dictionary: OpaquePointer?) -> String? {
        guard let entry = unsafe av_dict_get(dictionary, key, nil, 0),
            let value = unsafe entry.pointee.value
        else { return nil }
        let bytes = unsafe UnsafeBufferPointer(start: value, count: strlen(value))
        let text = unsafe String(unlabelled: bytes.map { UInt8(bitPattern: $0) })
            .withWindowsLetters
        return text.showsSomething ? text : nil
    }
}

extension String {
    /// Whether anybody sees anything of it: not of spaces, controls and marks of width zero alone.
    public var showsSomething: Bool {
        unicodeScalars.contains {
            !$0.properties.isWhitespace && !$0.properties.isDefaultIgnorableCodePoint
                && $0.properties.generalCategory != .control
                && $0.properties.generalCategory != .format
        }
    }
}

extension MediaLocation {
    /// The last part of path or address, without extension and, of an address, without query.
    var name: String {
        let whole = isAddress ? subject.prefix { $0 != "?" && $0 != "#" } : subject[...]
        let last = whole.split(separator: "/").last ?? whole
        guard let dot = last.lastIndex(of: "."), dot > last.startIndex else { return String(last) }
        // "Mr. Smith" has no extension.
        let ending = last[last.index(after: dot)...]
        let isEnding =
            (1...Self.longestEnding).contains(ending.count)
            && ending.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return String(isEnding ? last[..<dot] : last)
    }

    /// `crdownload`
    private static let longestEnding = 10
}
