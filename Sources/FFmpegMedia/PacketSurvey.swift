import CFFmpeg
import Playout

/// Finds the ``PacketMap`` of a freshly opened stream; leaves demuxer and decoder anywhere.
struct PacketSurvey {
    let demuxer: Demuxer
    let decoder: AudioDecoder

    /// Packets decoded at most before a stream is called damaged.
    private static let probeLimit = 200

    func run() throws(MediaError) -> (PacketMap, PacketLength) {
        let probe = try probe()
        let parameters = unsafe demuxer.stream.pointee.codecpar!
        let length = unsafe PacketLength(for: parameters, probed: probe.framesPerPacket)
        let start = encoderDelay(probe)
        var map = PacketMap(
            numbering: .live, first: probe.first, start: start, end: .max,
            preroll: unsafe preroll(of: parameters.pointee.codec_id, probe.framesPerPacket))
        map.restartInterval = unsafe restartInterval(
            of: parameters.pointee.codec_id, length.rule)
        guard demuxer.isSeekable, demuxer.containerName != "hls" else {
            return (map, length)
        }
        if hasExactTimestamps(length.rule, probe), let known = demuxer.location.knownFrameCount,
            agrees(with: start + known)
        {
            map.numbering = .timestamps(origin: probe.first.timestamp)
            map.end = start + known
            return (map, length)
        }
        if hasExactTimestamps(length.rule, probe),
            let end = try lastFrame(origin: probe.first.timestamp, start: start, length)
        {
            map.numbering = .timestamps(origin: probe.first.timestamp)
            map.end = end
        } else {
            demuxer.location.arriving?.needsAll()
            try demuxer.reopen()
            unsafe try decoder.restart(for: demuxer.stream)
            length.restart()
            (map.numbering, map.end) = try walk(length)
        }
        if let stated = statedEnd(
            start: start, end: map.end, framesPerPacket: Int64(probe.framesPerPacket)),
            stated < map.end
        {
            map.end = max(start, stated)
        }
        return (map, length)
    }
}

extension PacketSurvey {
    private struct Probe {
        var first: PacketMap.Anchor
        var skip: Int64
        /// Frames of the second packet that decoded, or of the only one.
        var framesPerPacket: Int
    }

    /// Decodes until the decoder has shown its true rate and packet length.
    private func probe() throws(MediaError) -> Probe {
        guard let packet = unsafe try demuxer.next() else { throw noFrames() }
        var probe = unsafe Probe(
            first: PacketMap.Anchor(packet), skip: trims(of: packet).start, framesPerPacket: 0)
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
        return probe
    }

    /// Raw frames before the recording begins.
    ///
    /// The demuxer says it with the first packet (LAME header, edit list, Opus in Ogg), or the
    /// container gives that packet a time before 0 by as much.
    private func encoderDelay(_ probe: Probe) -> Int64 {
        if probe.skip > 0 { return probe.skip }
        let first = probe.first.timestamp
        guard first < 0, first != cff_no_timestamp else { return 0 }
        let padding = unsafe Int64(demuxer.stream.pointee.codecpar.pointee.initial_padding)
        if padding > 0 || demuxer.containerName != "mov" { return max(0, padding) }
        return unsafe av_rescale_q(
            -first, demuxer.stream.pointee.time_base,
            AVRational(num: 1, den: Int32(decoder.sampleRate)))
    }

    private func noFrames() -> MediaError {
        MediaError(
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
        case "wav", "w64", "aiff", "caf", "flac", "au": return true
        case "mov": return hasRegularTable(Int64(probe.framesPerPacket), rule)
        default: return false
        }
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
        guard claimed != cff_no_timestamp, claimed > 0,
            demuxer.seek(toTimestamp: origin + max(0, claimed - Int64(decoder.sampleRate)))
        else { return nil }
        var end: Int64?
        while let packet = unsafe try demuxer.next() {
            let timestamp = unsafe packet.pointee.pts
            guard timestamp != cff_no_timestamp else { return nil }
            let frames = unsafe Int64(length.frames(of: packet) ?? 0)
            end = max(end ?? 0, timestamp - origin + frames)
        }
        return end
    }

    /// Counts all packets.
    private func walk(
        _ length: PacketLength
    ) throws(MediaError) -> (PacketMap.Numbering, Int64) {
        var anchors: [PacketMap.Anchor] = []
        var total: Int64 = 0
        var padding: Int64 = 0
        var lastPosition: Int64 = -1
        var lastTimestamp = Int64.min
        var isChained = false
        let spacing = Int64(decoder.sampleRate / PacketMap.anchorsPerSecond)
        while let packet = unsafe try demuxer.next() {
            var frames = unsafe length.frames(of: packet)
            if length.rule == .decoded {
                unsafe try decoder.decode(packet)
                frames = decoder.outputCount
            }
            total += Int64(frames ?? 0)
            // Padding counts only where nothing without padding follows.
            let cut = unsafe trims(of: packet).end
            padding = cut > 0 ? padding + cut : 0
            let position = unsafe packet.pointee.pos
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
        let byBytes = ["mp3", "aac"].contains(demuxer.containerName)
        // Recordings one after the other in one Ogg file: where such a file seeks to, and what it
        // yields there, depends on the way. Always reading it from the start is slow and right.
        if isChained && !byBytes { anchors = [] }
        return (.anchors(anchors, byBytes: byBytes), total - padding)
    }

    /// Raw end that an MP4 states besides its packets: iTunes' comment, the sample table (its last
    /// entry may be shorter than its packet), else the edit list.
    private func statedEnd(
        start: Int64, end: Int64, framesPerPacket: Int64
    ) -> Int64? {
        guard demuxer.containerName == "mov" else { return nil }
        if let entry = unsafe av_dict_get(
            demuxer.context.pointee.metadata, "iTunSMPB", nil, 0)
        {
            let words = unsafe String(cString: entry.pointee.value).split(separator: " ")
            if words.count >= 4, let frames = Int64(words[3], radix: 16), frames > 0 {
                return start + frames
            }
        }
        let rate = Int64(decoder.sampleRate)
        let base = unsafe demuxer.stream.pointee.time_base
        let table = unsafe demuxer.stream.pointee.duration
        if base.num == 1, Int64(base.den) == rate, table < end, end - table < framesPerPacket {
            return table
        }
        // The movie is as long as its edit list, in a timescale that may be as coarse as 1/600 s:
        // a difference below 2 ms may be rounding, and one of packets is something else.
        let microseconds = unsafe demuxer.context.pointee.duration
        guard unsafe demuxer.context.pointee.nb_streams == 1, microseconds > 0 else { return nil }
        let stated = start + av_rescale(microseconds, rate, 1_000_000)
        let cut = end - stated
        return cut > rate / 500 && cut < 2 * framesPerPacket ? stated : nil
    }

    /// 256 packets are some 6 s: decoding the 8 of preroll twice costs 3 %, and a seek decodes 3 s
    /// on average, 3 ms.
    private func restartInterval(of codec: AVCodecID, _ rule: PacketLength.Rule) -> Int64 {
        guard codec == AV_CODEC_ID_AAC || codec == AV_CODEC_ID_AC3, case .fixed(let frames) = rule
        else { return 0 }
        return Int64(256 * frames)
    }

    /// Frames after which a decoder that began in the middle yields what it yields from the start.
    private func preroll(of codec: AVCodecID, _ framesPerPacket: Int) -> Int64 {
        switch codec {
        // The bit reservoir reaches 511 bytes back: 22 frames of the smallest kind (24 bytes).
        case AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3: Int64(24 * framesPerPacket)
        // One packet of overlap; a few more for the filters of spectral band replication.
        case AV_CODEC_ID_AAC, AV_CODEC_ID_AC3: Int64(8 * framesPerPacket)
        // Energies are predicted from packet to packet: 2 s until the last bit agrees (measured).
        case AV_CODEC_ID_OPUS: 96_000
        // One block of overlap, of 8192 frames at most.
        case AV_CODEC_ID_VORBIS: 16_384
        case AV_CODEC_ID_FLAC, AV_CODEC_ID_ALAC: 0
        case let id where id.rawValue < AV_CODEC_ID_ADPCM_IMA_QT.rawValue: 0
        default: Int64(decoder.sampleRate)
        }
    }
}
