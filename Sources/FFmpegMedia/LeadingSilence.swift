import TuttiPlayout
import TuttiTiming

/// The silence with which a track begins that begins later than others of its container.
struct LeadingSilence {
    /// Frames in all.
    let frameCount: Int64
    /// Frames that are still to be given before the track's own.
    private var left: Int64

    init(_ time: MediaTime, sampleRate: Int) {
        frameCount = max(0, time.frame(atSampleRate: sampleRate) ?? 0)
        left = frameCount
    }

    /// What a track of `format` is with it.
    func before(_ format: MediaFormat) -> MediaFormat {
        var format = format
        format.frameCount = format.frameCount?.adding(saturating: frameCount)
        return format
    }

    /// - Returns: the track's own frame that is the next after what is left of the silence.
    mutating func seek(toFrame frame: Int64) -> Int64 {
        let frame = max(0, frame)
        left = max(0, frameCount - frame)
        return max(0, frame - frameCount)
    }

    /// - Returns: silent frames to give now, at most `room`.
    mutating func take(_ room: Int) -> Int {
        let count = Int(min(left, Int64(room)))
        left -= Int64(count)
        return count
    }
}
