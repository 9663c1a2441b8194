import CTuttiFFmpeg
import TuttiPlayout

/// How long a file's header says that it is.
extension Demuxer {
    /// Containers whose headers say how long the sound is, not how long it may be.
    private static let promising: Set<String> = [
        "flac", "aiff", "mov", "mp3", "wv", "tta", "ape", "tak", "matroska", "flv", "rm",
    ]

    /// Those that say it for all their streams together.
    private static let promisingForAll: Set<String> = ["matroska", "flv", "rm"]

    /// Frames that the header says there are, delay and padding included; `nil` for containers whose
    /// headers do not, and where it is left open.
    ///
    /// - Parameter counted: frames up to the end of the bytes.
    func promisedFrames(perSecond sampleRate: Int, counted: Int64) -> Int64? {
        if let size = byteCount,
            let chunk = DataChunk.range(
                in: containerName, fileSize: size, bytes: { bytes(from: $0, count: $1) })
        {
            return Self.promised(by: chunk, counted, in: size)
        }
        return headerFrames(perSecond: sampleRate)
    }

    /// What frames become that were counted in the first bytes, in all of the sound.
    private static func promised(
        by chunk: Range<Int64>, _ counted: Int64, in byteCount: Int64
    ) -> Int64 {
        guard chunk.upperBound > byteCount, chunk.lowerBound < byteCount else { return counted }
        let there = Double(byteCount - chunk.lowerBound)
        return Int64(Double(counted) * min(1e6, Double(chunk.count) / there))
    }

    private func headerFrames(perSecond sampleRate: Int) -> Int64? {
        let duration = unsafe stream.pointee.duration
        let base = unsafe stream.pointee.time_base
        guard Self.promising.contains(containerName),
            unsafe context.pointee.duration_estimation_method == AVFMT_DURATION_FROM_STREAM
        else { return nil }
        if duration != cff_no_timestamp, duration > 0 {
            return av_rescale_q(duration, base, AVRational(num: 1, den: Int32(sampleRate)))
        }
        let whole = unsafe context.pointee.duration
        guard Self.promisingForAll.contains(containerName), whole > 0,
            unsafe context.pointee.nb_streams == 1
        else { return nil }
        return av_rescale(whole, Int64(sampleRate), Int64(AV_TIME_BASE))
    }

    /// Whether it may have an end: playlists and stations have none.
    private var hasEnd: Bool { containerName != "hls" && !isStation }

    /// Where the header of what a server sends once, in which nothing can be looked up, says that the
    /// sound is.
    private func chunk(of body: BodyReader) -> Range<Int64>? {
        DataChunk.range(
            in: containerName, fileSize: byteCount ?? DataChunk.openSize - 1,
            bytes: body.beginning)
    }

    /// Frames of what a server sends once, as its header says them; `nil` as for
    /// ``promisedFrames(perSecond:counted:)``, and where they would have to be counted.
    func statedFrames(perSecond sampleRate: Int) -> Int64? {
        guard hasEnd else { return nil }
        guard let body = reader as? BodyReader, let chunk = chunk(of: body) else {
            return headerFrames(perSecond: sampleRate)
        }
        let (codec, bitRate) = unsafe (
            stream.pointee.codecpar.pointee.codec_id, stream.pointee.codecpar.pointee.bit_rate
        )
        // Of others the bit rate is a word of the encoder's.
        guard bitRate > 0, codec.rawValue < AV_CODEC_ID_ADPCM_IMA_QT.rawValue else { return nil }
        return Int64(8 * Double(chunk.count) / Double(bitRate) * Double(sampleRate))
    }

    /// What a server sends once has no length but what its header says. Where the connection ends as it
    /// should and the sound does not, the file was cut off there, or the program that makes it broke
    /// down.
    ///
    /// - Parameter counted: frames up to the end.
    /// - Throws: `.damaged` where more than a second is missing.
    func checkEnd(at counted: Int64, perSecond sampleRate: Int) throws(MediaError) {
        guard hasEnd else { return }
        let promised: Int64? =
            if let body = reader as? BodyReader, let chunk = chunk(of: body) {
                Self.promised(by: chunk, counted, in: body.count)
            } else {
                headerFrames(perSecond: sampleRate)
            }
        let rate = Int64(sampleRate)
        guard let promised, promised - counted > rate else { return }
        func seconds(_ frames: Int64) -> Int64 { (frames + rate / 2) / rate }
        throw MediaError(
            .damaged, operation: "read", subject: location.subject,
            reason: "was cut off: it ends after \(seconds(counted)) of the \(seconds(promised)) s "
                + "that its header promises; try another copy")
    }
}
