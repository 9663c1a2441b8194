/// Holds what left a card against what the engine said it played.
///
/// The figures of a simulation come from positions that the engine reports. With the sound rendered
/// as well, the item's own angle says the position again, independently.
struct AudioCheck {
    /// Look at every so many frames; a prime, so that all phases of a period come up.
    private static let stride = 37
    /// Frames around a beginning or end in which a fade or the filter's ringing is heard.
    private static let edge = 512.0
    /// A beginning without a fade rings this many frames ahead: half of the filter.
    private static let ringing = 64.0

    var isEnabled = false
    private(set) var comparedFrames = 0
    /// Largest distance of the sound from the reported position, frames of the item.
    private(set) var worstLead = 0.0
    /// Frames that were not silent although nothing was to be heard.
    private(set) var strayFrames = 0
    private var silentSince: Int64?
    private var next: Int64 = 0

    mutating func take(
        _ samples: ArraySlice<Float>, firstFrame: Int64,
        sounding: (Double) -> (voice: VoiceTrace, position: Double)?
    ) {
        if firstFrame == 0 { next = 0 }
        while next < firstFrame + Int64(samples.count / 2) {
            let index = samples.startIndex + 2 * Int(next - firstFrame)
            compare(
                samples[index], samples[index + 1], at: next, sounding(Double(next)),
                isBeforeBegin: sounding(Double(next) + Self.ringing) != nil)
            next += Int64(Self.stride)
        }
    }

    private mutating func compare(
        _ left: Float, _ right: Float, at frame: Int64,
        _ sounding: (voice: VoiceTrace, position: Double)?, isBeforeBegin: Bool
    ) {
        guard let (voice, position) = sounding else {
            let since = silentSince ?? frame
            silentSince = since
            let isSilent = left == 0 && right == 0
            if !isSilent, !isBeforeBegin, Double(frame - since) > Self.edge { strayFrames += 1 }
            return
        }
        silentSince = nil
        guard position > voice.from + Self.edge, position < voice.to - Self.edge else { return }
        comparedFrames += 1
        let lead = SyntheticItem.lead(left: left, right: right, of: position)
        worstLead = max(worstLead, lead.magnitude)
    }
}
