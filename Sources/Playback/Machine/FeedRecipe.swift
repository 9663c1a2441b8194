import TuttiPlayout
import TuttiTiming

/// What becomes of an item's frames on their way to a voice: feeds of one recipe play the same samples
/// at the same places.
struct FeedRecipe: Equatable, Sendable {
    /// Seconds of the item in a second; negative: backwards.
    var rate: Double
    /// `nil` where the voice itself makes the rate, or there is nothing to make.
    var algorithm: TimePitchAlgorithm?
    /// Those that are heard together; `nil`: the item's default.
    var tracks: [Int]?
    /// Of the item's mix and tap.
    var edition: Int
    /// Where the voice's frames lie on those of the item.
    var map: FrameMap

    /// Whether channels that are made by themselves stay as they are to each other.
    var keepsChannelsTogether: Bool {
        algorithm == nil || algorithm == .varispeed || rate.magnitude == 1
    }

    /// A voice's frames in a second, at the item's sample rate: what is left for its resampler.
    var voiceRate: Double { rate / map.step }

    /// Decoding begins there for a sound that begins at a place of the item: at a frame of the voice.
    func firstFrame(for itemFrame: Double) -> Int64 {
        max(0, wantedFrame(for: itemFrame) - Feed.historyFrames)
    }

    /// The voice's first frame that is to be heard.
    func wantedFrame(for itemFrame: Double) -> Int64 {
        max(0, Int64(saturating: map.voiceFrame(itemFrame)))
    }

    /// The voice's first frame that is not played, where that is so of the item's.
    func endFrame(for itemFrame: Double) -> Int64 {
        max(0, Int64(saturating: map.voiceFrame(itemFrame).rounded(.up)))
    }

    /// What a feed comes by soon whose decoding stands between two of the voice's frames, in frames of
    /// the item.
    func reach(_ first: Double, _ last: Double) -> ClosedRange<Double> {
        let (begin, end) = (map.itemFrame(first), map.itemFrame(max(first, last)))
        return min(begin, end)...max(begin, end)
    }

    /// A line of the item as one of the voice.
    func line(_ line: Line) -> Line {
        map == .identity
            ? line
            : Line(
                itemFrame: map.voiceFrame(line.itemFrame), instant: line.instant,
                rate: line.rate / map.step)
    }

    /// A voice's report, in frames of the item.
    func report(_ report: VoiceReport) -> VoiceReport {
        var report = report
        report.itemFrame = map.itemFrame(report.itemFrame)
        return report
    }
}

extension PlayerWorld.ItemFacts {
    /// - Returns: `nil` for a rate that the item cannot do: backwards without an end to begin at.
    func recipe(at rate: Double) -> FeedRecipe? {
        guard
            let map = FrameTransforms.map(rate: rate, algorithm: algorithm, frameCount: frameCount)
        else { return nil }
        return FeedRecipe(
            rate: rate, algorithm: map == .identity ? nil : algorithm, tracks: tracks,
            edition: edition, map: map)
    }

    /// Where playing in a direction ends, in frames; `nil` when only the source knows.
    func end(at rate: Double) -> Int64? { rate < 0 ? startFrame : endFrame }
}
