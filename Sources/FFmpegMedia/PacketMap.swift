import CTuttiFFmpeg
import TuttiPlayout
import TuttiTiming

/// How the packets of a stream are numbered in frames, and where the item begins and ends in them.
///
/// **Raw** frames count everything that the decoder yields from the first packet on; the item is
/// the part between encoder delay and end padding:
///
///     raw  0 ........ start ............................. end ........
///                     item 0                       frameCount
///
/// Two ways to know a packet's raw frame. Plain samples, FLAC and regular MP4 tables carry exact
/// timestamps: those are used, and only the last second is read to find the end. All others are
/// counted once at open by walking through the packets (no decoding where ``PacketLength`` knows
/// better), which leaves an anchor every quarter of a second. An anchor is recognised by its bytes'
/// position, so a container that seeks somewhere else than asked costs time, never exactness.
struct PacketMap {
    /// A packet to begin decoding at.
    struct Anchor: Equatable {
        var position: Int64
        var timestamp: Int64
        var size: Int32
        /// Raw frame after the packet's own output, which lacks what came before it.
        var end: Int64
    }

    enum Numbering: Equatable {
        case timestamps(origin: Int64)
        case anchors([Anchor], byBytes: Bool)
        /// No length and no way back: frames are counted as they come.
        case live
    }

    var numbering: Numbering
    var first: Anchor
    /// Raw frame of the item's frame 0.
    var start: Int64
    /// How much later than the first of the container's tracks this one begins: silence of the item
    /// before the frame `start`. Zero where it is the first, or the only one.
    var lead = MediaTime.zero
    /// Raw frame after the item's last; `Int64.max` while it cannot be known.
    var end: Int64
    /// Raw frames of each edit, where an MP4's edit list has several; the first is the item's
    /// beginning here.
    var stretches: [Range<Int64>] = []
    /// Bytes of each recording, where the file holds several or bytes that are none; all else is
    /// theirs then.
    var recordings: [Range<Int64>] = []
    /// Where the sound gets another rate; raw frames last as long as they do there.
    var changes: [SampleRateChange] = []
    /// Frames that the header promises behind the last packet: the file was cut off.
    var missing: Int64 = 0
    /// Frames to decode before the first one wanted; more than any item has where all that came
    /// before must be decoded.
    var preroll: Int64
    /// Frames after which decoding starts afresh, preroll and all; 0 for codecs that need not.
    ///
    /// AAC and AC-3 decoders fill noisy bands from a random generator, whose state depends on all
    /// that was decoded before. Restarted at fixed frames, a seek and a linear decode meet in the
    /// same state. At a restart one noise is followed by another of the same spectrum and level.
    var restartInterval: Int64 = 0

    var isByTimestamps: Bool {
        if case .timestamps = numbering { true } else { false }
    }

    /// The last change at or before a raw frame.
    func change(at frame: Int64) -> SampleRateChange? {
        changes.last { $0.frame <= frame }
    }

    /// Raw frame from which packets must be decoded, for the output to be right from `target` on.
    func decodeStart(for target: Int64) -> Int64 {
        guard restartInterval > 0 else { return target - preroll }
        return target / restartInterval * restartInterval - preroll
    }

    /// Least distance of anchors in seconds: an hour is 14 400 of them, 460 kB.
    static let anchorsPerSecond = 4
}

extension PacketMap.Anchor {
    init(_ packet: UnsafeMutablePointer<AVPacket>, end: Int64 = 0) {
        position = unsafe packet.pointee.pos
        let presentation = unsafe packet.pointee.pts
        timestamp =
            unsafe presentation != cff_no_timestamp ? presentation : packet.pointee.dts
        size = unsafe packet.pointee.size
        self.end = end
    }

    func isSame(as packet: UnsafeMutablePointer<AVPacket>) -> Bool {
        unsafe position == packet.pointee.pos && size == packet.pointee.size
    }
}

/// Frames to cut at a packet's start and end, told by the demuxer.
func trims(of packet: UnsafeMutablePointer<AVPacket>) -> (start: Int64, end: Int64) {
    var size = 0
    guard
        let data = unsafe av_packet_get_side_data(packet, AV_PKT_DATA_SKIP_SAMPLES, &size),
        size >= 8
    else { return (0, 0) }
    return unsafe (littleEndianWord(data), littleEndianWord(data + 4))
}

/// What the decoder is to be told from this packet on, where its container says so.
func freshSettings(of packet: UnsafeMutablePointer<AVPacket>) -> [UInt8]? {
    var size = 0
    guard let data = unsafe av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, &size)
    else { return nil }
    return unsafe [UInt8](UnsafeBufferPointer(start: data, count: size))
}

/// What a stream says to the decoder.
func streamSettings(of stream: UnsafeMutablePointer<AVStream>) -> [UInt8]? {
    let parameters = unsafe stream.pointee.codecpar!
    guard let data = unsafe parameters.pointee.extradata else { return nil }
    var settings = unsafe [UInt8](
        UnsafeBufferPointer(start: data, count: Int(parameters.pointee.extradata_size)))
    // FLAC's longest block, which another recording may exceed (RFC 9639, 8.2).
    if unsafe parameters.pointee.codec_id == AV_CODEC_ID_FLAC, settings.count >= 4 {
        (settings[2], settings[3]) = (0xFF, 0xFF)
    }
    return settings
}

/// Four bytes as FFmpeg's side data holds numbers.
func littleEndianWord(_ bytes: UnsafePointer<UInt8>) -> Int64 {
    (0..<4).reduce(0) { sum, byte in unsafe sum | Int64(bytes[byte]) << (8 * byte) }
}
