import CTuttiFFmpeg
import TuttiPlayout

extension FFmpegSource {
    /// What plays a file that is more than one recording; `nil` for others.
    static func splice(
        _ demuxer: Demuxer, _ map: PacketMap, _ own: MediaFormat, _ memory: SurveyMemory,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> (splice: Splice, format: MediaFormat, missing: Int64)? {
        var location = demuxer.location
        let container = demuxer.containerName
        var stretches: [Splice.Stretch] = []
        var channelCount = own.channelCount
        // Frames, and the rate that they are counted at.
        var missing: (count: Int64, rate: Int) = (0, own.sampleRate)
        if !map.changes.isEmpty, map.recordings.isEmpty {
            guard !location.followsRates else { return nil }
            stretches = rates(of: map, own.sampleRate, demuxer)
            missing.count = map.missing
        } else if map.recordings.isEmpty {
            guard location.part == nil, !location.ignoresEdits, own.frameCount != nil,
                map.stretches.count > 1 || own.sampleRate > Self.highestSampleRate
            else { return nil }
            location.ignoresEdits = true
            let frames = map.stretches.count > 1 ? map.stretches : [map.start..<map.end]
            stretches = frames.map {
                Splice.Stretch(
                    location: location, container: container, frames: $0,
                    sampleRate: own.sampleRate)
            }
            missing.count = map.missing
        }
        var failure: MediaError?
        for range in map.recordings {
            location.part = range
            do throws(MediaError) {
                let source = try FFmpegSource(
                    at: location, container: container, memory: memory,
                    cancellation: cancellation)
                guard let count = source.format.frameCount, count > 0 else { continue }
                if stretches.isEmpty { channelCount = source.format.channelCount }
                stretches.append(
                    Splice.Stretch(
                        location: location, container: container, frames: 0..<count,
                        sampleRate: source.format.sampleRate))
                missing = (source.map.missing, source.format.sampleRate)
            } catch {
                // One of them that is nothing does not hold up the others.
                guard error.isAboutContent else { throw error }
                failure = failure ?? error
            }
        }
        // The highest: a jingle at 8 kHz in front must not cut off what follows at 4 kHz.
        guard var rate = stretches.map(\.sampleRate).max() else {
            throw failure ?? demuxer.failure(cff_error_invalid_data, "av_read_frame")
        }
        while rate > Self.highestSampleRate { rate /= 2 }
        let splice = Splice(
            stretches, sampleRate: rate, memory: memory, cancellation: cancellation)
        let format = MediaFormat(
            sampleRate: rate, channelCount: channelCount, frameCount: splice.frameCount)
        return (splice, format, missing.count * Int64(rate) / Int64(missing.rate))
    }

    /// The frames of each rate, by their raw numbers.
    private static func rates(
        of map: PacketMap, _ first: Int, _ demuxer: Demuxer
    ) -> [Splice.Stretch] {
        var location = demuxer.location
        location.followsRates = true
        let bounds = [map.start] + map.changes.map { max(map.start, min(map.end, $0.frame)) }
        let rates = [first] + map.changes.map(\.sampleRate)
        return zip(zip(bounds, bounds.dropFirst() + [map.end]), rates).compactMap {
            let (range, rate) = $0
            guard range.0 < range.1 else { return nil }
            return Splice.Stretch(
                location: location, container: demuxer.containerName, frames: range.0..<range.1,
                sampleRate: rate)
        }
    }

    /// What has more frames a second (DSD as FFmpeg decodes it) is halved until it has not: cards
    /// end there, and nothing of it can be heard.
    private static let highestSampleRate = 384_000
}

extension MediaError {
    /// Whether it says that the bytes are nothing that can be played, not that they cannot be had.
    var isAboutContent: Bool {
        [.notMedia, .noAudio, .damaged, .unsupported].contains(code)
    }
}
