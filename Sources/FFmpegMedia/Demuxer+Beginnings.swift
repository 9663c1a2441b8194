import CTuttiFFmpeg
import TuttiPlayout
import TuttiTiming

/// When the tracks of one container begin, against each other.
///
/// Tracks lie on one timeline: the movie's of an MP4 (ISO/IEC 14496-12, 8.6.5 and 8.6.6), the
/// timestamps of other containers. Item time 0 is one instant of it for all of them: where the first
/// of the audio tracks begins. So a track that begins later begins with silence, none is cut, and what
/// all of them leave empty is left out, as it is where there is only one: such a file sounds as it
/// always did.
///
/// A track begins with its first audible frame: behind the encoder's delay, and where an edit list
/// begins to take from its media; what lies before that is nothing to be heard. Empty edits in front
/// of it are the time until then. Empty edits in the middle are still left out.
extension Demuxer {
    /// What the first packet of a stream tells that yields frames.
    struct FirstPacket {
        var timestamp: Int64
        /// Frames of the encoder's delay.
        var skip: Int64

        init(_ packet: UnsafeMutablePointer<AVPacket>) {
            timestamp = unsafe PacketMap.Anchor(packet).timestamp
            skip = unsafe trims(of: packet).start
        }
    }

    /// A track that is said to begin later than this does not: its timestamps are nonsense. Longer
    /// than any recording; without it such a track would be silent for years.
    private static let longestLead = MediaTime(value: 24 * 3_600, timescale: 1)

    /// Streams of sound that may be chosen instead of this one. Programs of a transport stream have
    /// clocks of their own.
    private var alternatives: [Int] {
        let audio = unsafe Self.indices(of: AVMEDIA_TYPE_AUDIO, in: context)
        guard let program = unsafe av_find_program_from_stream(context, nil, Int32(track)) else {
            return audio
        }
        let count = unsafe Int(program.pointee.nb_stream_indexes)
        let members = Set((0..<count).map { unsafe Int(program.pointee.stream_index[$0]) })
        return audio.filter(members.contains)
    }

    /// Streams whose first packet must come by to know when they begin.
    ///
    /// The index of an MP4 tells that, and another stream of a playlist would be fetched for it. The
    /// others are read from the first packet to the last in any case, to count them.
    ///
    /// - Returns: the number of that packet, from 1 on: Vorbis yields nothing with its first.
    var streamsToAwait: [Int: Int] {
        guard isSeekable, !["mov", "hls"].contains(containerName) else { return [:] }
        let alternatives = alternatives
        guard alternatives.count > 1 || kind == .text else { return [:] }
        return Dictionary(
            uniqueKeysWithValues: alternatives.map { index in
                (index, codec(of: index) == AV_CODEC_ID_VORBIS ? 2 : 1)
            })
    }

    /// Item time 0 on the container's timeline; `nil` where no stream of sound tells.
    ///
    /// - Parameter excess: frames by which the stream that is read begins later than it tells, known
    ///   by decoding; so do others of its coding.
    func itemBeginning(excess: Int64 = 0) -> MediaTime? {
        let beginnings = alternatives.compactMap { index in
            beginning(of: index, after: codec(of: index) == codec(of: track) ? excess : 0)
        }
        guard let first = beginnings.min() else { return nil }
        // Timestamps are rounded.
        let isZero = unsafe max(first, -first) < Self.rounding(of: stream)
        return isZero ? .zero : first
    }

    private func codec(of index: Int) -> AVCodecID {
        unsafe context.pointee.streams[index]!.pointee.codecpar.pointee.codec_id
    }

    /// How much later than item time 0 the stream that is read begins.
    ///
    /// - Parameter start: raw frame of its first audible one.
    /// - Returns: zero for a stream without alternatives, and where that is less than rounding.
    func lead(start: Int64, sampleRate: Int) -> MediaTime {
        guard location.part == nil, !location.ignoresEdits, !location.followsRates, isSeekable,
            sampleRate > 0, alternatives.count > 1, let told = beginning(of: track),
            let first = firstTimestamp(of: track), let time = unsafe Self.time(first, of: stream)
        else { return .zero }
        let begin = time + MediaTime(frame: start, sampleRate: sampleRate)
        let excess = (begin - told).frame(atSampleRate: sampleRate) ?? 0
        guard let zero = itemBeginning(excess: excess) else { return .zero }
        let lead = begin - zero
        let isMeant = unsafe lead >= Self.rounding(of: stream) && lead <= Self.longestLead
        return isMeant ? lead : .zero
    }

    /// Two ticks: what two timestamps lose by rounding is less.
    private static func rounding(of stream: UnsafeMutablePointer<AVStream>) -> MediaTime {
        unsafe time(2, of: stream) ?? .zero
    }

    /// Of raw frame 0; `nil` where it is not known, or not yet.
    private func firstTimestamp(of index: Int) -> Int64? {
        guard containerName == "mov" else { return firstPackets[index]?.timestamp }
        let entry = unsafe avformat_index_get_entry(context.pointee.streams[index], 0)
        return unsafe entry?.pointee.timestamp
    }

    /// When its first audible frame is heard, as far as that can be told without decoding.
    ///
    /// - Parameter excess: frames of the encoder's delay besides.
    private func beginning(of index: Int, after excess: Int64 = 0) -> MediaTime? {
        guard let stream = unsafe context.pointee.streams[index],
            let timestamp = firstTimestamp(of: index), timestamp != cff_no_timestamp
        else { return nil }
        let parameters = unsafe stream.pointee.codecpar!
        let rate = unsafe Int(parameters.pointee.sample_rate)
        func after(_ timestamp: Int64, _ frames: Int64) -> MediaTime? {
            guard let time = unsafe Self.time(timestamp, of: stream) else { return nil }
            let delay = frames.adding(saturating: excess)
            return rate > 0 ? time + MediaTime(frame: delay, sampleRate: rate) : time
        }
        if containerName == "mov" {
            guard let edits = unsafe edits(of: stream) else {
                return after(timestamp, iTunesComment?.delay ?? 0)
            }
            return after(timestamp.adding(saturating: edits.firstTime), 0)
        }
        let padding = unsafe timestamp < 0 ? Int64(parameters.pointee.initial_padding) : 0
        let skip = firstPackets[index]?.skip ?? 0
        return after(timestamp, skip > 0 ? skip : max(0, padding))
    }

    /// A timestamp as a time on the container's timeline; `nil` for what is none.
    static func time(_ timestamp: Int64, of stream: UnsafeMutablePointer<AVStream>) -> MediaTime? {
        let base = unsafe stream.pointee.time_base
        guard timestamp != cff_no_timestamp, base.num > 0, base.den > 0 else { return nil }
        let (units, isTooLong) = timestamp.multipliedReportingOverflow(by: Int64(base.num))
        return isTooLong ? nil : MediaTime(value: units, timescale: base.den)
    }

    /// Delay, and frames of the item, in hexadecimal words: zeros, delay, padding, frames.
    var iTunesComment: (delay: Int64, frames: Int64)? {
        guard containerName == "mov",
            let entry = unsafe av_dict_get(context.pointee.metadata, "iTunSMPB", nil, 0)
        else { return nil }
        let words = unsafe String(cString: entry.pointee.value).split(separator: " ")
        guard words.count >= 4, let delay = Int64(words[1], radix: 16),
            let frames = Int64(words[3], radix: 16), delay >= 0, delay < Self.longestDelay,
            frames >= 0, frames < .max / 2
        else { return nil }
        return (delay, frames)
    }

    /// Frames; encoders have delays of some thousand.
    private static let longestDelay: Int64 = 16_384
}

extension MP4Edits {
    /// Where in the media, in its own units, the first edit that is not empty begins.
    fileprivate var firstTime: Int64 { max(0, edits.first { $0.mediaTime >= 0 }?.mediaTime ?? 0) }
}
