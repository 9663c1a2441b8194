import CTuttiFFmpeg
import TuttiPlayout
import TuttiTiming

/// Finds the ``PacketMap`` of a freshly opened stream; leaves demuxer and decoder anywhere.
struct PacketSurvey {
    let demuxer: Demuxer
    let decoder: AudioDecoder

    /// Packets decoded at most before a stream is called damaged.
    private static let probeLimit = 200

    /// - Parameter recordings: what ``Recordings`` found; then only rate and channels are found out.
    func run(
        recordings: [Range<Int64>]?
    ) throws(MediaError) -> (PacketMap, framesPerPacket: Int) {
        var (map, framesPerPacket) = try count(recordings)
        map.lead = demuxer.lead(start: map.start, sampleRate: decoder.sampleRate)
        return (map, framesPerPacket)
    }

    /// The same without a look at the packets behind the first; `nil` where these are not as promised.
    func run(
        promised: PromisedLength
    ) throws(MediaError) -> (PacketMap, framesPerPacket: Int)? {
        let probe = try probe()
        guard probe.skip == promised.start, probe.framesPerPacket == promised.framesPerPacket else {
            return nil
        }
        let codec = unsafe demuxer.stream.pointee.codecpar.pointee.codec_id
        var map = PacketMap(
            numbering: .anchors([], byBytes: true), first: probe.first, start: promised.start,
            end: promised.end, preroll: preroll(of: codec, probe.framesPerPacket))
        map.lead = demuxer.lead(start: map.start, sampleRate: decoder.sampleRate)
        return (map, probe.framesPerPacket)
    }

    private func count(
        _ recordings: [Range<Int64>]?
    ) throws(MediaError) -> (PacketMap, framesPerPacket: Int) {
        if let recordings {
            let nowhere = PacketMap.Anchor(position: 0, timestamp: 0, size: 0, end: 0)
            let map = PacketMap(
                numbering: .live, first: nowhere, start: 0, end: 0, recordings: recordings,
                preroll: 0)
            return (map, 0)
        }
        let probe = try probe()
        let parameters = unsafe demuxer.stream.pointee.codecpar!
        let length = unsafe PacketLength(for: parameters, probed: probe.framesPerPacket)
        let edits = demuxer.edits
        let start = beginning(probe, edits)
        var map = PacketMap(
            numbering: .live, first: probe.first, start: start, end: .max,
            preroll: unsafe preroll(of: parameters.pointee.codec_id, probe.framesPerPacket))
        map.restartInterval = unsafe restartInterval(
            of: parameters.pointee.codec_id, length.rule)
        guard demuxer.isSeekable, demuxer.containerName != "hls" else {
            return (map, probe.framesPerPacket)
        }
        let isExact = hasExactTimestamps(length.rule, probe)
        let parts = (edits?.edits ?? []).count { $0.mediaTime >= 0 }
        if isExact, parts < 2, let known = knownFrames(start),
            agrees(with: start + known)
        {
            map.numbering = .timestamps(origin: probe.first.timestamp)
            map.end = start + known
            return (map, probe.framesPerPacket)
        }
        if isExact, let end = try lastFrame(origin: probe.first.timestamp, start: start, length) {
            map.numbering = .timestamps(origin: probe.first.timestamp)
            map.end = end
        } else {
            demuxer.location.incoming?.needsAll()
            try demuxer.reopen()
            unsafe try decoder.restart(for: demuxer.stream)
            length.restart()
            var changes: [Int64] = []
            (map.numbering, map.end, map.changes) = try walk(length, &changes)
            if !changes.isEmpty, demuxer.location.part == nil {
                map.recordings = try demuxer.looking { Recordings.split(at: changes, in: demuxer) }
                return (map, probe.framesPerPacket)
            }
        }
        let promised = try demuxer.looking {
            demuxer.promisedFrames(perSecond: decoder.sampleRate, counted: map.end)
        }
        if let promised {
            map.missing = max(0, promised - map.end)
            if demuxer.containerName == "flac", promised != map.end || !map.isByTimestamps,
                let files = try demuxer.looking({ Recordings.flacFiles(in: demuxer) })
            {
                map.recordings = files
                return (map, probe.framesPerPacket)
            }
        }
        cut(&map, edits, framesPerPacket: Int64(probe.framesPerPacket))
        return (map, probe.framesPerPacket)
    }
}

extension PacketSurvey {
    private struct Probe {
        var first: PacketMap.Anchor
        /// Frames of the encoder's delay, told by container or decoder.
        var skip: Int64
        /// Frames of the second packet that decoded, or of the only one.
        var framesPerPacket: Int
        /// FLAC's frames are numbered one by one, and not in samples.
        var countsBlocks = false
    }

    /// Decodes until the decoder has shown its true rate and packet length.
    private func probe() throws(MediaError) -> Probe {
        guard let packet = unsafe try demuxer.next() else { throw noFrames() }
        var probe = unsafe Probe(
            first: PacketMap.Anchor(packet), skip: trims(of: packet).start, framesPerPacket: 0)
        probe.countsBlocks = unsafe packet.pointee.size > 1 && packet.pointee.data[1] & 1 == 0
        if unsafe av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, nil) != nil {
            throw MediaError.protected(demuxer.location)
        }
        unsafe try decoder.decode(packet)
        probe.framesPerPacket = decoder.outputCount
        var decoded = decoder.outputCount > 0 ? 1 : 0
        for _ in 0..<Self.probeLimit where decoded < 2 {
            guard let packet = unsafe try demuxer.next() else {
                unsafe try decoder.decode(nil)
                if decoder.outputCount > 0 {
                    decoded += 1
                    if probe.framesPerPacket == 0 { probe.framesPerPacket = decoder.outputCount }
                }
                break
            }
            unsafe try decoder.decode(packet)
            if decoder.outputCount > 0 {
                decoded += 1
                probe.framesPerPacket = max(probe.framesPerPacket, decoder.outputCount)
            }
        }
        guard decoded > 0, decoder.sampleRate > 0, decoder.channelCount > 0 else {
            throw noFrames()
        }
        if decoder.announcedDelay > 0 { probe.skip = decoder.announcedDelay }
        return probe
    }

    /// Raw frames before the recording begins.
    ///
    /// An MP4's edit list says it before all others: whoever cuts such a file changes that, and what
    /// else is written in it stays as it was. Where it begins with the first packet it says nothing
    /// of the encoder's delay. Else the demuxer says it with the first packet (LAME header, Opus in
    /// Ogg), the decoder with its first frames, iTunes in a comment, or the container gives the
    /// first packet a time before 0 by as much.
    private func beginning(_ probe: Probe, _ edits: MP4Edits?) -> Int64 {
        if demuxer.location.ignoresEdits || demuxer.location.followsRates { return 0 }
        let rate = Int64(decoder.sampleRate)
        let table = unsafe av_rescale_q(
            max(0, demuxer.stream.pointee.duration), demuxer.stream.pointee.time_base,
            AVRational(num: 1, den: Int32(rate)))
        let stretches = edits?.stretches(sampleRate: rate, end: table > 0 ? table : .max)
        if let begin = stretches?.first?.lowerBound, begin > 0 { return begin }
        if edits == nil, let stated = demuxer.iTunesComment, stated.delay > 0 {
            return stated.delay
        }
        if probe.skip > 0 { return probe.skip }
        let first = probe.first.timestamp
        guard first < 0, first != cff_no_timestamp, edits == nil else { return 0 }
        let padding = unsafe Int64(demuxer.stream.pointee.codecpar.pointee.initial_padding)
        if padding > 0 || demuxer.containerName != "mov" { return max(0, padding) }
        return unsafe av_rescale_q(
            -first, demuxer.stream.pointee.time_base,
            AVRational(num: 1, den: Int32(decoder.sampleRate)))
    }

    private func noFrames() -> MediaError {
        let parameters = unsafe demuxer.stream.pointee.codecpar!
        if unsafe CodingName.isBeyondLibrary(parameters) {
            return unsafe CodingName.cannotDecode(
                parameters, "avcodec_receive_frame", demuxer.location)
        }
        return MediaError(
            .damaged, operation: "avcodec_receive_frame", subject: demuxer.location.subject,
            reason: "nothing in it can be decoded; try another copy")
    }

    /// Whether timestamps count frames: trusted containers only, and a regular table in MP4.
    private func hasExactTimestamps(_ rule: PacketLength.Rule, _ probe: Probe) -> Bool {
        let base = unsafe demuxer.stream.pointee.time_base
        guard base.num == 1, Int(base.den) == decoder.sampleRate, rule != .decoded,
            probe.first.timestamp != cff_no_timestamp
        else { return false }
        switch demuxer.containerName {
        // FFmpeg writes CAF of FLAC whose packet table says other lengths than its packets have.
        case "wav", "w64", "aiff", "caf", "au": return rule != .flac
        case "flac": return !(probe.countsBlocks && hasVariableBlocks)
        case "mov": return hasRegularTable(Int64(probe.framesPerPacket), rule)
        default: return false
        }
    }

    /// Whether a FLAC's header says that its blocks differ in length. Old encoders number such blocks
    /// in samples and leave the bit that says so at 0: FFmpeg multiplies those by the block's length.
    private var hasVariableBlocks: Bool {
        guard let header = unsafe demuxer.stream.pointee.codecpar.pointee.extradata,
            unsafe demuxer.stream.pointee.codecpar.pointee.extradata_size >= 4
        else { return false }
        return unsafe (header[0], header[1]) != (header[2], header[3])
    }

    /// Whether every entry of an MP4 sample table is as long as its packet decodes to.
    private func hasRegularTable(_ usual: Int64, _ rule: PacketLength.Rule) -> Bool {
        let stream = unsafe demuxer.stream
        let count = unsafe avformat_index_get_entries_count(stream)
        guard count > 0 else { return false }
        if case .bytesPerFrame = rule { return true }
        var previous: Int64?
        for index in 0..<count {
            guard let entry = unsafe avformat_index_get_entry(stream, index) else { return false }
            let timestamp = unsafe entry.pointee.timestamp
            if let previous, timestamp - previous != usual { return false }
            previous = timestamp
        }
        return true
    }

    /// Frames that others count, without the silence before the track.
    private func knownFrames(_ start: Int64) -> Int64? {
        let rate = decoder.sampleRate
        let lead = demuxer.lead(start: start, sampleRate: rate)
            .frame(atSampleRate: rate)
        guard let known = demuxer.location.knownFrameCount, known >= lead ?? 0 else { return nil }
        return known - (lead ?? 0)
    }

    /// Whether the header says nothing else, to a second: it counts the last packet as whole.
    private func agrees(with end: Int64) -> Bool {
        let claimed = unsafe demuxer.stream.pointee.duration
        return claimed == cff_no_timestamp || claimed <= 0
            || (claimed - end).magnitude <= UInt64(decoder.sampleRate)
    }

    /// Raw end by the packets of the last second; `nil` when they cannot be found there.
    private func lastFrame(
        origin: Int64, start: Int64, _ length: PacketLength
    ) throws(MediaError) -> Int64? {
        let claimed = unsafe demuxer.stream.pointee.duration
        guard claimed != cff_no_timestamp, claimed > 0, try risesSteadily(),
            demuxer.seek(toTimestamp: origin + max(0, claimed - Int64(decoder.sampleRate)))
        else { return nil }
        var end: Int64?
        var last = LastPacket(length.rule)
        while let packet = unsafe try demuxer.next() {
            let timestamp = unsafe packet.pointee.pts
            guard timestamp != cff_no_timestamp else { return nil }
            let frames = unsafe Int64(length.frames(of: packet) ?? 0)
            unsafe last.take(packet, frames: frames)
            end = max(end ?? 0, timestamp - origin + frames)
        }
        if let counted = end { unsafe end = counted - last.lostFrames(decoder, demuxer.stream) }
        // More than a FLAC's header counts: its blocks' numbers jump, or the header is wrong.
        if demuxer.containerName == "flac", end ?? 0 > claimed { return nil }
        return end
    }

    /// Places in a FLAC file at which its blocks' numbers are looked at, in thousandths of its bytes.
    private static let looks: [Int64] = [230, 500, 710, 880]

    /// Whether the blocks of a FLAC file are numbered as one recording's, as far as a few looks show.
    ///
    /// Two copies of a recording, one behind the other, end with the very number that the header
    /// promises; in the middle they begin anew. Not in files that are being fetched,
    /// of which a leader has said how long they are.
    private func risesSteadily() throws(MediaError) -> Bool {
        guard demuxer.containerName == "flac", demuxer.location.incoming == nil,
            let size = demuxer.byteCount
        else { return true }
        var last: Int64 = -1
        for look in Self.looks {
            guard demuxer.seek(toByte: size / 1_000 * look),
                let packet = unsafe try demuxer.nextWithTime()
            else { continue }
            let timestamp = unsafe packet.pointee.pts
            if timestamp < last { return false }
            last = timestamp
        }
        return true
    }

    /// Rates change in the middle of a transport stream where two were joined.
    private static let changesMax = 256

    /// What the packets of a transport stream say of their own rate, and those of a server's file,
    /// through which ``Recordings`` does not look.
    private var coding: FrameScan.Coding? {
        let isBare = ["mp3", "aac", "ac3", "eac3"].contains(demuxer.containerName)
        guard demuxer.containerName == "mpegts" || isBare && demuxer.location.isRemote else {
            return nil
        }
        return switch unsafe demuxer.stream.pointee.codecpar.pointee.codec_id {
        case AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3: .mpeg
        case AV_CODEC_ID_AAC: .adts
        case AV_CODEC_ID_AC3, AV_CODEC_ID_EAC3: .ac3
        default: nil
        }
    }

    /// What a packet's header says of its rate, where it says anything.
    private func rateKind(of packet: UnsafeMutablePointer<AVPacket>) -> UInt32? {
        guard unsafe packet.pointee.size >= 8 else { return nil }
        let head = (0..<8).map { unsafe packet.pointee.data[$0] }
        switch unsafe demuxer.stream.pointee.codecpar.pointee.codec_id {
        case AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3: return FrameScan.mpeg(head)?.kind
        case AV_CODEC_ID_AC3, AV_CODEC_ID_EAC3: return FrameScan.ac3(head)?.kind
        // Four bits of a frame's header, 0 where it is as the whole file's (RFC 9639, 9.1.2).
        case AV_CODEC_ID_FLAC: return head[0] == 0xFF ? UInt32(head[2] & 15) : nil
        default: return nil
        }
    }

    /// Frames of the next packet. One that may begin another rate is decoded.
    private func count(
        _ packet: UnsafeMutablePointer<AVPacket>, _ length: PacketLength, from frame: Int64,
        _ watch: inout RateWatch
    ) throws(MediaError) -> Int {
        if length.rule == .decoded {
            unsafe try decoder.decode(packet)
            watch.heard(sampleRate: decoder.lastSampleRate, at: frame)
            return decoder.outputCount
        }
        if unsafe watch.begins(
            kind: rateKind(of: packet), fresh: freshSettings(of: packet), at: frame)
        {
            unsafe try decoder.restart(for: demuxer.stream, settings: watch.decoderSettings)
        }
        if watch.isLooking {
            unsafe try decoder.decode(packet)
            watch.decoded(decoder.outputCount, sampleRate: decoder.lastSampleRate)
            if !watch.isLooking { length.setFixed(decoder.outputCount) }
        }
        return unsafe length.frames(of: packet) ?? 0
    }

    /// Counts all packets.
    ///
    /// - Parameter changes: positions of packets at which the rate changes, in files of bare frames.
    private func walk(
        _ length: PacketLength, _ changes: inout [Int64]
    ) throws(MediaError) -> (PacketMap.Numbering, Int64, [SampleRateChange]) {
        var anchors: [PacketMap.Anchor] = []
        var total: Int64 = 0
        var padding: Int64 = 0
        var lastPosition: Int64 = -1
        var lastTimestamp = Int64.min
        var isChained = false
        let coding = coding
        var kind: UInt32?
        var watch = RateWatch(
            sampleRate: decoder.sampleRate, settings: unsafe streamSettings(of: demuxer.stream))
        decoder.followsRates = coding == nil
        let spacing = Int64(decoder.sampleRate / PacketMap.anchorsPerSecond)
        var last = LastPacket(length.rule)
        var preparation = VorbisPreparation()
        while let packet = unsafe try demuxer.next() {
            let frames =
                if coding == nil {
                    Int64(unsafe try count(packet, length, from: total, &watch))
                } else {
                    Int64(unsafe length.frames(of: packet) ?? 0)
                }
            total += frames
            unsafe last.take(packet, frames: frames)
            unsafe preparation.take(packet, frames: frames, length.rule)
            // Padding counts only where nothing without padding follows.
            let cut = unsafe trims(of: packet).end
            padding = cut > 0 ? padding + cut : 0
            let position = unsafe packet.pointee.pos
            if let coding, unsafe packet.pointee.size >= 8 {
                let head = (0..<8).map { unsafe packet.pointee.data[$0] }
                if let header = coding.header(head) {
                    let isChange = kind != nil && header.kind != kind && position > lastPosition
                    if isChange, changes.count < Self.changesMax { changes.append(position) }
                    kind = header.kind
                }
            }
            if position > lastPosition, total >= (anchors.last?.end ?? 0) + spacing {
                unsafe anchors.append(PacketMap.Anchor(packet, end: total))
            }
            lastPosition = max(lastPosition, position)
            let timestamp = unsafe packet.pointee.pts
            if timestamp != cff_no_timestamp {
                isChained = isChained || timestamp < lastTimestamp
                lastTimestamp = timestamp
            }
        }
        if length.rule == .decoded {
            unsafe try decoder.decode(nil)
            total += Int64(decoder.outputCount)
        }
        let lost = unsafe last.lostFrames(
            decoder, demuxer.stream, settings: watch.decoderSettings)
        if lost > 0 {
            total -= lost
            anchors.removeAll { $0.end > total }
        }
        padding = max(0, padding - preparation.excess(lastPage: lastPosition))
        let byBytes = ["mp3", "aac", "flac"].contains(demuxer.containerName)
        // Recordings one after the other in one Ogg file: where such a file seeks to, and what it
        // yields there, depends on the way. Always reading it from the start is slow and right.
        if isChained && !byBytes { anchors = [] }
        return (.anchors(anchors, byBytes: byBytes), total - padding, watch.changes)
    }

    /// What an MP4 says of the item besides its packets: the sample table, whose last entry may be
    /// shorter than its packet; then the edit list; without one, iTunes' comment.
    ///
    /// The order is that of trust. The edit list is part of the format, and FFmpeg, browsers and
    /// Apple's players go by it; the comment is a tag, which other programs copy to files that it
    /// does not fit.
    private func cut(_ map: inout PacketMap, _ edits: MP4Edits?, framesPerPacket: Int64) {
        // A delay may be told that is longer than all there is.
        map.end = max(map.start, map.end)
        guard demuxer.containerName == "mov", !demuxer.location.followsRates else { return }
        let rate = Int64(decoder.sampleRate)
        let base = unsafe demuxer.stream.pointee.time_base
        let table = unsafe demuxer.stream.pointee.duration
        let begin = edits?.stretches(sampleRate: rate, end: map.end).first?.lowerBound
        // Lasts as long as the file says, also where it does not count the encoder's delay.
        let delay = max(0, map.start - (begin ?? map.start))
        if base.num == 1, Int64(base.den) == rate, table < map.end,
            map.end - table < framesPerPacket
        {
            map.end = min(map.end, table + delay)
        }
        // By the end that the table says: what an edit's unit is too coarse to tell is rounding there.
        let stretches = edits?.stretches(sampleRate: rate, end: map.end) ?? []
        let counted = map.end
        if !stretches.isEmpty {
            map.stretches = stretches.map { $0.clamped(to: 0..<counted) }
            let end = max(map.start, min(counted, stretches[0].upperBound + delay))
            map.stretches[0] = map.start..<end
            map.end = end
        } else if edits == nil, let stated = demuxer.iTunesComment, stated.frames > 0 {
            map.end = min(map.end, map.start + stated.frames)
        }
        if map.end < counted { map.missing = 0 }
        map.end = max(map.start, map.end)
    }

    /// 256 packets are some 6 s: decoding the 8 of preroll twice costs 3 %, and a seek decodes 3 s
    /// on average, 3 ms.
    private func restartInterval(of codec: AVCodecID, _ rule: PacketLength.Rule) -> Int64 {
        let isDiced = [AV_CODEC_ID_AAC, AV_CODEC_ID_AC3, AV_CODEC_ID_EAC3].contains(codec)
        guard isDiced, case .fixed(let frames) = rule else { return 0 }
        return Int64(256 * frames)
    }

    /// Whether WMA fills high bands with noise: where it has few bits a sample, which a stereo pair
    /// shares. Only the two rates that have one bound each; below 22 050 Hz there are several.
    private var hasNoise: Bool {
        let parameters = unsafe demuxer.stream.pointee.codecpar!
        let rate = decoder.sampleRate
        let samples = Double(rate * max(1, decoder.channelCount))
        let bits = unsafe Double(parameters.pointee.bit_rate) / samples
        let shared = bits * (decoder.channelCount == 2 ? 1.6 : 1)
        return !(rate >= 44_100 && shared >= 0.61 || rate >= 22_050 && shared >= 1.16)
    }

    /// Frames after which a decoder that began in the middle yields what it yields from the start.
    private func preroll(of codec: AVCodecID, _ framesPerPacket: Int) -> Int64 {
        switch codec {
        // The bit reservoir reaches 511 bytes back: 22 frames of the smallest kind (24 bytes).
        case AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3: Int64(24 * framesPerPacket)
        // One packet of overlap; a few more for the filters of spectral band replication.
        case AV_CODEC_ID_AAC, AV_CODEC_ID_AC3, AV_CODEC_ID_EAC3: Int64(8 * framesPerPacket)
        // Energies are predicted from packet to packet: 2 s until the last bit agrees (measured).
        case AV_CODEC_ID_OPUS: 96_000
        // One block of overlap, of 8192 frames at most.
        case AV_CODEC_ID_VORBIS: 16_384
        case AV_CODEC_ID_FLAC, AV_CODEC_ID_ALAC: 0
        case let id where id.rawValue < AV_CODEC_ID_ADPCM_IMA_QT.rawValue: 0
        // Each packet begins with all that its decoding needs.
        case AV_CODEC_ID_ADPCM_IMA_WAV, AV_CODEC_ID_ADPCM_IMA_QT, AV_CODEC_ID_ADPCM_MS:
            Int64(decoder.sampleRate)
        // Sample is predicted from sample, from the first on: decoded from there.
        case let id where id.rawValue < AV_CODEC_ID_MP2.rawValue: .max / 4
        // What fills gaps with noise goes on in its table of noise, or throws dice, from packet to
        // packet; telephone codecs predict.
        case AV_CODEC_ID_WMAV1, AV_CODEC_ID_WMAV2:
            hasNoise ? .max / 4 : Int64(decoder.sampleRate)
        case AV_CODEC_ID_NELLYMOSER, AV_CODEC_ID_COOK, AV_CODEC_ID_MUSEPACK7,
            AV_CODEC_ID_MUSEPACK8, AV_CODEC_ID_QDM2, AV_CODEC_ID_WMAVOICE, AV_CODEC_ID_AMR_NB,
            AV_CODEC_ID_AMR_WB, AV_CODEC_ID_GSM, AV_CODEC_ID_GSM_MS, AV_CODEC_ID_QCELP,
            AV_CODEC_ID_SPEEX,
            AV_CODEC_ID_G729, AV_CODEC_ID_G723_1, AV_CODEC_ID_ILBC, AV_CODEC_ID_CODEC2,
            AV_CODEC_ID_EVRC, AV_CODEC_ID_SMV, AV_CODEC_ID_APTX, AV_CODEC_ID_APTX_HD,
            AV_CODEC_ID_DFPWM:
            .max / 4
        default: Int64(decoder.sampleRate)
        }
    }
}
