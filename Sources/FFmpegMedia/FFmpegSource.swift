import CTuttiFFmpeg
public import TuttiPlayout
import TuttiTiming

/// What FFmpeg opens, as decoded frames with exact numbers.
///
/// Frame 0 is the first frame of the recording: encoder delay is removed, end padding too, so that
/// two items that were one recording join without a gap. After ``seek(toFrame:)`` the frames equal
/// those of a decode from the start, bit for bit; ``PacketMap`` says how. For Opus that holds
/// because 2 s of preroll were enough in all that was measured; the format does not promise it.
///
/// Opening reads the packets of a whole file where the container does not number them (MP3, ADTS,
/// Ogg, Matroska): a few milliseconds a minute from a disk, one transfer from a server, whose file is
/// kept here then (``Spool``), unless it may begin before (``PromisedLength``). Files that were opened before are not read again (``SurveyMemory``).
///
/// Use from one thread at a time; only ``cancellation`` may be used from others.
@safe
public final class FFmpegSource: MediaSource {
    public let format: MediaFormat
    /// What the file says about itself; its ``MediaInfo/frameCount`` is exact.
    public let info: MediaInfo
    public let metadata: MediaMetadata
    public let tracks: [MediaTrack]
    public let track: Int?
    /// Ends a blocking call from another thread.
    public let cancellation: MediaCancellation

    private let demuxer: Demuxer
    private let decoder: AudioDecoder
    let map: PacketMap
    private let length: PacketLength
    private let framesPerPacket: Int
    public var packetFrames: Int {
        unsafe max(framesPerPacket, Int(demuxer.stream.pointee.codecpar.pointee.frame_size))
    }
    /// What was last decoded by.
    private var change: SampleRateChange?
    /// Where the item is more than one recording, or has another rate than its file; it is read then,
    /// and the above only opened the file.
    private var splice: Splice?

    /// Where a file on a server was played from its beginning, and then sought in: all of it, by which it is
    /// read from there on.
    private var whole: FFmpegSource?

    /// Before the track's own frames, where another track of the container begins earlier.
    private var lead: LeadingSilence

    /// Raw frame that the next packet's output begins with (or is made to begin with).
    private var next: Int64 = 0
    /// Raw frame that the next `read` begins with; everything before is dropped.
    private var wanted: Int64 = 0
    /// Silent frames to yield before `pending`.
    private var silence: Int64 = 0
    /// Frames of the decoder's output not read yet.
    private var pending: Range<Int> = 0..<0
    /// Packets that end before this raw frame are counted but not decoded.
    private var decodeStart: Int64 = .min
    /// The next packet is this anchor, whose only use is to tell its number.
    private var anchor: PacketMap.Anchor?
    /// The first anchor that may still come.
    private var anchorIndex = 0
    /// Of the packet before; `nil` where there was none.
    private var lastPosition: Int64?
    /// The last packets, for ``PacketMap/restartInterval``.
    private let history = PacketHistory()
    private var isDrained = false
    /// Of the next `read`.
    private var failure: MediaError?

    /// A file that is still being fetched; otherwise as `init(_:container:cancellation:)`.
    ///
    /// - Parameter frameCount: as whoever has the whole file counts them in the same track: then its
    ///   end need not be fetched to know it, where packets have exact times.
    public convenience init(
        _ file: IncomingFile, track: Int? = nil, channels: ChannelPair? = nil,
        frameCount: Int64? = nil, container: String? = nil,
        cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        var location = MediaLocation(file, frameCount: frameCount)
        location.track = track
        location.channels = channels
        try self.init(at: location, container: container, cancellation: cancellation)
    }

    /// - Parameters:
    ///   - location: a path, or an `http:`, `https:` or `file:` address.
    ///   - track: an audio track of ``tracks``, by its number; `nil`: the one that the container marks
    ///     as default, or else the one that FFmpeg finds best.
    ///   - channels: two of an output's channels, which get what the item has for them; whatever the
    ///     pair, frames and their numbers are the same. `nil`: all channels are mixed to two.
    ///   - container: what ``MediaInfo/container`` said when the same bytes were opened before;
    ///     `nil`: what the first bytes of a file say. FFmpeg then need not ask each of its demuxers,
    ///     which touches 3 MB of code. Where nothing can be played as that, they are asked.
    ///   - beginsEarly: an MP3 on a server whose first frame says how long it is can be read from its
    ///     beginning while it comes; the first seek then blocks until all of it is here. False: opening
    ///     does.
    /// - Throws: ``MediaError`` saying what is wrong and what the user can do; `.noAudio` where `track`
    ///   is no audio track, `.unsupported` where this build cannot decode it or the output has no such
    ///   pair.
    public convenience init(
        _ location: String, track: Int? = nil, channels: ChannelPair? = nil,
        container: String? = nil, beginsEarly: Bool = false,
        cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        var location = try MediaLocation(location)
        location.track = track
        location.channels = channels
        location.beginsEarly = beginsEarly
        try self.init(at: location, container: container, cancellation: cancellation)
    }

    /// - Parameter location: of a whole file, or the part of one that ``Splice`` plays as a recording.
    init(
        at location: MediaLocation, container: String?, memory: SurveyMemory = .shared,
        cancellation: MediaCancellation
    ) throws(MediaError) {
        try location.checkChannels()
        let location = try location.opened()
        let container =
            container ?? location.file.flatMap { ContainerSignature.container(of: $0) }
            ?? location.incoming?.beginning(ContainerSignature.length, cancellation)
            .flatMap(ContainerSignature.container)
        do throws(MediaError) {
            (demuxer, decoder, map, length, framesPerPacket) = try Self.open(
                location, container, memory, cancellation)
        } catch {
            guard container != nil, error.isAboutContent else { throw error }
            (demuxer, decoder, map, length, framesPerPacket) = try Self.open(
                location, nil, memory, cancellation)
        }
        self.cancellation = cancellation
        let own = MediaFormat(
            sampleRate: decoder.sampleRate, channelCount: decoder.channelCount,
            frameCount: map.end == .max ? nil : map.end - map.start)
        let spliced = try Self.splice(demuxer, map, own, memory, cancellation)
        splice = spliced?.splice
        lead = LeadingSilence(map.lead, sampleRate: (spliced?.format ?? own).sampleRate)
        format = lead.before(spliced?.format ?? own)
        tracks = demuxer.tracks
        track = demuxer.track
        let info = MediaInfo(
            demuxer, decoder, format, missing: spliced?.missing ?? map.missing)
        var metadata = demuxer.metadata
        metadata.promisedDuration = info.promisedFrameCount.map {
            MediaTime(frame: $0, sampleRate: info.sampleRate)
        }
        if info.frameCount == nil, splice == nil {
            metadata.statedDuration = demuxer.statedFrames(perSecond: decoder.sampleRate).map {
                MediaTime(frame: $0, sampleRate: info.sampleRate)
            }
        }
        (self.info, self.metadata) = (info, metadata)
        if splice == nil { try begin() } else { try seek(toFrame: 0) }
    }

    private static func open(
        _ location: MediaLocation, _ container: String?, _ memory: SurveyMemory,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> Opened {
        var demuxer = try Demuxer(location, container: container, cancellation: cancellation)
        if demuxer.isProtected { throw .protected(location) }
        if let early = try beginEarly(demuxer, cancellation) { return early }
        if let here = try Spool.take(demuxer, cancellation) {
            demuxer = try Demuxer(
                here, container: demuxer.containerName, cancellation: cancellation)
        }
        let decoder = unsafe try AudioDecoder(for: demuxer.stream, location: location)
        let (map, framesPerPacket) = try survey(demuxer, decoder, memory)
        decoder.followsRates = location.followsRates
        let length = unsafe PacketLength(
            for: demuxer.stream.pointee.codecpar, probed: framesPerPacket)
        return (demuxer, decoder, map, length, framesPerPacket)
    }

    /// What is known of the packets, from ``SurveyMemory`` where it is known there.
    private static func survey(
        _ demuxer: Demuxer, _ decoder: AudioDecoder, _ memory: SurveyMemory
    ) throws(MediaError) -> (PacketMap, framesPerPacket: Int) {
        let key = SurveyMemory.Key(
            demuxer.location, container: demuxer.containerName, track: demuxer.track)
        if let key, let known = memory.survey(key) {
            decoder.assume(sampleRate: known.sampleRate, channelCount: known.channelCount)
            return (known.map, known.framesPerPacket)
        }
        let recordings = try demuxer.looking { () throws(MediaError) in
            try Recordings.find(in: demuxer)
        }
        let survey = PacketSurvey(demuxer: demuxer, decoder: decoder)
        let (map, framesPerPacket) = try survey.run(recordings: recordings)
        // The same file as before the look, and all of it was seen.
        if !demuxer.sawFailure, let key,
            key
                == SurveyMemory.Key(
                    demuxer.location, container: demuxer.containerName, track: demuxer.track)
        {
            memory.keep(
                SurveyMemory.Survey(
                    map: map, framesPerPacket: framesPerPacket, sampleRate: decoder.sampleRate,
                    channelCount: decoder.channelCount), for: key)
        }
        return (map, framesPerPacket)
    }

    /// Costs about a millisecond, some 10 ms for Opus; a chained Ogg file is read from the start.
    ///
    /// - Throws: `.unsupported` for a way back in a live stream.
    public func seek(toFrame frame: Int64) throws(MediaError) {
        if demuxer.location.spool != nil {
            if let whole { return try whole.seek(toFrame: frame) }
            let all = try Self.complete(demuxer, format, cancellation)
            whole = all
            return try all.seek(toFrame: frame)
        }
        let frame = lead.seek(toFrame: frame)
        if let splice { return try splice.seek(toFrame: frame) }
        let target = min(map.end, map.start + max(0, min(frame, .max / 2)))
        switch map.numbering {
        case .live:
            guard target >= wanted else {
                throw MediaError(
                    .unsupported, operation: "seek", subject: demuxer.location.subject,
                    reason: "is a live stream, which cannot be heard again")
            }
            drop(to: target)
        case .timestamps(let origin):
            try begin(at: target, origin: origin)
        case .anchors(let anchors, let byBytes):
            let latest = map.decodeStart(for: target)
            if let index = anchors.partitioningIndex(where: { $0.end > latest }) {
                try begin(at: target, anchors[index], byBytes)
            } else {
                try begin()
                drop(to: target)
                decodeStart = latest
            }
        }
    }

    public func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        if let whole { return unsafe try whole.read(into: buffer) }
        let silent = lead.take(buffer.count / 2)
        guard silent > 0 else { return unsafe try readTrack(into: buffer) }
        unsafe buffer.baseAddress!.update(repeating: 0, count: 2 * silent)
        return unsafe try silent
            + readTrack(into: UnsafeMutableBufferPointer(rebasing: buffer[(2 * silent)...]))
    }

    private func readTrack(
        into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        if let splice { return unsafe try splice.read(into: buffer) }
        if let failure {
            self.failure = nil
            throw failure
        }
        let room = buffer.count / 2
        var filled = 0
        while filled < room {
            if silence > 0 {
                let count = Int(min(silence, Int64(room - filled)))
                unsafe (buffer.baseAddress! + 2 * filled).update(repeating: 0, count: 2 * count)
                silence -= Int64(count)
                filled += count
            } else if !pending.isEmpty {
                let count = min(pending.count, room - filled)
                unsafe (buffer.baseAddress! + 2 * filled).update(
                    from: decoder.output.baseAddress! + 2 * pending.lowerBound, count: 2 * count)
                pending.removeFirst(count)
                filled += count
            } else {
                do throws(MediaError) {
                    guard try advance() else { break }
                } catch {
                    // What was decoded before is heard first.
                    guard filled > 0 else { throw error }
                    failure = error
                    break
                }
            }
        }
        wanted += Int64(filled)
        return filled
    }
}

// MARK: Decoding

extension FFmpegSource {
    /// Decodes one packet into `pending`; false at the item's end.
    private func advance() throws(MediaError) -> Bool {
        guard next < map.end, !isDrained || map.end != .max else {
            if map.end == .max { try demuxer.checkEnd(at: next, perSecond: decoder.sampleRate) }
            return false
        }
        if cancellation.isCancelled { throw demuxer.failure(cff_error_exit, "read") }
        guard !isDrained, let packet = unsafe try demuxer.next() else { return try drain() }
        if !map.changes.isEmpty, anchor == nil { try follow(at: next) }
        let expected = unsafe length.frames(of: packet)
        let known = expected == nil ? unsafe knownEnd(of: packet) : nil
        if let anchor {
            self.anchor = nil
            next = anchor.end
            return true
        }
        var begin = next
        if case .timestamps(let origin) = map.numbering {
            begin = unsafe packet.pointee.pts - origin
            if begin > next { owe(from: next, to: begin) }
        }
        if let expected, begin + Int64(expected) <= decodeStart {
            next = begin + Int64(expected)
            return true
        }
        if map.restartInterval > 0 { unsafe try restartIfDue(at: begin, before: packet) }
        unsafe try decoder.decode(packet)
        decoder.setOutputCount(expected ?? decoder.outputCount)
        if let known {
            begin = known - Int64(decoder.outputCount)
            if begin > next { owe(from: next, to: begin) }
        }
        offer(from: begin)
        return true
    }

    /// Where what `packet` yields ends, if it is an anchor: a decoder that has just begun may have
    /// yielded less than it does after all the packets before, and gets in step here.
    private func knownEnd(of packet: UnsafeMutablePointer<AVPacket>) -> Int64? {
        guard case .anchors(let anchors, _) = map.numbering else { return nil }
        let position = unsafe packet.pointee.pos
        // Packets of one page have its position, and often one size: the anchor is the first.
        defer { lastPosition = position }
        guard let lastPosition, position != lastPosition else { return nil }
        while anchorIndex < anchors.count, anchors[anchorIndex].position < position {
            anchorIndex += 1
        }
        guard anchorIndex < anchors.count, unsafe anchors[anchorIndex].isSame(as: packet) else {
            return nil
        }
        return anchors[anchorIndex].end
    }

    /// Where the sound gets another rate, decoding begins anew, by what is said of it there.
    private func follow(at frame: Int64) throws(MediaError) {
        let now = map.change(at: frame)
        guard now != change, length.rule != .decoded else { return }
        change = now
        unsafe try decoder.restart(for: demuxer.stream, settings: now?.settings)
        history.removeAll()
        length.setFixed(now?.framesPerPacket ?? framesPerPacket)
    }

    private func restartIfDue(
        at frame: Int64, before packet: UnsafeMutablePointer<AVPacket>
    ) throws(MediaError) {
        if frame > 0, frame % map.restartInterval == 0 {
            unsafe try decoder.restart(for: demuxer.stream, settings: change?.settings)
            for index in 0..<history.count {
                unsafe try decoder.decode(history.packet(index))
            }
        }
        unsafe history.append(packet)
    }

    /// What the decoder still holds after the last packet, then silence up to the promised end.
    private func drain() throws(MediaError) -> Bool {
        if !isDrained {
            isDrained = true
            unsafe try decoder.decode(nil)
            if length.rule == .decoded || map.end == .max { offer(from: next) }
            return true
        }
        if map.end != .max, next < map.end, demuxer.isShortened {
            let place = max(0, next - map.start)
            throw MediaError(
                .damaged, operation: "read", subject: demuxer.location.subject,
                reason: "was cut off while it was played, \(place / Int64(info.sampleRate)) s from "
                    + "its beginning; put the whole file back")
        }
        owe(from: next, to: map.end)
        next = map.end
        return true
    }

    /// Makes the wanted part of the decoder's output, which begins at raw frame `begin`, pending.
    private func offer(from begin: Int64) {
        let low = max(begin, next, wanted)
        let end = begin + Int64(decoder.outputCount)
        let high = min(end, map.end)
        pending = low < high ? Int(low - begin)..<Int(high - begin) : 0..<0
        next = max(next, end)
    }

    /// A hole between packets (damage) is as long as what is missing.
    private func owe(from begin: Int64, to end: Int64) {
        let low = max(begin, wanted)
        let high = min(end, map.end)
        silence = max(0, high - low)
        next = max(next, end)
    }

    private func drop(to target: Int64) {
        let skipped = target - wanted
        wanted = target
        let silent = min(skipped, silence)
        silence -= silent
        pending.removeFirst(Int(min(skipped - silent, Int64(pending.count))))
    }
}

// MARK: Positioning

extension FFmpegSource {
    /// - Parameter frame: raw frame of the next packet.
    private func forget(at frame: Int64) throws(MediaError) {
        change = map.changes.isEmpty ? nil : map.change(at: frame)
        unsafe try decoder.restart(for: demuxer.stream, settings: change?.settings)
        length.restart()
        length.setFixed(change?.framesPerPacket ?? framesPerPacket)
        silence = 0
        pending = 0..<0
        anchor = nil
        anchorIndex = 0
        lastPosition = nil
        isDrained = false
        failure = nil
        decodeStart = .min
        history.removeAll()
    }

    /// Begins at the first packet, as after opening.
    private func begin() throws(MediaError) {
        try rewind()
        try forget(at: 0)
        next = 0
        wanted = map.start
    }

    private func rewind() throws(MediaError) {
        let moved =
            switch map.numbering {
            case .live: false
            case .anchors(_, byBytes: true): demuxer.seek(toByte: map.first.position)
            default:
                map.first.timestamp != cff_no_timestamp
                    && demuxer.seek(toTimestamp: map.first.timestamp)
            }
        if moved, let packet = unsafe try demuxer.next(), unsafe map.first.isSame(as: packet) {
            demuxer.hold()
            return
        }
        try demuxer.reopen()
    }

    /// By exact timestamps: any packet at or before what is needed will do.
    private func begin(at target: Int64, origin: Int64) throws(MediaError) {
        defer { demuxer.foundPlace() }
        let latest = map.decodeStart(for: target)
        var place = try approach(latest, origin: origin)
        if place == nil { place = try land(before: latest, origin: origin) }
        if let begin = place {
            demuxer.hold()
            try forget(at: begin)
            (next, wanted) = (begin, target)
        } else {
            try begin()
            drop(to: target)
        }
        decodeStart = latest
    }

    /// - Returns: where the packet to be held begins; `nil` when the container leads nowhere.
    private func land(before latest: Int64, origin: Int64) throws(MediaError) -> Int64? {
        var margin: Int64 = 0
        for _ in 0..<4 where latest - margin > 0 {
            guard demuxer.seek(toTimestamp: origin + latest - margin) else { break }
            if let packet = unsafe try demuxer.next() {
                let begin = unsafe packet.pointee.pts - origin
                if begin <= latest, begin >= 0 { return begin }
            }
            margin = max(Int64(format.sampleRate), 4 * margin)
        }
        return nil
    }

    /// The same in a FLAC file that is still being fetched, or on a server, in few parts (``PlaceSearch``).
    ///
    /// FFmpeg goes on until it has the very packet, and may read the end first. Each look is a part of
    /// more than 100 kB, since its parser wants ten frames before it believes one. Rooms that joined
    /// an item of three minutes over emulated wifi asked for seven parts that way, and for two or
    /// three this way; meanwhile they measure the clock on the same path.
    private func approach(_ latest: Int64, origin: Int64) throws(MediaError) -> Int64? {
        guard demuxer.containerName == "flac", demuxer.location.mayBreak,
            let size = demuxer.byteCount, map.end != .max,
            var search = PlaceSearch(
                of: latest, firstByte: max(0, map.first.position), end: (map.end, size),
                sampleRate: format.sampleRate)
        else { return nil }
        for _ in 0..<5 {
            guard let byte = search.next, demuxer.seek(toByte: byte),
                let packet = unsafe try demuxer.nextWithTime()
            else { return nil }
            let begin = unsafe packet.pointee.pts - origin
            if search.take(frame: begin, at: byte) { return begin }
        }
        return nil
    }

    /// By an anchor: reads on until its very packet comes by.
    private func begin(
        at target: Int64, _ anchor: PacketMap.Anchor, _ byBytes: Bool
    ) throws(MediaError) {
        if try byBytes ? landByBytes(on: anchor) : landByTimestamp(on: anchor) {
            demuxer.hold()
        } else {
            try demuxer.reopen()
            guard try find(anchor, mayBeFirst: true) else {
                throw MediaError(
                    .damaged, operation: "seek", subject: demuxer.location.subject,
                    reason: "has changed since it was opened; open it again")
            }
            demuxer.hold()
        }
        try forget(at: anchor.end)
        self.anchor = anchor
        (next, wanted) = (anchor.end, target)
        decodeStart = map.decodeStart(for: target)
    }

    private func landByBytes(on anchor: PacketMap.Anchor) throws(MediaError) -> Bool {
        guard demuxer.seek(toByte: anchor.position) else { return false }
        // A parser may first yield what is left of another packet.
        for _ in 0..<3 {
            guard let packet = unsafe try demuxer.next() else { return false }
            if unsafe anchor.isSame(as: packet) { return true }
        }
        return false
    }

    private func landByTimestamp(on anchor: PacketMap.Anchor) throws(MediaError) -> Bool {
        guard anchor.timestamp != cff_no_timestamp else { return false }
        let base = unsafe demuxer.stream.pointee.time_base
        // Ogg packets share their page's position: only one that was seen to follow another page
        // is known to be the page's first, hence the step back.
        let isOgg = demuxer.containerName == "ogg"
        var seconds: Int64 = isOgg ? 2 : 0
        for _ in 0..<3 {
            let back = av_rescale(seconds, Int64(base.den), Int64(base.num))
            let timestamp = max(map.first.timestamp, anchor.timestamp - back)
            guard demuxer.seek(toTimestamp: timestamp) else { return false }
            if try find(anchor, mayBeFirst: !isOgg) { return true }
            seconds = max(2, 4 * seconds)
        }
        return false
    }

    /// Reads on to the anchor's packet; false once it must have been passed.
    private func find(_ anchor: PacketMap.Anchor, mayBeFirst: Bool) throws(MediaError) -> Bool {
        var sawOther = mayBeFirst
        while let packet = unsafe try demuxer.next() {
            if unsafe anchor.isSame(as: packet) { return sawOther }
            let position = unsafe packet.pointee.pos
            if position > anchor.position { return false }
            if position != anchor.position { sawOther = true }
        }
        return false
    }
}

extension Array {
    /// Index of the last element before the first for which `isAfter` holds; elements are sorted.
    fileprivate func partitioningIndex(where isAfter: (Element) -> Bool) -> Int? {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low == 0 ? nil : low - 1
    }
}
