import CTuttiFFmpeg
import TuttiPlayout

/// Which stream of a container is read.
extension Demuxer {
    /// Index of the stream that is read.
    var track: Int { unsafe Int(stream.pointee.index) }

    /// The stream to read; all others are dropped by the demuxer.
    static func stream(
        _ kind: MediaTrack.Kind, of context: UnsafeMutablePointer<AVFormatContext>,
        _ location: MediaLocation
    ) throws(MediaError) -> UnsafeMutablePointer<AVStream> {
        let index: Int
        if let asked = location.track {
            unsafe try check(asked, kind, of: context, location)
            index = asked
        } else {
            unsafe index = try usualAudio(of: context, location)
        }
        guard let stream = unsafe context.pointee.streams[index] else {
            fatalError("stream \(index) is counted but not there")
        }
        for other in 0..<Int(unsafe context.pointee.nb_streams) where other != index {
            unsafe context.pointee.streams[other]!.pointee.discard = AVDISCARD_ALL
        }
        return unsafe stream
    }

    /// What is played where nobody chooses.
    ///
    /// FFmpeg's choice: streams that the container marks as default and that are not made for people
    /// who hear or see badly come first; among equals the one that showed more packets (five are
    /// enough) when the container was looked at, then the one of more bits a second, then the first.
    /// It weighs a mark and such a purpose alike, so a marked stream may lose; here the mark counts.
    /// Whether this build can decode it does not: rooms with other builds must not choose otherwise.
    private static func usualAudio(
        of context: UnsafeMutablePointer<AVFormatContext>, _ location: MediaLocation
    ) throws(MediaError) -> Int {
        let best = unsafe Int(av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, nil, 0))
        let audio = unsafe indices(of: AVMEDIA_TYPE_AUDIO, in: context)
        guard best >= 0 else {
            // An audio stream without rate or channels: the name or the first bytes deceived.
            if !audio.isEmpty {
                throw MediaError(
                    .notMedia, operation: "av_find_best_stream", subject: location.subject,
                    reason: "is not an audio file that can be played, or its beginning is damaged")
            }
            throw MediaError(
                .noAudio, operation: "av_find_best_stream", subject: location.subject,
                reason: "holds no sound; choose a file with an audio track")
        }
        func isMarked(_ index: Int) -> Bool {
            let stream = unsafe context.pointee.streams[index]!
            let parameters = unsafe stream.pointee.codecpar!
            return unsafe stream.pointee.disposition & AV_DISPOSITION_DEFAULT != 0
                && parameters.pointee.sample_rate > 0
                && parameters.pointee.ch_layout.nb_channels > 0
        }
        return isMarked(best) ? best : audio.first(where: isMarked) ?? best
    }

    /// Refuses a number that is no stream of the kind, and says which are.
    private static func check(
        _ index: Int, _ kind: MediaTrack.Kind,
        of context: UnsafeMutablePointer<AVFormatContext>, _ location: MediaLocation
    ) throws(MediaError) {
        let isText = kind == .text
        let type = isText ? AVMEDIA_TYPE_SUBTITLE : AVMEDIA_TYPE_AUDIO
        let there = unsafe indices(of: type, in: context)
        guard !there.contains(index) else { return }
        let name = isText ? "text" : "audio"
        let numbers = there.prefix(namedMax).map(String.init).joined(separator: ", ")
        let others =
            there.isEmpty
            ? "it holds none; choose another file"
            : "choose one of these: \(numbers)\(there.count > namedMax ? " …" : "")"
        throw MediaError(
            isText ? .unsupported : .noAudio, operation: "open", subject: location.subject,
            reason: "has no \(name) track \(index); \(others)")
    }

    /// Numbers in a message; a file may claim any number of streams.
    private static let namedMax = 8

    static func indices(
        of type: AVMediaType, in context: UnsafeMutablePointer<AVFormatContext>
    ) -> [Int] {
        (0..<Int(unsafe context.pointee.nb_streams)).filter {
            unsafe context.pointee.streams[$0]!.pointee.codecpar.pointee.codec_type == type
        }
    }
}
