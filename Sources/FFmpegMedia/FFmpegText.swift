import CTuttiFFmpeg
public import TuttiPlayout
import TuttiTiming

/// Text of a container with the times at which it is shown.
public enum FFmpegText {
    /// All cues of a text track: SubRip, WebVTT, MP4 timed text, (Advanced) SubStation Alpha.
    ///
    /// Only the packets of that track are kept; an MP4's index leads to them, other containers are read
    /// from the first byte to the last. A file that was cut off yields what is there.
    ///
    /// - Parameters:
    ///   - location: a path, or an `http:`, `https:` or `file:` address.
    ///   - track: a track of text among ``FFmpegSource/tracks``, by its number.
    /// - Returns: in order of time, of what begins at once in the file's order; they may overlap. Times
    ///   are those of the item that ``FFmpegSource`` plays of the same file: 0 is where the first of
    ///   its audio tracks begins.
    /// - Throws: ``MediaError``: `.unsupported` where `track` is no track of text, or holds pictures of
    ///   text; `.tooLarge` beyond 200 000 cues or 32 MB.
    public static func read(
        _ location: String, track: Int, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> [TimedText] {
        try read(location, track: track, limits: .usual, cancellation)
    }

    static func read(
        _ location: String, track: Int, limits: TimedTextList.Limits,
        _ cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) -> [TimedText] {
        var location = try MediaLocation(location)
        location.track = track
        let demuxer = try Demuxer(location, kind: .text, cancellation: cancellation)
        let decoder = unsafe try TextDecoder(for: demuxer.stream, location: location)
        var list = TimedTextList(limits)
        while let packet = unsafe try demuxer.next() {
            do throws(TimedTextList.Excess) {
                unsafe try take(packet, from: demuxer.stream, decoder, limits, &list)
            } catch {
                throw MediaError(
                    .tooLarge, operation: "avcodec_decode_subtitle2", subject: location.subject,
                    reason: "has more than \(error.reason) in text track \(track); choose another "
                        + "track, or another copy")
            }
        }
        return list.inOrder(from: demuxer.itemBeginning() ?? .zero)
    }

    private static func take(
        _ packet: UnsafeMutablePointer<AVPacket>, from stream: UnsafeMutablePointer<AVStream>,
        _ decoder: TextDecoder, _ limits: TimedTextList.Limits, _ list: inout TimedTextList
    ) throws(TimedTextList.Excess) {
        guard unsafe packet.pointee.size <= limits.packetBytes else {
            throw TimedTextList.Excess(reason: "\(limits.packetBytes) bytes in one cue")
        }
        guard let start = unsafe Demuxer.time(packet.pointee.pts, of: stream) else { return }
        var milliseconds: UInt32?
        let lines = unsafe decoder.decode(packet, milliseconds: &milliseconds)
        var end: MediaTime?
        if unsafe packet.pointee.duration > 0 {
            end = unsafe Demuxer.time(packet.pointee.duration, of: stream).map { start + $0 }
        } else if let milliseconds {
            end = start + MediaTime(value: Int64(milliseconds), timescale: 1_000)
        }
        for line in lines {
            let text = DialogueText(line.text, style: line.style, in: decoder.styles)
            try list.add(text, from: start, to: end)
        }
    }
}
