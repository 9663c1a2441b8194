import CFFmpeg
import Playout

/// What a file says about itself.
public struct MediaInfo: Equatable, Sendable {
    /// From the tags; the file's name without its extension when it has none.
    public var title: String
    public var artist: String?
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
        title = tag("title") ?? demuxer.location.name
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

    private static func text(_ key: String, in dictionary: OpaquePointer?) -> String? {
        guard let entry = unsafe av_dict_get(dictionary, key, nil, 0) else { return nil }
        let text = unsafe String(cString: entry.pointee.value)
        return text.isEmpty ? nil : text
    }
}

extension MediaLocation {
    /// The last part of path or address, without extension and query.
    var name: String {
        let whole = subject.split(separator: "?").first.map(String.init) ?? subject
        let last = whole.split(separator: "/").last.map(String.init) ?? whole
        guard let dot = last.lastIndex(of: "."), dot > last.startIndex else { return last }
        return String(last[..<dot])
    }
}
