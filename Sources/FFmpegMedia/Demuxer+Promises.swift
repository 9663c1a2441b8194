import CTuttiFFmpeg

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
    func promisedFrames(perSecond sampleRate: Int, counted: Int64) -> Int64? {
        if let size = byteCount,
            let chunk = DataChunk.range(
                in: containerName, fileSize: size, bytes: { bytes(from: $0, count: $1) })
        {
            guard chunk.upperBound > size, chunk.lowerBound < size else { return counted }
            let there = Double(size - chunk.lowerBound)
            return Int64(Double(counted) * min(1e6, Double(chunk.count) / there))
        }
        return headerFrames(perSecond: sampleRate)
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

    /// The same of what a server sends once, in which nothing can be looked up: by what the demuxer
    /// and ``BodyReader`` have read. `nil` for playlists and stations too, which have no end.
    ///
    /// - Parameter counted: frames up to its end, once it was reached.
    func statedFrames(perSecond sampleRate: Int, counted: Int64? = nil) -> Int64? {
        guard containerName != "hls", !isStation else { return nil }
        guard let body = reader as? BodyReader,
            let chunk = DataChunk.range(
                in: containerName, fileSize: byteCount ?? DataChunk.openSize - 1,
                bytes: body.beginning)
        else { return headerFrames(perSecond: sampleRate) }
        if let counted {
            let there = body.count - chunk.lowerBound
            guard there > 0, there < chunk.count else { return counted }
            return Int64(Double(counted) * min(1e6, Double(chunk.count) / Double(there)))
        }
        let (codec, bitRate) = unsafe (
            stream.pointee.codecpar.pointee.codec_id, stream.pointee.codecpar.pointee.bit_rate
        )
        // Of others the bit rate is a word of the encoder's.
        guard bitRate > 0, codec.rawValue < AV_CODEC_ID_ADPCM_IMA_QT.rawValue else { return nil }
        return Int64(8 * Double(chunk.count) / Double(bitRate) * Double(sampleRate))
    }
}
